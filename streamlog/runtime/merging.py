"""The rows of several inputs, in the order in which they might have arrived."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heapreplace

from streamlog.runtime.executor import BEGIN, Row
from streamlog.runtime.ingest import Reject
from streamlog.runtime.sources import Arriving, Rows


def merged(inputs: Sequence[Rows | Arriving]) -> Iterator[tuple[int, Row | Reject | None]]:
    """The rows of several inputs as if they had arrived together, each with the number of its
    input, and None where an input ends, or has no more at present.

    Each file keeps its own order; between files, the one whose latest row is earliest goes on. So
    no file's rows are late only because another was read first. A rejected row follows the one
    before it.
    """
    heap: list[tuple[int, int, Row | Reject]] = []
    for which, rows in enumerate(inputs):
        first = next(rows, None)
        if first is None:
            yield which, None
        else:
            time = BEGIN if isinstance(first, Reject) else int(first[0])
            heap.append((time, which, first))
    heapify(heap)
    while len(heap) > 1:
        time, which, row = heap[0]
        yield which, row
        following = next(inputs[which], None)
        if following is None:
            heappop(heap)
            yield which, None
            continue
        if not isinstance(following, Reject):
            time = max(time, int(following[0]))
        heapreplace(heap, (time, which, following))
    for _, which, last in heap:
        yield which, last
        for more in inputs[which]:
            if more is None:
                break
            yield which, more
        yield which, None
