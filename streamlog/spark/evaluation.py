"""One batch of a program over DataFrames (`runtime.evaluation`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import reduce

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamlog.compiler import Planned
from streamlog.plan.parts import Stage, Strategy, part
from streamlog.plan.paths import Paths, base_rules
from streamlog.plan.pivot import Pivot, find
from streamlog.plan.sql import Version, with_slice
from streamlog.plan.steps import RulePlan
from streamlog.plan.strategies import NO_PATHS
from streamlog.runtime import evaluation
from streamlog.runtime.columns import ColumnTypes
from streamlog.runtime.errors import EvaluationError
from streamlog.runtime.evaluation import Moment, Slice
from streamlog.runtime.executor import Limits, Row
from streamlog.runtime.fixpoint import Total as AnyTotal
from streamlog.runtime.rounds import WITH_RULE
from streamlog.spark import graph, sums, tasks, wire
from streamlog.spark.failures import in_our_words, lacks_memory, out_of_memory
from streamlog.spark.fixpoint import Total
from streamlog.syntax.ast import Type

Batch = evaluation.Batch[DataFrame]
Relation = evaluation.Relation[DataFrame]


def _new(relation: Relation) -> list[DataFrame]:
    return [] if relation.new is None else [relation.new]


def _all(relation: Relation) -> list[DataFrame]:
    return relation.pieces


def release(batch: Batch) -> None:
    """Free what was kept for relations that are read several times."""
    for frame in batch.stored:
        frame.unpersist()


class Evaluation(evaluation.Evaluation[DataFrame]):
    """Only recursion over DataFrames is computed when it is evaluated; the rest when it is asked
    for."""

    dialect = "spark"

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
        """`kernels` is how many do a stage that has a pivot."""
        super().__init__(program, types, stages, limits, sliced=sliced)
        self.spark = spark
        self.kernels = kernels
        self.paths = paths
        self.width = max([tasks.width(self.plan), *map(len, types.values())])
        sums.register(spark)
        self.pivots: Mapping[int, Pivot] = {
            number: pivot
            for number, plan in self.parts.items()
            if (pivot := find(plan, self.schema.is_temporal, lambda p, c: types[p][c]))
        }

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

    def blame(self, batch: Batch, moment: Moment) -> EvaluationError | None:
        """Which rule a query has failed in, and for which values: a kernel evaluates the same
        rules over the same rows, stage by stage."""
        for stage in self.stages:
            if stage.strategy is not Strategy.KERNEL:
                plan = part(self.plan, stage.components)
                shipped = tasks.shipped(self.program, plan)
                job = tasks.Job(shipped, moment.progress, moment.spoken_of, self.limits, self.width)
                try:
                    tasks.run(self._for_kernels(job, stage, batch, _all), job).count()
                except PySparkException as error:
                    found = in_our_words(error)
                    if isinstance(found, EvaluationError) and WITH_RULE in str(found):
                        return found
                    return None
        return None

    # ------------------------------------------------------------------------- frames

    def frame(self, pred: str, rows: Iterable[Row]) -> DataFrame:
        types = self.types[pred]
        table = wire.relation(list(rows), types)
        return self.spark.createDataFrame(table, schema=wire.columns(types))

    def register(self, pred: str, version: Version, rows: DataFrame | None) -> None:
        if rows is None:
            rows = self.frame(pred, [])
        rows.createOrReplaceTempView(self.view(pred, version))

    def query(
        self, text: str, pred: str, rules: Sequence[RulePlan], slice_: Slice | None
    ) -> DataFrame:
        if slice_ is not None:
            text = with_slice(text, slice_.low, slice_.high)
        return wire.cast(self.spark.sql(text), self.types[pred])

    def union(self, rows: Sequence[DataFrame]) -> DataFrame:
        return reduce(DataFrame.unionAll, rows)

    def distinct(self, rows: DataFrame) -> DataFrame:
        return rows.distinct()

    def without(self, rows: DataFrame, known: DataFrame) -> DataFrame:
        return rows.subtract(known)

    def since(self, rows: DataFrame, time: int) -> DataFrame:
        return rows.where(F.col("c0") >= time)

    def times_of(self, rows: DataFrame) -> DataFrame:
        return rows.select("c0")

    def store(self, pred: str, rows: DataFrame, batch: Batch) -> DataFrame:
        if self.uses.get(pred, 0) > 1:
            rows = rows.persist()
            batch.stored.append(rows)
        return rows

    def total(self, pred: str, before: DataFrame | None) -> Total:
        return Total(before)

    def added(self, total: AnyTotal[DataFrame], batch: Batch) -> DataFrame | None:
        assert isinstance(total, Total)
        batch.stored += (piece.rows for piece in total.pieces)
        return total.added

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        try:
            yield
        except (PySparkException, Py4JError) as error:
            if not lacks_memory(error):
                raise
            raise out_of_memory(what) from error

    # ------------------------------------------------------------------------- others

    def by_rules(self, stage: Stage, batch: Batch, moment: Moment) -> None:
        if stage.strategy is Strategy.GRAPH:
            self._by_graph(stage, batch, moment)
        else:
            super().by_rules(stage, batch, moment)

    def _by_graph(self, stage: Stage, batch: Batch, moment: Moment) -> None:
        paths = self.paths[stage.preds[0]]
        rules = base_rules(paths, self.plan)
        self.register_all(rules, batch)
        found = [self.rows(rule, None, moment) for rule in rules]
        base = self.union(found + self.facts(paths.pred, moment))
        pieces = {arc.pred: batch.relations[arc.pred].pieces for arc in paths.arcs}
        known = {p: self.union(rows) if rows else self.frame(p, []) for p, rows in pieces.items()}
        batch.relations[paths.pred].new = graph.relation(paths, base.persist(), known)
        batch.stored.append(base)

    def in_kernels(self, number: int, stage: Stage, batch: Batch, moment: Moment) -> None:
        plan, pivot = self.parts[number], self.pivots.get(number)
        job = tasks.Job(
            tasks.shipped(self.program, plan),
            moment.progress,
            moment.spoken_of,
            self.limits,
            self.width,
            pivot,
            1 if pivot is None else self.kernels,
        )
        rows = self._for_kernels(job, stage, batch, _new)
        if (state := batch.states.get(number)) is not None:
            rows = rows.unionAll(state)
        out = tasks.run(rows, job).persist()
        batch.stored.append(out)
        for pred in stage.preds:
            batch.relations[pred].new = wire.unpacked(out, tasks.ANSWER + pred, self.types[pred])
        batch.states[number] = out.where(F.col(wire.TABLE).startswith(tasks.STATE))

    def _for_kernels(
        self,
        job: tasks.Job,
        stage: Stage,
        batch: Batch,
        pieces: Callable[[Relation], Iterable[DataFrame]],
    ) -> DataFrame:
        """What a stage reads from elsewhere, each row with its kernel."""
        begun = self.spark.range(job.kernels).select(
            F.lit(True).alias("c0"), F.col("id").alias(wire.PART)
        )
        rows = wire.packed(begun, tasks.BEGUN, (Type.BOOL,), self.width)
        read = {p for c in job.program.plan.components for p in c.preds} - set(stage.preds)
        for pred in sorted(read):
            for piece in pieces(batch.relations[pred]):
                own = tasks.seated(piece, job, pred)
                rows = rows.unionAll(wire.packed(own, pred, self.types[pred], self.width))
        return rows
