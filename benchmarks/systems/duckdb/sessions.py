from common import copied

COLUMNS = "T: 'TIMESTAMP', id: 'BIGINT', user: 'VARCHAR'"
QUERY = """
WITH marked AS (
    SELECT T, "user", coalesce(T - lag(T) OVER by_user > INTERVAL '30 minutes', true) AS begins
    FROM click WINDOW by_user AS (PARTITION BY "user" ORDER BY T)
), numbered AS (
    SELECT T, "user", count_if(begins) OVER (PARTITION BY "user" ORDER BY T) AS session FROM marked
)
SELECT strftime(max(T), '%Y-%m-%dT%H:%M:%SZ') AS T, "user",
    strftime(min(T), '%Y-%m-%dT%H:%M:%SZ') AS B, count(*) AS clicks
FROM numbered GROUP BY "user", session
"""


def run(data, out):
    copied(QUERY, data, out, click=COLUMNS)
