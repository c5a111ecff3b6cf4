from common import copied

QUERY = """
WITH RECURSIVE dist(a, b, d) USING KEY (a, b) AS (
    SELECT a, b, min(d) FROM arc GROUP BY a, b
    UNION
    SELECT r.a, arc.b, min(r.d + arc.d) AS found
    FROM dist r JOIN arc ON r.b = arc.a
    LEFT JOIN recurring.dist known ON known.a = r.a AND known.b = arc.b
    WHERE known.d IS NULL OR r.d + arc.d < known.d
    GROUP BY r.a, arc.b
)
SELECT a, b, d FROM dist
"""


def run(data, out):
    copied(QUERY, data, out, arc="a: 'VARCHAR', b: 'VARCHAR', d: 'BIGINT'")
