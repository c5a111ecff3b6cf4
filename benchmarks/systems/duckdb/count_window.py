from common import copied

COLUMNS = "T: 'TIMESTAMP', id: 'BIGINT', stock: 'VARCHAR', volume: 'BIGINT'"
QUERY = """
SELECT strftime(T, '%Y-%m-%dT%H:%M:%SZ') AS T, stock, sum(volume) OVER (
    PARTITION BY stock ORDER BY T ROWS BETWEEN 9 PRECEDING AND CURRENT ROW
) AS volume
FROM trade
"""


def run(data, out):
    copied(QUERY, data, out, trade=COLUMNS)
