"""The rows that a streaming run retains from one micro-batch to the next, by shelf:

    rows p        rows of a predicate, as far back as some rule looks, and its new answers
    few p 1a2b    of old rows of a predicate, those that are sufficient
    buffer s      rows of a stream that its progress has not reached
    state 2       what the kernels of a stage remember
    rejects, late

No row is taken from a shelf in a batch: one that a better row stands for stays until folders are
compacted. It is a true row of the past, so it does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from streamlog.analysis.sufficient_rows import Best, SufficientRows
from streamlog.runtime.columns import ColumnTypes
from streamlog.runtime.evaluation import clamped
from streamlog.runtime.executor import BEGIN, END
from streamlog.runtime.frontier import Frontiers
from streamlog.runtime.keeping import Few, Keeping
from streamlog.spark import wire
from streamlog.spark.evaluation import Batch, Relation
from streamlog.spark.store import SHELF, Folder, Store
from streamlog.syntax.ast import Type

ROWS, FEW, BUFFER, STATE = "rows ", "few ", "buffer ", "state "

Shelves = dict[str, DataFrame]  # what a batch adds, packed (`wire`)
Counts = Mapping[str, tuple[int, int | None]]  # by shelf: rows, and the latest time


class RetainedRows:
    def __init__(
        self,
        store: Store,
        keeping: Keeping,
        types: ColumnTypes,
        width: int,
        outputs: Collection[str],
    ) -> None:
        self.store, self.keeping, self.types = store, keeping, types
        self.width, self.outputs = width, outputs

    # -------------------------------------------------------------------------- reading

    def stored(self, spark: SparkSession, shelf: str, pred: str) -> DataFrame | None:
        found = self.store.table(spark, shelf, self.width)
        return None if found is None else wire.unpacked(found, None, self.types[pred])

    def needed(self, spark: SparkSession, before: Frontiers | None) -> dict[str, DataFrame]:
        """What rules may still ask for of the past."""
        kept: dict[str, DataFrame] = {}
        for pred in self.types if before is not None else ():
            assert before is not None
            need = self.keeping.kept(pred, before)
            rows = self.stored(spark, ROWS + pred, pred)
            if rows is not None and need.since > BEGIN:
                rows = rows.where(F.col("c0") >= clamped(need.since))
            few = [self.stored(spark, f"{FEW}{pred} {f.name}", pred) for f in need.few]
            found = [f for f in (rows, *few) if f is not None]
            if found:
                kept[pred] = reduce(DataFrame.unionAll, found)
                if len(found) > 1:
                    kept[pred] = kept[pred].distinct()
        return kept

    def states(self, spark: SparkSession, stages: int) -> dict[int, DataFrame]:
        """What kernels remember, by stage."""
        tables = {n: self.store.table(spark, f"{STATE}{n}", self.width) for n in range(stages)}
        return {number: state for number, state in tables.items() if state is not None}

    def written(
        self, spark: SparkSession, batch: int, shelf: str, types: Sequence[Type]
    ) -> DataFrame:
        """What a batch that does not count yet has put on a shelf."""
        return wire.unpacked(self.store.written(spark, batch, shelf, self.width), None, types)

    # -------------------------------------------------------------------------- writing

    def packed(self, rows: DataFrame, pred: str) -> DataFrame:
        return wire.packed(rows, pred, self.types[pred], self.width)

    def of_batch(self, spark: SparkSession, result: Batch, now: Frontiers) -> Shelves:
        """What of a batch is stored: answers, and what later batches look at."""
        shelves: Shelves = {}
        for pred, relation in result.relations.items():
            need = self.keeping.kept(pred, now)
            if relation.new is not None and (pred in self.outputs or need.since < END):
                shelves[ROWS + pred] = self.packed(relation.new, pred)
            for few in need.few:
                shelf = f"{FEW}{pred} {few.name}"
                known = self.stored(spark, shelf, pred)
                found = _additions(few, relation, few.until(now), known)
                if found is not None:
                    shelves[shelf] = self.packed(found, pred)
        return shelves | {f"{STATE}{number}": state for number, state in result.states.items()}

    def write(self, spark: SparkSession, shelves: Shelves, batch: int) -> Counts:
        """One job: everything at once."""
        out = [rows.withColumn(SHELF, F.lit(name)) for name, rows in shelves.items()]
        if not out:
            return {}
        counting = Observation()
        measured = []
        for number, name in enumerate(shelves):
            mine = F.col(SHELF) == name
            measured.append(F.count_if(mine).alias(f"n{number}"))
            measured.append(F.max(F.when(mine, F.col("i0"))).alias(f"t{number}"))
        rows = reduce(DataFrame.unionAll, out).coalesce(spark.sparkContext.defaultParallelism)
        rows = rows.observe(counting, *measured)
        place = self.store.place_of(batch)
        rows.write.mode("overwrite").partitionBy(SHELF).parquet(self.store.files.path(place))
        self.store.list(place)
        found: dict[str, Any] = counting.get
        return {
            name: (found[f"n{number}"], found[f"t{number}"])
            for number, name in enumerate(shelves)
            if found[f"n{number}"]
        }

    def folders(
        self, spark: SparkSession, counts: Counts, batch: int, now: Frontiers
    ) -> dict[str, tuple[Folder, ...]]:
        """Which folders of each shelf the next batch may need."""
        result: dict[str, tuple[Folder, ...]] = {}
        last = self.store.last.folders if self.store.last else {}
        for shelf in {**last, **counts}:
            rows, latest = counts.get(shelf, (0, None))
            new = (self.store.folder(batch, shelf, rows, latest),) if rows else ()
            found = (*last.get(shelf, ()), *new)
            if shelf.startswith((BUFFER, STATE)):
                result[shelf] = new  # written anew each time
            elif shelf.startswith(FEW):
                needed = self._still_sufficient(shelf)
                result[shelf] = self.store.compact(spark, batch, shelf, found, self.width, needed)
            elif shelf.startswith(ROWS):
                since = self.keeping.kept(shelf.removeprefix(ROWS), now).since
                found = tuple(f for f in found if f.latest is None or f.latest >= since)
                needed = _since(since)
                result[shelf] = self.store.compact(spark, batch, shelf, found, self.width, needed)
        return {shelf: found for shelf, found in sorted(result.items()) if found}

    def _still_sufficient(self, shelf: str) -> Callable[[DataFrame], DataFrame]:
        pred, name = shelf.removeprefix(FEW).rsplit(" ", 1)
        (few,) = (f for f in self.keeping.few(pred) if f.name == name)
        types = self.types[pred]
        return lambda rows: self.packed(
            sufficient(few.rows, wire.unpacked(rows, None, types)), pred
        )


def _since(since: int) -> Callable[[DataFrame], DataFrame]:
    return lambda rows: rows.where(F.col("i0") >= clamped(since)) if since > BEGIN else rows


def _additions(
    few: Few, relation: Relation, until: int, shelf: DataFrame | None
) -> DataFrame | None:
    """Rows that a shelf should have and has not, when those earlier than `until` are old.

    Later ones do not count yet, even where any row will do: an earlier one may still be found.
    """
    if not relation.pieces:
        return None
    old = reduce(DataFrame.unionAll, relation.pieces).where(F.col("c0") < clamped(until))
    for position, const in few.where:
        old = old.where(F.col(f"c{position}") == F.lit(const.value))
    found = sufficient(few.rows, old)
    if shelf is None:
        return found
    same = found.columns if few.rows.best else _names(few.rows.columns)
    return found.join(shelf, on=same or F.lit(True), how="left_anti")


def sufficient(which: SufficientRows, rows: DataFrame) -> DataFrame:
    """Of rows which are old, those that are sufficient."""
    best = which.best
    if best is None:
        return _one_of_each(rows, _names(which.columns), "c0")
    group, value = _names(best.group), f"c{best.column}"
    if best.count > 1:
        return _one_of_each(_of_the_best(best, rows), _names(which.columns), "c0")
    if best.group == which.columns:
        return _one_of_each(rows, group, value, best.highest)
    extreme = F.max if best.highest else F.min
    top = rows.groupBy(*group).agg(extreme(value).alias(value))
    rows = rows.join(top, on=[*group, value], how="left_semi")
    return _one_of_each(rows, _names(which.columns), "c0")


def _of_the_best(best: Best, rows: DataFrame) -> DataFrame:
    """The rows with one of the so many best values."""
    value = f"c{best.column}"
    order = F.desc(value) if best.highest else F.asc(value)
    place = F.dense_rank().over(Window.partitionBy(*_names(best.group)).orderBy(order))
    return rows.withColumn("place", place).where(F.col("place") <= best.count).drop("place")


def _one_of_each(rows: DataFrame, key: Sequence[str], by: str, highest: bool = False) -> DataFrame:
    """Of rows that agree in the key, the one with the lowest or highest value."""
    if not key:
        return rows.orderBy(F.desc(by) if highest else F.asc(by)).limit(1)
    others = [c for c in rows.columns if c not in key]
    pick = F.max_by if highest else F.min_by
    found = rows.groupBy(*key).agg(pick(F.struct(*others), by).alias("row"))
    return found.select(*(c if c in key else F.col(f"row.{c}").alias(c) for c in rows.columns))


def _names(columns: Sequence[int]) -> list[str]:
    return [f"c{column}" for column in columns]
