"""Semi-naive recursion over DataFrames: rounds of queries until nothing is new.

Each round is one job. What it finds is cut off from the queries that found it, so plans do not
grow, and its rows are counted by the same job. `Total` and `Delta` are versions of a relation that
queries name (`plan.sql.Version`); `New` is what a round finds before what is known is taken away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from attrs import field, frozen, mutable
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from streamlog.plan.sql import Version
from streamlog.plan.steps import RulePlan
from streamlog.runtime.executor import Limits
from streamlog.runtime.rounds import cut_short, rows_of
from streamlog.spark.failures import lacks_memory, out_of_memory

# So many pieces a relation may be in before they are put together.
_PIECES = 8


@frozen
class Delta:
    """The rows that the last round has added."""

    rows: DataFrame
    count: int


@frozen
class New:
    """Rows that a round has found, some of them perhaps known."""

    rows: DataFrame

    def beyond(self, total: Total) -> Delta:
        """The job of a round: what was not known, counted and stored."""
        rows = self.rows.distinct()
        if (known := total.rows) is not None:
            rows = rows.join(known, on=rows.columns, how="left_anti")
        return _stored(rows)


@mutable
class Total:
    """All rows so far, in pieces: those from before the batch, and what each round has added."""

    before: DataFrame | None
    pieces: list[Delta] = field(factory=list)

    @property
    def rows(self) -> DataFrame | None:
        frames = [p.rows for p in self.pieces]
        if self.before is not None:
            frames.append(self.before)
        return reduce(DataFrame.unionAll, frames) if frames else None

    @property
    def added(self) -> DataFrame | None:
        return reduce(DataFrame.unionAll, [p.rows for p in self.pieces]) if self.pieces else None

    @property
    def count(self) -> int:
        return sum(p.count for p in self.pieces)

    def add(self, delta: Delta) -> None:
        if not delta.count:
            return
        self.pieces.append(delta)
        if len(self.pieces) > _PIECES:
            added = self.added
            assert added is not None
            merged = Delta(_afresh(added.localCheckpoint(eager=True)), self.count)
            for piece in self.pieces:
                piece.rows.unpersist()
            self.pieces = [merged]


def _stored(rows: DataFrame) -> Delta:
    counting = Observation()
    kept = rows.observe(counting, F.count(F.lit(1)).alias("rows")).localCheckpoint(eager=True)
    return Delta(_afresh(kept), int(counting.get["rows"]))


def _afresh(rows: DataFrame) -> DataFrame:
    """The same stored rows without what the optimizer remembers of the query that made them:
    its constraints name columns that unions of such relations look up in vain."""
    spark: Any = rows.sparkSession
    stored: Any = rows._jdf
    plain = spark._jsparkSession.internalCreateDataFrame(
        stored.queryExecution().toRdd(), stored.schema(), False
    )
    return DataFrame(plain, spark)


Register = Callable[[str, Version, DataFrame | None], None]
Versions = Sequence[tuple[RulePlan, int | None]]  # from the new rows of which goal
Find = Callable[[Versions], Mapping[str, DataFrame]]


def fixpoint(
    rules: list[RulePlan],
    before: Mapping[str, DataFrame | None],
    register: Register,
    find: Find,
    limits: Limits,
) -> tuple[dict[str, Total], int]:
    """All that the rules of a component give, and in how many rounds.

    `before` has the component's predicates, with what is known of them. `find` makes queries of
    conjunctions, each over everything or from the new rows of one of its goals.
    """
    totals = {pred: Total(known) for pred, known in before.items()}
    versions: Versions = [(rule, None) for rule in rules]
    rounds, began = 0, time.monotonic()
    while versions:
        for pred, total in totals.items():
            register(pred, Version.TOTAL, total.rows)
        try:
            deltas = {p: New(rows).beyond(totals[p]) for p, rows in find(versions).items()}
        except (PySparkException, Py4JError) as error:
            if not lacks_memory(error):
                raise
            raise out_of_memory(f"round {rounds + 1:,}: {rows_of(totals, rules)}") from error
        rounds += 1
        for pred, delta in deltas.items():
            totals[pred].add(delta)
            register(pred, Version.DELTA, delta.rows)
        grown = {pred for pred, delta in deltas.items() if delta.count}
        versions = [
            (rule, number)
            for rule in rules
            for number, pipeline in enumerate(rule.pipelines)
            if pipeline.start is not None and pipeline.start.pred in grown
        ]
        derived = sum(total.count for total in totals.values())
        limit = limits.reached(rounds, derived, time.monotonic() - began)
        if limit and versions:
            raise cut_short(totals, rules, limit, rounds, derived)
    return totals, rounds
