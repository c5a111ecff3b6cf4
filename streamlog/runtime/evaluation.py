"""One batch of a program by queries, on whichever engine runs them.

A batch moves the streams' progress, and with it the time up to which each predicate is complete.
So each conjunction has a slice of time to decide: from where its predicate was complete before,
up to where the conjunction's goals are complete now. Everything it looks at there is known, and
one query finds the slice's rows whatever the number of timestamps in it. Rows that were found in
an earlier batch, at instants that were still open, are left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import count
from typing import ClassVar, Generic, TypeVar

from attrs import Factory, evolve, frozen, mutable

from streamlog.analysis.builtins import TICK
from streamlog.compiler import Planned
from streamlog.plan.parts import Stage, Strategy, part, reads, rules_of
from streamlog.plan.sql import (
    Context,
    Version,
    group_query,
    is_grouped,
    named,
    render,
    rule_query,
)
from streamlog.plan.steps import Fold, Grouping, RulePlan
from streamlog.runtime.columns import ColumnTypes
from streamlog.runtime.executor import BEGIN, Limits, Row
from streamlog.runtime.facts import known_facts
from streamlog.runtime.fixpoint import Total, Versions, fixpoint
from streamlog.runtime.frontier import Frontiers
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import FIRST_INSTANT, LAST_INSTANT

# Slices reach no further, so that offsets can be added to their ends; rows of streams lie half as
# far from there as from zero.
FIRST, LAST = FIRST_INSTANT + FIRST_INSTANT // 2, LAST_INSTANT + LAST_INSTANT // 2

R = TypeVar("R")  # what an engine calls rows: a DataFrame, a query

_numbers = count(1)


@frozen
class Moment:
    """Where a batch starts and ends in time."""

    before: Frontiers | None  # None: nothing has been evaluated yet
    now: Frontiers
    progress: Mapping[str, int]
    spoken_of: int = BEGIN  # the latest time of any row or progress

    def low(self, pred: str) -> int:
        """What lies before has been decided for good."""
        return FIRST if self.before is None else clamped(self.before.complete(pred))


def clamped(time: int) -> int:
    return max(FIRST, min(time, LAST))


@mutable
class Relation(Generic[R]):
    """The rows of a predicate: those from before that are still needed, and those of the batch."""

    old: R | None = None
    new: R | None = None

    @property
    def pieces(self) -> list[R]:
        return [rows for rows in (self.old, self.new) if rows is not None]


@mutable
class Batch(Generic[R]):
    """What comes out: the new rows of each predicate, and the states of kernels that live for one
    batch."""

    relations: dict[str, Relation[R]] = Factory(dict)
    states: dict[int, R] = Factory(dict)  # by the number of the stage
    stored: list[R] = Factory(list)  # on the way, to be freed when the batch is over
    rounds: int = 0


def context(program: Planned, types: ColumnTypes) -> Context:
    """What queries must know of a program."""
    return Context(program.plan, program.types, program.times, column_types=types)


class Evaluation(ABC, Generic[R]):
    """A program that is evaluated batch by batch. An engine says what it does with rows."""

    dialect: ClassVar[str]

    def __init__(
        self,
        program: Planned,
        types: ColumnTypes,
        stages: Iterable[Stage],
        limits: Limits | None = None,
        *,
        sliced: bool = True,
    ) -> None:
        """`types` has every predicate. Unless `sliced`, there is one batch, with everything, and
        rows of inputs may come several times."""
        self.program, self.types = program, types
        self.plan, self.schema = program.plan, program.schema
        self.stages = tuple(stages)
        self.uses_tick = any(TICK in c.preds for c in self.plan.components)
        self.limits = limits or Limits()
        self.sliced = sliced
        self.known = known_facts(program)
        self._prefix = f"streamlog_{next(_numbers)}_"
        self._numbers = {pred: number for number, pred in enumerate(self.plan.arity)}
        self.context = evolve(
            context(program, types),
            table=lambda pred, version: named(self.view(pred, version)),
            sliced=sliced,
            slides=self.dialect == "duckdb",
        )
        self.parts = {
            number: part(self.plan, stage.components)
            for number, stage in enumerate(self.stages)
            if stage.strategy is Strategy.KERNEL
        }
        self._derived = {r.rule.head.pred for r in self.plan.rules} | {TICK}
        self.uses = self._count_uses()
        # The texts of queries are the same in every batch.
        self._text_of_rule = cache(
            lambda rule, delta: render(rule_query(rule, self.context, delta), self.dialect)
        )
        self._text_of_group = cache(
            lambda grouping: render(group_query(grouping, self.context), self.dialect)
        )

    # ------------------------------------------------------------- what engines do with rows

    @abstractmethod
    def frame(self, pred: str, rows: Iterable[Row]) -> R:
        """Rows at hand as a relation."""

    @abstractmethod
    def register(self, pred: str, version: Version, rows: R | None) -> None:
        """Let queries read these rows under the name of `view`."""

    @abstractmethod
    def query(self, text: str, pred: str, rules: Sequence[RulePlan], slice_: Slice | None) -> R:
        """What a query of some rules gives, in the types of a predicate's columns."""

    @abstractmethod
    def union(self, rows: Sequence[R]) -> R:
        """All of them, those that come twice included. There is at least one."""

    @abstractmethod
    def distinct(self, rows: R) -> R: ...

    @abstractmethod
    def without(self, rows: R, known: R) -> R:
        """Distinct rows that are not among others."""

    @abstractmethod
    def since(self, rows: R, time: int) -> R:
        """Rows of a predicate with timestamps from a time on."""

    @abstractmethod
    def times_of(self, rows: R) -> R:
        """The timestamps of rows."""

    @abstractmethod
    def store(self, pred: str, rows: R, batch: Batch[R]) -> R:
        """Rows that a query has found; what is read more than once is computed once."""

    @abstractmethod
    def total(self, pred: str, before: R | None) -> Total[R]:
        """A relation that a recursion adds to."""

    @abstractmethod
    def added(self, total: Total[R], batch: Batch[R]) -> R | None:
        """What a recursion has added."""

    @abstractmethod
    def doing(self, what: str) -> AbstractContextManager[None]:
        """Errors of the engine are in our words, and say what was done."""

    @abstractmethod
    def in_kernels(self, number: int, stage: Stage, batch: Batch[R], moment: Moment) -> None:
        """The new rows of the stage's predicates."""

    # -------------------------------------------------------------------------------- batches

    def evaluate(
        self, batch: Batch[R], arrived: Mapping[str, R], kept: Mapping[str, R], moment: Moment
    ) -> None:
        """`arrived` are new rows of streams, and in the first batch those of tables, none twice."""
        for pred in self.types:
            new = arrived.get(pred)
            if new is not None and not self.sliced and self._counts_rows_of(pred):
                new = self.distinct(new)
            batch.relations[pred] = Relation(kept.get(pred), new)
        if self.uses_tick:
            batch.relations[TICK].new = self._ticks(arrived, kept.get(TICK))
        for number, stage in enumerate(self.stages):
            if stage.strategy is Strategy.KERNEL:
                self.in_kernels(number, stage, batch, moment)
            elif moment.before is None or self._is_temporal(stage):  # tables do not change
                self.by_rules(stage, batch, moment)

    def by_rules(self, stage: Stage, batch: Batch[R], moment: Moment) -> None:
        """The new rows of a component that no kernel does."""
        if stage.strategy is Strategy.FIXPOINT:
            self._by_fixpoint(stage.preds, batch, moment)
        else:
            self.by_queries(stage.preds[0], batch, moment)

    def by_queries(self, pred: str, batch: Batch[R], moment: Moment) -> None:
        rules = rules_of(self.plan, [pred])
        self.register_all(rules, batch)
        found = [self.rows(rule, None, moment) for rule in rules if rule.group is None]
        for grouping in self.plan.groupings:
            if grouping.pred == pred:
                found.append(self._groups(grouping, rules, moment))
        found += self.facts(pred, moment)
        rows = self.union(found)
        if len(found) > 1 or not all(map(self._gives_sets, rules)):
            rows = self.distinct(rows)
        relation = batch.relations[pred]
        if relation.old is not None and self.schema.is_temporal(pred):
            rows = self.without(rows, self.since(relation.old, moment.low(pred)))
        relation.new = self.store(pred, rows, batch)

    def _by_fixpoint(self, preds: tuple[str, ...], batch: Batch[R], moment: Moment) -> None:
        rules = rules_of(self.plan, preds)
        self.register_all(rules, batch)

        def find(versions: Versions) -> Mapping[str, R]:
            found: dict[str, list[R]] = {}
            for rule, delta in versions:
                if rule.group is None:
                    found.setdefault(rule.rule.head.pred, []).append(self.rows(rule, delta, moment))
            if all(delta is None for _, delta in versions):  # the first round
                for grouping in self.plan.groupings:  # over what is not of this recursion
                    if grouping.pred in preds:
                        rows = self._groups(grouping, rules, moment)
                        found.setdefault(grouping.pred, []).append(rows)
                for pred in preds:
                    found.setdefault(pred, []).extend(self.facts(pred, moment))
            return {p: self.union(rows) for p, rows in found.items() if rows}

        totals = {p: self.total(p, batch.relations[p].old) for p in preds}
        batch.rounds += fixpoint(rules, totals, self.register, find, self.limits, self.doing)
        for pred, total in totals.items():
            batch.relations[pred].new = self.added(total, batch)

    def rows(self, rule: RulePlan, delta: int | None, moment: Moment) -> R:
        """What a conjunction gives in its slice."""
        text, pred = self._text_of_rule(rule, delta), rule.rule.head.pred
        return self.query(text, pred, [rule], self._slice(pred, moment.now.limit(rule), moment))

    def _groups(self, grouping: Grouping, rules: Iterable[RulePlan], moment: Moment) -> R:
        members = [r for r in rules if r.group == grouping.number]
        limit = min(moment.now.limit(r) for r in members)
        slice_ = self._slice(grouping.pred, limit, moment)
        return self.query(self._text_of_group(grouping), grouping.pred, members, slice_)

    def facts(self, pred: str, moment: Moment) -> list[R]:
        """What the program's text says of a predicate with rules."""
        is_first = moment.before is None and pred in self.known
        return [self.frame(pred, self.known[pred])] if is_first else []

    def _slice(self, pred: str, limit: int, moment: Moment) -> Slice | None:
        if not (self.sliced and self.schema.is_temporal(pred)):
            return None
        return Slice(moment.low(pred), clamped(limit))

    def view(self, pred: str, version: Version) -> str:
        """Engines do not take every name, and some of them for the same."""
        return f"{self._prefix}{version.value}_{self._numbers[pred]}"

    def register_all(self, rules: Iterable[RulePlan], batch: Batch[R]) -> None:
        for pred in sorted(set().union(*(reads(r) for r in rules))):
            pieces = batch.relations[pred].pieces
            self.register(pred, Version.TOTAL, self.union(pieces) if pieces else None)

    def _ticks(self, arrived: Mapping[str, R], old: R | None) -> R:
        """The timestamps of all streams' rows, each once."""
        rows = self.distinct(self.times(arrived))
        return rows if old is None else self.without(rows, old)

    def times(self, arrived: Mapping[str, R]) -> R:
        streams = [s for s in self.schema.streams if s in arrived]
        found = [self.times_of(arrived[s]) for s in streams]
        return self.union(found) if found else self.frame(TICK, [])

    # ------------------------------------------------------------------------ what queries do

    def _gives_sets(self, rule: RulePlan) -> bool:
        """Whether a conjunction's query gives no row twice, whatever its inputs do."""
        if rule.group is not None or is_grouped(rule, self.context):
            return rule.once
        repeating = () if self.sliced else reads(rule) - self._derived
        return rule.once and not repeating

    def _counts_rows_of(self, pred: str) -> bool:
        """Whether some rule would count a row that comes twice as two."""
        functions = {g.number: {f for _, f in g.aggregates} for g in self.plan.groupings}
        for rule in self.plan.rules:
            if pred in reads(rule):
                folds = {check.func for check in rule.checks if isinstance(check, Fold)}
                counting = functions.get(rule.group, set()) if rule.group is not None else set()
                if any(AGGREGATES[f].counts for f in counting | folds):
                    return True
        return False

    def _count_uses(self) -> Mapping[str, int]:
        """By predicate, how many rules and outputs read it."""
        uses = dict.fromkeys(self.program.contract.outputs, 1)
        for stage in self.stages:
            for rule in rules_of(self.plan, stage.preds):
                for pred in reads(rule):
                    uses[pred] = uses.get(pred, 0) + 1
        return uses

    def _is_temporal(self, stage: Stage) -> bool:
        return any(self.schema.is_temporal(p) for p in stage.preds)


@frozen
class Slice:
    """The timestamps that a query decides: from `low` to before `high`."""

    low: int
    high: int
