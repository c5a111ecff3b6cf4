"""The reorder buffer of a stream: rows come in any order and leave in that of their times."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import itemgetter

from streamlog.runtime.executor import Row

_time = itemgetter(0)


class Buffer:
    """Holds what lies after the stream's progress.

    Rows are only appended when they come; sorting is left to `take`, where a list that is nearly
    in order costs one comparison a row. Exact duplicates leave once.
    """

    def __init__(self) -> None:
        self.fresh: list[Row] = []  # as they came, since the last `take`
        self._held: list[Row] = []  # by time
        # The rows at the instant of progress that have left: only these can still come again.
        self._edge: set[Row] = set()
        self.duplicates = 0
        self._undo: tuple[list[Row], list[Row], set[Row], int] | None = None

    def __len__(self) -> int:
        return len(self.fresh) + len(self._held)

    def rows(self) -> list[Row]:
        """What is held, by time."""
        self._merge()
        return list(self._held)

    def edge(self) -> list[Row]:
        """What has left at the instant of progress."""
        return list(self._edge)

    def restore(self, rows: Sequence[Row], edge: Sequence[Row], duplicates: int) -> None:
        self.fresh, self._held, self._edge = [], list(rows), set(edge)
        self.duplicates = duplicates

    def take(self, *progress: int) -> list[Row]:
        """The rows up to and at the stream's progress, in the order of their times; rows of the
        same time in the order in which they came."""
        (at,) = progress
        self._merge()
        held = self._held
        cut = bisect_right(held, at, key=_time) if held else 0
        leaving = held[:cut]
        self._undo = (leaving, held, self._edge, self.duplicates)
        if not cut:
            return []
        self._held = held[cut:]
        unique = list(dict.fromkeys(leaving))
        edge = self._edge
        if edge and not edge.isdisjoint(unique):
            unique = [row for row in unique if row not in edge]
        self.duplicates += cut - len(unique)
        last = unique[bisect_left(unique, at, key=_time) :]
        stays = bool(edge) and next(iter(edge))[0] == at
        self._edge = edge.union(last) if stays else set(last)
        return unique

    def put_back(self) -> None:
        """Undo the last `take`: what left was not used."""
        if self._undo is not None:
            leaving, held, self._edge, self.duplicates = self._undo
            self._held = held if leaving else self._held
            self._undo = None

    def earliest(self, column: int = 0) -> int | None:
        """The time of the first row that is held."""
        assert column == 0
        self._merge()
        return int(self._held[0][0]) if self._held else None

    def _merge(self) -> None:
        fresh, held = self.fresh, self._held
        if not fresh:
            return
        self.fresh = []
        fresh.sort(key=_time)
        if not held or _time(held[-1]) <= _time(fresh[0]):
            self._held = held + fresh if held else fresh
            return
        # Only what overlaps has to move.
        at = bisect_right(held, fresh[0][0], key=_time)
        tail = held[at:] + fresh
        tail.sort(key=_time)
        self._held = held[:at] + tail
