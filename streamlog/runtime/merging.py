"""The rows of several inputs, in the order in which they might have arrived."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import takewhile

from streamlog.runtime.executor import BEGIN, Row
from streamlog.runtime.ingest import Reject
from streamlog.runtime.sources import Arriving, Rows


def merged(
    inputs: Sequence[Rows | Arriving], untimed: Collection[int] = ()
) -> Iterator[tuple[int, Row | Reject | None]]:
    """The rows of several inputs as if they had arrived together, each with the number of its
    input, and None where an input ends, or has no more at present.

    Each file keeps its own order; between files, the one whose latest row is earliest goes on, so
    none is late only because another was read first. A rejected row follows the one before it.
    `untimed` inputs, whose rows get their times as they arrive, come first.
    """

    def time_of(which: int, row: Row | Reject) -> int:
        return BEGIN if isinstance(row, Reject) or which in untimed else int(row[0])

    heap: list[tuple[int, int, Row | Reject]] = []
    for which, rows in enumerate(inputs):
        first = next(rows, None)
        if first is None:
            yield which, None
        else:
            heap.append((time_of(which, first), which, first))
    heapify(heap)
    while len(heap) > 1:
        time, which, row = heap[0]
        yield which, row
        following = next(inputs[which], None)
        if following is not None:
            heapreplace(heap, (max(time, time_of(which, following)), which, following))
        else:
            heappop(heap)
            yield which, None
    for _, which, last in heap:
        yield which, last
        more = takewhile(lambda row: row is not None, inputs[which])
        yield from ((which, row) for row in more)
        yield which, None
