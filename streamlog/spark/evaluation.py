"""One batch of a program over DataFrames.

A batch moves the streams' progress, and with it the time up to which each predicate is complete.
So each conjunction has a slice of time to decide: from where its predicate was complete before,
up to where the conjunction's goals are complete now. Everything it looks at there is known, and
one query finds the slice's rows whatever the number of timestamps in it. Rows that were found in
an earlier batch, at instants that were still open, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from functools import cache, reduce
from itertools import count

from attrs import Factory, evolve, frozen, mutable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamlog.analysis.builtins import TICK
from streamlog.compiler import Planned
from streamlog.plan.parts import Stage, Strategy, part, reads, rules_of
from streamlog.plan.paths import Paths, base_rules
from streamlog.plan.pivot import Pivot, find
from streamlog.plan.sql import (
    Context,
    Version,
    group_query,
    is_grouped,
    named,
    render,
    rule_query,
)
from streamlog.plan.steps import Fold, RulePlan
from streamlog.plan.strategies import NO_PATHS
from streamlog.runtime.executor import BEGIN, Limits, Row
from streamlog.runtime.facts import known_facts
from streamlog.runtime.frontier import Frontiers
from streamlog.spark import graph, sums, tasks, wire
from streamlog.spark.columns import ColumnTypes
from streamlog.spark.fixpoint import Versions, fixpoint
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import FIRST_INSTANT, LAST_INSTANT, Type

# Slices reach no further, so that offsets can be added to their ends; rows of streams lie half as
# far from there as from zero.
FIRST, LAST = FIRST_INSTANT + FIRST_INSTANT // 2, LAST_INSTANT + LAST_INSTANT // 2

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
class Relation:
    """The rows of a predicate: those from before that are still needed, and those of the batch."""

    old: DataFrame | None = None
    new: DataFrame | None = None

    @property
    def total(self) -> DataFrame | None:
        if self.old is None or self.new is None:
            return self.old if self.new is None else self.new
        return self.old.unionAll(self.new)


@mutable
class Batch:
    """What comes out: the new rows of each predicate, and the states of the kernels."""

    relations: dict[str, Relation] = Factory(dict)
    states: dict[int, DataFrame] = Factory(dict)  # by the number of the stage
    cached: list[DataFrame] = Factory(list)
    rounds: int = 0

    def release(self) -> None:
        for frame in self.cached:
            frame.unpersist()


def context(program: Planned, types: ColumnTypes) -> Context:
    """What queries must know of a program."""
    return Context(program.plan, program.types, program.times, column_types=types)


class Evaluation:
    """A program that is evaluated over DataFrames, batch by batch."""

    def __init__(
        self,
        spark: SparkSession,
        program: Planned,
        types: ColumnTypes,
        stages: Iterable[Stage],
        *,
        limits: Limits | None = None,
        kernels: int = 1,
        sliced: bool = True,
        paths: Mapping[str, Paths] = NO_PATHS,
    ) -> None:
        """`types` has every predicate. `kernels` is how many do a stage that has a pivot. Unless
        `sliced`, there is one batch, with everything, and rows of inputs may come several times."""
        self.spark, self.program, self.types = spark, program, types
        self.plan, self.schema = program.plan, program.schema
        self.stages = tuple(stages)
        self.uses_tick = any(TICK in c.preds for c in self.plan.components)
        self.limits = limits or Limits()
        self.kernels = kernels
        self.paths = paths
        self.sliced = sliced
        self.width = max([tasks.width(self.plan), *map(len, types.values())])
        self.known = known_facts(program)
        self._prefix = f"streamlog_{next(_numbers)}_"
        sums.register(spark)
        self._numbers = {pred: number for number, pred in enumerate(self.plan.arity)}
        self.context = evolve(
            context(program, types),
            table=lambda pred, version: named(self._view(pred, version)),
            sliced=sliced,
        )
        self._parts = {
            number: part(self.plan, stage.components)
            for number, stage in enumerate(self.stages)
            if stage.strategy is Strategy.KERNEL
        }
        self.pivots: Mapping[int, Pivot] = {
            number: pivot
            for number, plan in self._parts.items()
            if (pivot := find(plan, self.schema.is_temporal, lambda p, c: types[p][c]))
        }
        self._derived = {r.rule.head.pred for r in self.plan.rules} | {TICK}
        self._uses = self._count_uses()
        # The texts of queries are the same in every batch.
        self._text_of_rule = cache(
            lambda rule, delta: render(rule_query(rule, self.context, delta), "spark")
        )
        self._text_of_group = cache(
            lambda grouping: render(group_query(grouping, self.context), "spark")
        )

    def within(self, spark: SparkSession, kernels: int) -> Evaluation:
        """The same in another session, that of a streaming query, which knows its own views; and
        with as many kernels as a run was begun with."""
        made = copy(self)
        made.spark, made.kernels = spark, kernels
        return made

    def layout(self, kernels: int) -> list[list[object]]:
        """What must stay as it is while there is state: who does what, and with which rows."""
        columns = {n: dict(p.columns) for n, p in self.pivots.items()} if kernels > 1 else {}
        return [
            [stage.strategy.value, list(stage.preds), columns.get(number, {})]
            for number, stage in enumerate(self.stages)
        ]

    def run(
        self,
        arrived: Mapping[str, DataFrame],
        kept: Mapping[str, DataFrame],
        states: Mapping[int, DataFrame],
        moment: Moment,
    ) -> Batch:
        """Only recursion over DataFrames is computed here; the rest when it is asked for.

        `arrived` are new rows of streams, and in the first batch those of tables, none twice.
        """
        batch = Batch()
        for pred in self.types:
            new = arrived.get(pred)
            if new is not None and not self.sliced and self._counts_rows_of(pred):
                new = new.distinct()
            batch.relations[pred] = Relation(kept.get(pred), new)
        if self.uses_tick:
            batch.relations[TICK].new = self._ticks(arrived, kept.get(TICK))
        for number, stage in enumerate(self.stages):
            if stage.strategy is Strategy.KERNEL:
                self._in_kernels(number, stage, batch, states.get(number), moment)
                continue
            if moment.before is not None and not self._is_temporal(stage):
                continue  # tables do not change
            if stage.strategy is Strategy.GRAPH:
                self._by_graph(self.paths[stage.preds[0]], batch, moment)
            elif stage.strategy is Strategy.FIXPOINT:
                self._by_fixpoint(stage.preds, batch, moment)
            else:
                self._by_queries(stage.preds[0], batch, moment)
        return batch

    # ------------------------------------------------------------------------ queries

    def _by_queries(self, pred: str, batch: Batch, moment: Moment) -> None:
        rules = rules_of(self.plan, [pred])
        self._register_all(rules, batch)
        found: list[DataFrame] = []
        for rule in rules:
            if rule.group is None:
                found.append(self._rows(rule, None, moment))
        for grouping in self.plan.groupings:
            if grouping.pred == pred:
                members = [r for r in rules if r.group == grouping.number]
                limit = min(moment.now.limit(r) for r in members)
                found.append(self._sql(self._text_of_group(grouping), pred, limit, moment))
        found += self._facts(pred, moment)
        rows = reduce(DataFrame.unionAll, found)
        if len(found) > 1 or not all(map(self._gives_sets, rules)):
            rows = rows.distinct()
        relation = batch.relations[pred]
        if relation.old is not None and self.schema.is_temporal(pred):
            open_before = relation.old.where(F.col("c0") >= moment.low(pred))
            rows = rows.subtract(open_before)
        relation.new = self._cached(pred, rows, batch)

    def _by_fixpoint(self, preds: tuple[str, ...], batch: Batch, moment: Moment) -> None:
        rules = rules_of(self.plan, preds)
        self._register_all(rules, batch)

        def find(versions: Versions) -> Mapping[str, DataFrame]:
            found: dict[str, list[DataFrame]] = {}
            for rule, delta in versions:
                found.setdefault(rule.rule.head.pred, []).append(self._rows(rule, delta, moment))
            if all(delta is None for _, delta in versions):  # the first round
                for pred in preds:
                    found.setdefault(pred, []).extend(self._facts(pred, moment))
            return {p: reduce(DataFrame.unionAll, frames) for p, frames in found.items() if frames}

        before = {p: batch.relations[p].old for p in preds}
        totals, rounds = fixpoint(rules, before, self._register, find, self.limits)
        batch.rounds += rounds
        for pred, total in totals.items():
            batch.relations[pred].new = total.added
            batch.cached += (piece.rows for piece in total.pieces)

    def _by_graph(self, paths: Paths, batch: Batch, moment: Moment) -> None:
        rules = base_rules(paths, self.plan)
        self._register_all(rules, batch)
        found = [self._rows(rule, None, moment) for rule in rules]
        base = reduce(DataFrame.unionAll, found + self._facts(paths.pred, moment))
        totals = {arc.pred: batch.relations[arc.pred].total for arc in paths.arcs}
        known = {p: self.frame(p, []) if rows is None else rows for p, rows in totals.items()}
        batch.relations[paths.pred].new = graph.relation(paths, base.persist(), known)
        batch.cached.append(base)

    def _rows(self, rule: RulePlan, delta: int | None, moment: Moment) -> DataFrame:
        """What a conjunction gives in its slice."""
        text = self._text_of_rule(rule, delta)
        return self._sql(text, rule.rule.head.pred, moment.now.limit(rule), moment)

    def _facts(self, pred: str, moment: Moment) -> list[DataFrame]:
        """What the program's text says of a predicate with rules."""
        is_first = moment.before is None and pred in self.known
        return [self.frame(pred, self.known[pred])] if is_first else []

    def _sql(self, text: str, pred: str, limit: int, moment: Moment) -> DataFrame:
        args = None
        if self.sliced and self.schema.is_temporal(pred):
            args = {"low": moment.low(pred), "high": clamped(limit)}
        rows = self.spark.sql(text, args=args)
        return wire.cast(rows, self.types[pred])

    def _view(self, pred: str, version: Version) -> str:
        """Spark does not take every name, and some of them for the same."""
        return f"{self._prefix}{version.value}_{self._numbers[pred]}"

    def _register(self, pred: str, version: Version, rows: DataFrame | None) -> None:
        if rows is None:
            rows = self.frame(pred, [])
        rows.createOrReplaceTempView(self._view(pred, version))

    def _register_all(self, rules: Iterable[RulePlan], batch: Batch) -> None:
        for pred in set().union(*(reads(r) for r in rules)):
            self._register(pred, Version.TOTAL, batch.relations[pred].total)

    def _ticks(self, arrived: Mapping[str, DataFrame], old: DataFrame | None) -> DataFrame:
        """The timestamps of all streams' rows, each once."""
        rows = self.times(arrived).distinct()
        return rows if old is None else rows.subtract(old)

    def times(self, arrived: Mapping[str, DataFrame]) -> DataFrame:
        found = [rows.select("c0") for s, rows in arrived.items() if self.schema.is_temporal(s)]
        return reduce(DataFrame.unionAll, found) if found else self.frame(TICK, [])

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

    # ------------------------------------------------------------------------ kernels

    def _in_kernels(
        self, number: int, stage: Stage, batch: Batch, state: DataFrame | None, moment: Moment
    ) -> None:
        plan, pivot = self._parts[number], self.pivots.get(number)
        job = tasks.Job(
            tasks.shipped(self.program, plan),
            moment.progress,
            moment.spoken_of,
            self.limits,
            self.width,
            pivot,
            1 if pivot is None else self.kernels,
        )
        begun = self.spark.range(job.kernels).select(
            F.lit(True).alias("c0"), F.col("id").alias(wire.PART)
        )
        rows = wire.packed(begun, tasks.BEGUN, (Type.BOOL,), self.width)
        given = [p for c in plan.components for p in c.preds if p not in stage.preds]
        for pred in given:
            new = batch.relations[pred].new
            if new is not None:
                new = tasks.seated(new, job, pred)
                rows = rows.unionAll(wire.packed(new, pred, self.types[pred], self.width))
        if state is not None:
            rows = rows.unionAll(state)
        out = tasks.run(rows, job).persist()
        batch.cached.append(out)
        for pred in stage.preds:
            batch.relations[pred].new = wire.unpacked(out, tasks.ANSWER + pred, self.types[pred])
        batch.states[number] = out.where(F.col(wire.TABLE).startswith(tasks.STATE))

    # ------------------------------------------------------------------------- frames

    def frame(self, pred: str, rows: Iterable[Row]) -> DataFrame:
        """Rows at hand as a relation."""
        types = self.types[pred]
        table = wire.relation(list(rows), types)
        return self.spark.createDataFrame(table, schema=wire.columns(types))

    def _cached(self, pred: str, rows: DataFrame, batch: Batch) -> DataFrame:
        """What is read more than once is computed once."""
        if self._uses.get(pred, 0) > 1:
            rows = rows.persist()
            batch.cached.append(rows)
        return rows

    def _count_uses(self) -> Mapping[str, int]:
        uses = dict.fromkeys(self.program.contract.outputs, 1)
        for stage in self.stages:
            for rule in rules_of(self.plan, stage.preds):
                for pred in reads(rule):
                    uses[pred] = uses.get(pred, 0) + 1
        return uses

    def _is_temporal(self, stage: Stage) -> bool:
        return any(self.schema.is_temporal(p) for p in stage.preds)
