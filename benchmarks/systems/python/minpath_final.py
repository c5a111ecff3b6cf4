from collections import defaultdict
from heapq import heappop, heappush

from common import rows, write


def run(data, out):
    """Dijkstra from each node; a node reaches itself only on a cycle."""
    arcs = defaultdict(list)
    for a, b, d in rows(data / "arc.csv"):
        arcs[a].append((b, int(d)))
    answers = []
    for start in list(arcs):
        known, queue = {}, [(d, b) for b, d in arcs[start]]
        queue.sort()
        while queue:
            length, node = heappop(queue)
            if node in known:
                continue
            known[node] = length
            for b, d in arcs.get(node, ()):
                if b not in known:
                    heappush(queue, (length + d, b))
        answers += ((start, b, d) for b, d in known.items())
    write(out, ("a", "b", "d"), answers)
