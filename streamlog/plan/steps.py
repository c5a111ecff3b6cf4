"""Pipelines: what executors execute.

A rule becomes pipelines of steps. Each reads the rows so far and produces more bindings of the
rule's variables, or fewer; the last step says what a solution is good for.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from streamlog.analysis.sufficient_rows import SufficientRows
from streamlog.syntax.ast import Atom, Comparison, Const, Limit, Rule, Term, Var

if TYPE_CHECKING:
    from streamlog.plan.paths import Closure


class Store(enum.Enum):
    """How an index keeps the rows of a key."""

    ROWS = "rows"  # as they come
    BY_TIME = "by time"  # in the order of their timestamps
    EARLIEST = "earliest"  # the earliest timestamp alone


@frozen
class Index:
    """Rows of a predicate by the values of some columns."""

    pred: str
    key: tuple[int, ...]
    store: Store
    settled: bool = False  # without rows that a better one may still replace
    where: tuple[tuple[int, Const], ...] = ()  # only rows with these values
    columns: tuple[int, ...] | None = None  # what is stored of a row beside the key; None: all
    is_set: bool = False  # rows of which the same is stored are stored once
    sums: tuple[int, ...] = ()  # columns of which running totals are stored instead

    @property
    def name(self) -> str:
        columns = "_".join(map(str, self.key)) or "all"
        settled = "_settled" if self.settled else ""
        values = repr([(position, const.value) for position, const in self.where])
        where = f"_of_{sha256(values.encode()).hexdigest()[:16]}" if self.where else ""
        kept = "" if self.columns is None else "_".join(map(str, ("", "with", *self.columns)))
        sums = "_".join(map(str, ("", "sums", *self.sums))) if self.sums else ""
        name = f"{self.pred}_{self.store.name.lower()}_{columns}{settled}{where}{kept}{sums}"
        return f"{name}_set" if self.is_set else name

    @property
    def fixed(self) -> frozenset[int]:
        """The columns whose values a row found here is known to have."""
        return frozenset(self.key) | {position for position, _ in self.where}

    def known(self, arity: int) -> frozenset[int]:
        """The columns of a row that follow from what is stored."""
        if self.columns is None and self.store is not Store.EARLIEST:
            return frozenset(range(arity))
        time = () if self.store is Store.ROWS else (0,)
        return self.fixed | {*(self.columns or ()), *self.sums, *time}

    @property
    def has_rows(self) -> bool:
        """Whether, in the order of time, anything but timestamps and totals is stored."""
        return self.columns not in ((), (0,))


@frozen
class Join:
    """Each stored row of a goal with the key's values, its timestamp from `low` to `high`.

    With `not_itself` the row that the pipeline started from is passed over: combinations in
    which it stands at an earlier goal too are found from there. With `latest` only rows with one
    of the so many latest of these timestamps are found.
    """

    atom: Atom
    index: Index
    low: Term | None = None
    high: Term | None = None
    not_itself: bool = False
    latest: int | None = None

    def __attrs_post_init__(self) -> None:
        names = [a.name for a in self.atom.args if isinstance(a, Var)]
        if len(set(names)) < len(names):
            raise ValueError("goals are desugared: a variable stands in one place")


@frozen
class Filter:
    """Goes on when the comparison, or the built-in test, holds. With `skips` it does not hold
    where it cannot be computed."""

    test: Comparison | Atom
    skips: bool = False


@frozen
class Extend:
    """Gives a variable the value of a term; with `skips`, goes on only if there is one."""

    var: Var
    term: Term
    skips: bool = False


@frozen
class Exists:
    """Goes on when the inner steps have a solution (`wanted`), or when they have none."""

    steps: tuple[Step, ...]
    wanted: bool


@frozen
class Fold:
    """Gives a variable the aggregate over a column of the rows a join finds, if there are any.

    A window: `week(T, S, sum(A)) <- asked(T, S), sale(T0, S, A), T0 <= T, T0 > T - 1week`.
    """

    var: Var
    func: str
    join: Join
    column: int | None  # None for a count


@frozen
class Ranked:
    """Each row a join finds whose value, in a column, from `least` to less than `limit` rows
    exceed that the join finds and that are not earlier; and how many, for all rows of the value.

    `book(T, O, N) <- traded(T, O), trade(U, N, O), T - 1d <= U, U < T, newer(T, O, N, K), K < 4`.
    """

    var: Var
    join: Join
    column: int
    highest: bool  # higher values exceed lower ones, else the other way round
    same_time: bool  # rows of the same instant may exceed each other, too
    least: int
    limit: int


Step: TypeAlias = Fold | Ranked | Join | Filter | Extend | Exists


@frozen
class Pipeline:
    """From one new row of one goal to the values that `RulePlan.carries` names."""

    start: Atom | None  # None: once, at the beginning; the rule has no positive goal
    steps: tuple[Step, ...]


@frozen
class Awaits:
    """A candidate at T can be decided when `pred` is complete up to T + `ahead` (None: all); or,
    instead, another timeline of it up to T plus what is said there."""

    pred: str
    ahead: int | None
    instead: tuple[tuple[str, int], ...] = ()

    @property
    def ways(self) -> tuple[tuple[str, int | None], ...]:
        """Each is enough."""
        return ((self.pred, self.ahead), *self.instead)


@frozen
class RulePlan:
    """One conjunction of a rule.

    The pipelines find every solution of the positive goals exactly once, from the row that
    arrives last. What they carry is decided by `checks` as soon as everything in `awaits` is
    complete; without checks and aggregates that is at once.
    """

    number: int
    rule: Rule
    head: tuple[Term, ...]  # as in the rule, its timestamp a variable
    pipelines: tuple[Pipeline, ...]
    carries: tuple[Var, ...]  # the head's timestamp first, if it has one
    checks: tuple[Step, ...]
    awaits: tuple[Awaits, ...]
    order: tuple[Var, ...]  # the timestamps of its goals, for `first` and `last`
    group: int | None  # which grouping its solutions go to; None: they are rows of the head
    once: bool  # no row of the head can be found twice
    is_timer: bool  # goes on by itself, so it must be held back until its time has come
    waits: bool = False  # for what it awaits, though nothing may be left to check

    @property
    def is_immediate(self) -> bool:
        return not (self.checks or self.group is not None or self.is_timer or self.waits)

    def passes(self, pipeline: Pipeline) -> bool:
        """Whether new rows are candidates as they stand, and candidates come in no other way."""
        return (
            not self.is_immediate
            and len(self.pipelines) == 1
            and not pipeline.steps
            and pipeline.start is not None
            and pipeline.start.args == self.carries
        )


@frozen
class Grouping:
    """Solutions of one or more conjunctions, aggregated together.

    All branches of one rule; for `min` and `max`, all rules of a predicate that agree on them.
    A solution is counted once even if several branches find it, so each carries the values of
    all its variables when there are several.
    """

    number: int
    pred: str
    aggregates: tuple[tuple[int, str], ...]  # head position and function
    members: tuple[int, ...]
    improving: bool  # a min or max within its own recursion: better values replace worse ones
    distinct: bool
    limit: Limit | None = (
        None  # instead of aggregates: of each group, `per` all of these, some rows
    )


@frozen
class Component:
    """Predicates that depend on each other, or one that does not depend on itself."""

    preds: tuple[str, ...]
    is_recursive: bool
    is_ordered: bool  # it negates or aggregates within itself: by clock and stratum
    is_timer: bool  # it goes on by itself into the future, without bound


@frozen
class Plan:
    components: tuple[Component, ...]
    rules: tuple[RulePlan, ...]
    groupings: tuple[Grouping, ...]
    improving: Mapping[str, frozenset[str]]  # by predicate, those that may see unsettled rows
    indexes: tuple[Index, ...]
    readers: Mapping[Index, tuple[Reader, ...]]
    arity: Mapping[str, int]
    thinned: Mapping[Index, Old]  # those of whose old rows a few are enough
    closures: Mapping[str, Closure] = {}  # recursions that a kernel makes from their base

    def members(self, grouping: Grouping) -> list[RulePlan]:
        """A part of a plan has rules with gaps between their numbers."""
        return [rule for rule in self.rules if rule.number in grouping.members]


@frozen
class Reader:
    """A use of an index: rows older than (progress of `pred`) + `back` are no longer needed. Nor
    are rows of which another timestamp, in the column `elsewhere` names, is older than that."""

    pred: str
    back: int | None
    elsewhere: tuple[tuple[int, int], ...] = ()


@frozen
class Old:
    """Rows earlier than (progress of `pred`) + `back` of every reader are old. Of old rows, those
    are kept that one of the readers needs."""

    readers: tuple[Reader, ...]
    sufficient: tuple[SufficientRows, ...]
