from common import copied

# Of each pair the earliest time; a time that is not better ends there.
QUERY = """
WITH RECURSIVE reach(a, b, T) USING KEY (a, b) AS (
    SELECT a, b, min(T) FROM arc GROUP BY a, b
    UNION
    SELECT r.a, arc.b, min(greatest(r.T, arc.T)) AS found
    FROM reach r JOIN arc ON r.b = arc.a
    LEFT JOIN recurring.reach known ON known.a = r.a AND known.b = arc.b
    WHERE known.T IS NULL OR greatest(r.T, arc.T) < known.T
    GROUP BY r.a, arc.b
)
SELECT T, a, b FROM reach
"""


def run(data, out):
    copied(QUERY, data, out, arc="T: 'BIGINT', a: 'VARCHAR', b: 'VARCHAR'")
