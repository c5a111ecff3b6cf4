from common import copied

COLUMNS = "T: 'TIMESTAMP', id: 'BIGINT', stock: 'VARCHAR', volume: 'BIGINT'"
QUERY = """
SELECT strftime(hour, '%Y-%m-%dT%H:%M:%SZ') AS T, stock, volume FROM (
    SELECT date_trunc('hour', T) AS hour, stock, sum(volume) AS volume FROM trade GROUP BY ALL
)
QUALIFY row_number() OVER (PARTITION BY hour ORDER BY volume DESC, stock) <= 3
"""


def run(data, out):
    copied(QUERY, data, out, trade=COLUMNS)
