"""Times of arrival: `sys: time arrival` is stamped by the engine as rows come.

No two rows have the same stamp, whatever streams they are of: each is later than the one before,
and not earlier than the clock's reading or than what its stream has passed. A stamp stays with its
row wherever that goes: into checkpoints, and into answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlog.compiler import Program
from streamlog.runtime.executor import BEGIN, END, Row
from streamlog.runtime.ingest import Check, Checker, Reject
from streamlog.runtime.progress import Progress


class Stamps:
    def __init__(self, program: Program, progress: Progress, now: Callable[[], int]) -> None:
        self._progress, self._now = progress, now
        self._checkers = {
            name: Checker(program, name)
            for name in program.schema.streams
            if program.schema[name].arrival is not None
        }
        self.columns = {name: program.schema[name].arrival or 0 for name in self._checkers}
        self._timelines = {
            name: next((c.stream for c in progress.timelines(name) if c.column == column), None)
            for name, column in self.columns.items()
        }
        self.last = BEGIN

    def next(self, stream: str) -> int:
        """The stamp of the row that comes now."""
        self.last = self._after(self._timelines[stream])
        return self.last

    def reserve(self, count: int) -> int:
        """The first of so many stamps in a row, for rows of any stream."""
        first = max(map(self._after, self._timelines.values()))
        self.last = first + count - 1
        return first

    def _after(self, timeline: str | None) -> int:
        passed = BEGIN if timeline is None else self._progress[timeline].progress
        return max(self._now(), self.last + 1, passed if passed < END else BEGIN)

    def stamping(self, stream: str, check: Check) -> Check:
        """`check`, of rows as they arrive, with a stamp for those that are good."""
        if stream not in self.columns:
            return check
        at, checker = self.columns[stream], self._checkers[stream]

        def stamped(raw: Any) -> Row | Reject:
            row = check(raw)
            if isinstance(row, Reject):
                return row
            row = (*row[:at], self.next(stream), *row[at:])
            broken = next((r for r in checker.relations if r.is_broken_by(row)), None)
            if broken is None:
                return row
            return Reject(stream, raw, checker.contradiction(broken, row))

        return stamped
