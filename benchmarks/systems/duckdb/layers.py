from common import connected

COLUMNS = {
    "order": "T: 'TIMESTAMP', id: 'BIGINT', shop: 'VARCHAR', euros: 'BIGINT'",
    "visit": "T: 'TIMESTAMP', shop: 'VARCHAR', guests: 'BIGINT'",
}
BASE = """
CREATE TABLE orders AS SELECT *, date_trunc('hour', T) AS H,
    euros % 2 = 0 AND (euros > 500 OR euros <= 100) AS even,
    euros % 3 = 0 AND euros > 100 AS third
FROM "order";
CREATE TABLE crowded AS SELECT DISTINCT * FROM visit WHERE guests > 50;
CREATE TABLE income AS SELECT H, shop, sum(euros) AS euros
    FROM orders JOIN crowded USING (T, shop) WHERE even GROUP BY ALL;
CREATE TABLE guests AS SELECT H, shop, sum(guests) AS guests
    FROM orders JOIN crowded USING (T, shop) WHERE third GROUP BY ALL;
"""
ANSWERS = {
    "busy": "SELECT H AS T, shop, euros, guests FROM income JOIN guests USING (H, shop)",
    "quiet": """
        SELECT H AS T, shop, count(*) AS orders FROM orders ANTI JOIN guests USING (H, shop)
        WHERE even AND NOT third GROUP BY ALL
    """,
    "peak": """
        SELECT H AS T, shop, max(euros) AS euros FROM orders WHERE even AND third
        GROUP BY ALL HAVING max(euros) > 900
        UNION SELECT H, shop, euros FROM income WHERE euros > 2000
    """,
}


def run(data, out):
    out.mkdir(exist_ok=True)
    with connected(data, **COLUMNS) as connection:
        connection.execute(BASE)
        for name, query in ANSWERS.items():
            query = f"SELECT * REPLACE (strftime(T, '%Y-%m-%dT%H:%M:%SZ') AS T) FROM ({query})"
            connection.execute(f"COPY ({query}) TO '{out / name}.csv' (HEADER)")
