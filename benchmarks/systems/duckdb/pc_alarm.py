from common import copied

COLUMNS = "T: 'TIMESTAMP', area: 'VARCHAR'"
# The next report at or after each pre-alarm.
QUERY = """
SELECT DISTINCT strftime(p.T, '%Y-%m-%dT%H:%M:%SZ') AS T, p.area
FROM pre_alarm p ASOF LEFT JOIN report r ON p.area = r.area AND p.T <= r.T
WHERE r.T IS NULL OR r.T > p.T + INTERVAL 5 MINUTE
"""


def run(data, out):
    copied(QUERY, data, out, pre_alarm=COLUMNS, report=COLUMNS)
