"""What became of rows and solutions: those set aside, and figures."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

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
