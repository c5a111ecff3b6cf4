from common import copied

QUERY = """
SELECT DISTINCT t.T, t.stock, p.price
FROM trade t ASOF JOIN price p ON t.stock = p.stock AND t.T >= p.T
"""


def run(data, out):
    copied(
        QUERY,
        data,
        out,
        price="T: 'BIGINT', stock: 'VARCHAR', price: 'BIGINT'",
        trade="T: 'BIGINT', stock: 'VARCHAR'",
    )
