from collections import defaultdict

from common import rows, write


def run(data, out):
    """Each arc joins what reaches its beginning with what its end reaches."""
    after, before, answers = defaultdict(set), defaultdict(set), []
    for t, x, y in rows(data / "arc.csv"):
        if y in after[x]:
            continue
        ends = after[y] | {y}
        for a in before[x] | {x}:
            new = ends - after[a]
            after[a] |= new
            for b in new:
                before[b].add(a)
                answers.append((t, a, b))
    write(out, ("T", "a", "b"), answers)
