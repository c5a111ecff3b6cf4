"""What became of rows and solutions: those set aside, and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import asdict, frozen, mutable

from streamlog.runtime.executor import END, Row
from streamlog.runtime.progress import Clock
from streamlog.runtime.values import moment
from streamlog.syntax.ast import Option, Type


@frozen
class Late:
    """A row that came when its time had passed. It changes nothing any more."""

    stream: str
    row: Row
    progress: int
    clock: Type | None
    timeline: str  # which has passed it
    column: int = 0  # with the timestamp

    @property
    def reason(self) -> str:
        if self.progress >= END:
            return f"`{self.stream}` has ended"
        row = moment(int(self.row[self.column]), self.clock)
        passed = moment(self.progress, self.clock)
        return f"{row} is earlier than {passed}, which `{self.timeline}` has passed"


def too_far_ahead(row: Row, clock: Clock, type_: Type | None, known: int, horizon: Option) -> str:
    """Why a row is doubted."""
    time = moment(int(row[clock.column]), type_)
    return (
        f"{time} is more than the horizon of {horizon.span.text[8:]} after "
        f"{moment(known, type_)}, the latest time known"
    )


@frozen
class Skipped:
    """A solution of a rule that cannot be computed, and was left out."""

    rule: str  # its file and line
    reason: str
    values: str  # of the rule's variables, as JSON


@frozen
class StreamCount:
    """What became of a stream's rows. Duplicates are counted when their time has come."""

    rows: int = 0
    late: int = 0
    rejected: int = 0
    duplicates: int = 0


@frozen
class Report:
    """An engine's figures so far."""

    streams: Mapping[str, StreamCount]
    answers: Mapping[str, int]
    skipped: Mapping[str, int]  # solutions, by the place of their rule; of rules that may fail
    steps: int
    state: int  # rows held now
    state_high: int  # the most rows held after any step


@mutable
class Counts:
    """The figures while the engine runs."""

    rows: dict[str, int]
    late: dict[str, int]
    rejected: dict[str, int]
    answers: dict[str, int]
    skipped: dict[str, int]
    steps: int = 0
    state: int = 0
    state_high: int = 0

    @staticmethod
    def of(inputs: Iterable[str], outputs: Iterable[str], rules: Iterable[str]) -> Counts:
        rows = dict.fromkeys(inputs, 0)
        answers, skipped = dict.fromkeys(outputs, 0), dict.fromkeys(rules, 0)
        return Counts(rows, dict(rows), dict(rows), answers, skipped)

    @staticmethod
    def restored(figures: Mapping[str, Any]) -> Counts:
        state, state_high = figures["state"]
        return Counts(
            dict(figures["rows"]),
            dict(figures["late"]),
            dict(figures["rejected"]),
            dict(figures["answers"]),
            dict(figures["skipped"]),
            figures["steps"],
            state,
            state_high,
        )

    def saved(self) -> dict[str, Any]:
        figures = asdict(self, recurse=False)
        return figures | {"state": [self.state, figures.pop("state_high")]}

    def took(self, stream: str, rows: int, late: int, rejected: int) -> None:
        self.rows[stream] += rows
        self.late[stream] += late
        self.rejected[stream] += rejected

    def held(self, rows: int) -> None:
        self.state, self.state_high = rows, max(self.state_high, rows)

    def report(self, duplicates: Mapping[str, int]) -> Report:
        streams = {
            n: StreamCount(rows, self.late[n], self.rejected[n], duplicates.get(n, 0))
            for n, rows in self.rows.items()
        }
        answers, skipped = dict(self.answers), dict(self.skipped)
        return Report(streams, answers, skipped, self.steps, self.state, self.state_high)
