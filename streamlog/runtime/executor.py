"""What the runtime asks of whatever evaluates the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from attrs import define, frozen

from streamlog.syntax.ast import Value

if TYPE_CHECKING:
    from streamlog.compiler import Planned

# A fact without its predicate. The first value of a timestamped one is its time, as an int.
Row: TypeAlias = tuple[Value, ...]

# The progress of a stream is the time W such that everything earlier than W has come.
BEGIN = -(2**63)
END = 2**63  # later than every timestamp: the stream has ended


@frozen
class Limits:
    """Where an evaluation is stopped, with an error that names the rule and the limit.

    Whether a recursion ends cannot be seen from how many rounds it has gone, nor from how long it
    takes; so by default only what a machine cannot bear stops it.
    """

    rounds: int | None = None  # of a recursion while time stands still; None: any number
    rows: int | None = 100_000_000  # of a recursion in one step; None: any number
    seconds: float | None = None  # of one step; None: any number
    memory: int | None = None  # bytes of a process; None: `memory.share`

    def reached(self, rounds: int, rows: int, seconds: float) -> str | None:
        """The limit that is passed, in words."""
        if self.rounds is not None and rounds > self.rounds:
            return f"{self.rounds:,} rounds (--max-rounds)"
        if self.rows is not None and rows > self.rows:
            return f"{self.rows:,} rows (--max-rows)"
        if self.seconds is not None and seconds > self.seconds:
            return f"{self.seconds:g} seconds (--max-seconds)"
        return None


class LimitError(Exception):
    """A limit was reached; the message names the limit, the rule, and how far it got."""


class Executor(Protocol):
    """Evaluates a program step by step. Answers are final: a row is returned once, never taken
    back, and does not depend on how the rows were cut into steps."""

    def step(
        self, arrived: Mapping[str, Sequence[Row]], progress: Mapping[str, int]
    ) -> Mapping[str, list[Row]]:
        """Take new rows of the streams and the streams' new progress.

        Rows of one stream come in the order of their times, over all steps, none twice, none
        earlier than the progress the stream had before and none later than the new one. Those of
        a stream with several timelines come under the name of each, when one of them has passed
        them; on another they may lie later.
        Returns the rows of every derived predicate that have become certain.
        """

    def holding(self) -> Mapping[str, list[Row]]:
        """The rows in memory that future answers may still need, by predicate, sorted."""


@runtime_checkable
class Resumable(Executor, Protocol):
    """An executor whose state can be saved, to go on from in another process."""

    def save(self) -> Mapping[str, list[Row]]:
        """Everything that must survive a restart, as rows by table name."""

    def load(self, saved: Mapping[str, list[Row]]) -> None:
        """Continue from what `save` returned, in an executor of the same program."""


@frozen
class Saved:
    """An engine's state as data: figures that JSON can hold, and rows by table."""

    figures: Mapping[str, Any]
    tables: Mapping[str, Sequence[Row]]


@runtime_checkable
class Measured(Protocol):
    """An executor that can say cheaply how much it holds, and what its time went into."""

    seconds: Mapping[str, float]

    def size(self) -> int:
        """How many rows are in memory: those of `holding`, and what is yet to be dropped."""


@define
class Cost:
    """What a rule took so far."""

    seconds: float = 0.0
    rows_in: int = 0  # new rows that it started from
    rows_out: int = 0  # what it found: rows of its head, or solutions to aggregate
    rounds: int = 0  # how often it was given rows


@runtime_checkable
class Profiled(Protocol):
    """An executor that knows what each rule costs, if it was asked to measure that."""

    @property
    def costs(self) -> Mapping[str, Cost]:
        """By rule, in words."""


# Makes an executor for a program and the rows of its tables.
ExecutorFactory: TypeAlias = Callable[["Planned", Mapping[str, Sequence[Row]], Limits], Executor]
