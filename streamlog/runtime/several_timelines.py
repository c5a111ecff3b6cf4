"""Rows of a stream that makes progress on several columns: who is late, and when they leave.

A row is late as soon as one timeline has passed it; and it leaves the buffer as soon as one has,
since no row can come any more that lies earlier on that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from streamlog.analysis.timelines import View
from streamlog.runtime.executor import BEGIN, Row
from streamlog.runtime.progress import Clock, Progress
from streamlog.runtime.reorder import Buffer

_time = itemgetter(0)


def buffer_of(clocks: Sequence[Clock]) -> Buffer | SeveralTimelines:
    """A stream's, which has a clock for each of its timelines."""
    return Buffer() if len(clocks) == 1 else SeveralTimelines([c.column for c in clocks])


def leaving(
    buffers: Mapping[str, Buffer | SeveralTimelines],
    progress: Progress,
    views: Mapping[str, Mapping[str, View]],
) -> dict[str, list[Row]]:
    """What has been passed; the rows of several timelines under the name of each."""
    arrived: dict[str, list[Row]] = {}
    for stream, buffer in buffers.items():
        rows = buffer.take(*(clock.progress for clock in progress.timelines(stream)))
        arrived[stream] = rows
        for name, view in views.get(stream, {}).items():
            arrived[name] = sorted(map(view.of_row, rows), key=_time)
    return arrived


class Judge:
    """What becomes of rows in the order in which they come."""

    def __init__(self, progress: Progress, stream: str, trusted: bool) -> None:
        """`trusted` rows, a program's own facts, are there all at once, and none is doubted."""
        self._all, self._trusted = progress, trusted
        self._clocks = progress.timelines(stream)
        self._progress = [clock.progress for clock in self._clocks]
        self._latest = [clock.seen for clock in self._clocks]
        self._known = [progress.known(clock.stream) for clock in self._clocks]

    def late(self, row: Row) -> tuple[Clock, int] | None:
        """The first timeline that has passed the row, and where it is."""
        for clock, at in zip(self._clocks, self._progress, strict=True):
            if int(row[clock.column]) < at:
                return None if self._trusted else (clock, at)
        return None

    def doubted(self, row: Row) -> tuple[Clock, int] | None:
        """The first timeline on which the row is too far ahead, and the latest time known there."""
        for clock, known in zip(self._clocks, self._known, strict=True):
            time: Any = row[clock.column]
            if clock.horizon is not None and BEGIN < known < time - clock.horizon:
                return None if self._trusted else (clock, known)
        return None

    def take(self, row: Row) -> None:
        for at, clock in enumerate(self._clocks):
            time: Any = row[clock.column]
            self._latest[at] = max(self._latest[at], time)
            self._known[at] = max(self._known[at], time)
            self._progress[at] = max(self._progress[at], time - clock.slack)

    def done(self) -> None:
        for clock, latest, progress in zip(self._clocks, self._latest, self._progress, strict=True):
            self._all.saw(clock, latest, progress)


class SeveralTimelines:
    """The buffer of a stream that makes progress on several columns. A row leaves when one of
    them has passed it, and can come again while none has."""

    def __init__(self, columns: Sequence[int]) -> None:
        self.columns = tuple(columns)
        self.fresh: list[Row] = []  # what has not left
        self._edge: set[Row] = set()  # what has left, and can still come again
        self.duplicates = 0
        self._undo: tuple[list[Row], set[Row], int] | None = None

    def __len__(self) -> int:
        return len(self.fresh)

    def rows(self) -> list[Row]:
        return list(self.fresh)

    def edge(self) -> list[Row]:
        return list(self._edge)

    def restore(self, rows: Sequence[Row], edge: Sequence[Row], duplicates: int) -> None:
        self.fresh[:], self._edge, self.duplicates = rows, set(edge), duplicates

    def take(self, *progress: int) -> list[Row]:
        """The rows that one of the timelines has passed or reached, by the first of them."""
        passed = tuple(zip(self.columns, progress, strict=True))
        leaving: list[Row] = []
        staying: list[Row] = []
        for row in self.fresh:
            is_leaving = any(row[column] <= at for column, at in passed)  # type: ignore[operator]
            (leaving if is_leaving else staying).append(row)
        self._undo = (list(self.fresh), self._edge, self.duplicates)
        self.fresh[:] = staying
        unique = [row for row in dict.fromkeys(leaving) if row not in self._edge]
        self.duplicates += len(leaving) - len(unique)
        self._edge = {
            row
            for row in (*self._edge, *unique)
            if all(row[column] >= at for column, at in passed)  # type: ignore[operator]
        }
        unique.sort(key=_time)
        return unique

    def put_back(self) -> None:
        """Undo the last `take`: what left was not used."""
        if self._undo is not None:
            self.fresh[:], self._edge, self.duplicates = self._undo
            self._undo = None

    def earliest(self, column: int = 0) -> int | None:
        """The earliest of the times, in a column, of the rows that are held."""
        times = (row[column] for row in self.fresh)
        found = min(times, default=None)
        return found if isinstance(found, int) else None
