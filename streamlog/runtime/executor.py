"""What the runtime asks of whatever evaluates the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from attrs import frozen

if TYPE_CHECKING:
    from streamlog.compiler import Compilation

# A fact without its predicate. The first value of a timestamped one is its time, as an int.
Row: TypeAlias = tuple[int | float | str | bool, ...]

# The progress of a stream is the time W such that everything earlier than W has come.
BEGIN = -(2**63)
END = 2**63  # later than every timestamp: the stream has ended


@frozen
class Limits:
    """Where a runaway evaluation is stopped, with an error that names the rule."""

    rounds: int = 100_000  # of one fixpoint
    rows: int = 50_000_000  # derived in one step
    seconds: float = 3600.0  # of one step


class LimitError(Exception):
    """A limit was reached; the message names the rule, the round and how the relation grew."""


class Executor(Protocol):
    """Evaluates a program step by step. Answers are final: a row is returned once, never taken
    back, and does not depend on how the rows were cut into steps."""

    def step(
        self, arrived: Mapping[str, Sequence[Row]], progress: Mapping[str, int]
    ) -> Mapping[str, list[Row]]:
        """Take new rows of the streams and the streams' new progress.

        Rows of one stream come in the order of their times, over all steps, none twice, none
        earlier than the progress the stream had before and none later than the new one.
        Returns the rows of every derived predicate that have become certain.
        """

    def holding(self) -> Mapping[str, list[Row]]:
        """The rows in memory that future answers may still need, by predicate, sorted."""

    def save(self) -> Mapping[str, list[Row]]:
        """Everything that must survive a restart, as rows by table name."""

    def load(self, saved: Mapping[str, list[Row]]) -> None:
        """Continue from what `save` returned, in an executor of the same program."""


@runtime_checkable
class Measured(Protocol):
    """An executor that can say cheaply how much it holds, and what its time went into."""

    seconds: Mapping[str, float]

    def size(self) -> int:
        """How many rows are in memory: those of `holding`, and what is yet to be dropped."""


# Makes an executor for a program and the rows of its tables.
ExecutorFactory: TypeAlias = Callable[
    ["Compilation", Mapping[str, Sequence[Row]], Limits], Executor
]
