"""The few old rows that are enough, as queries: what goes on a shelf, and what is left of one.

Nothing is taken from a shelf in a batch: a row that a better one stands for stays until folders
are put together. It is a true row of the past, so it does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamlog.analysis.sufficient_rows import SufficientRows
from streamlog.spark.evaluation import Relation, clamped
from streamlog.spark.keeping import Few


def additions(
    few: Few, relation: Relation, until: int, shelf: DataFrame | None
) -> DataFrame | None:
    """Rows that a shelf should have and has not, when those earlier than `until` are old.

    Later ones do not count yet, even where any row will do: an earlier one may still be found.
    """
    if relation.total is None:
        return None
    old = relation.total.where(F.col("c0") < clamped(until))
    for position, const in few.where:
        old = old.where(F.col(f"c{position}") == F.lit(const.value))
    found = enough(few.rows, old)
    if shelf is None:
        return found
    same = found.columns if few.rows.best else _names(few.rows.columns)
    return found.join(shelf, on=same or F.lit(True), how="left_anti")


def enough(which: SufficientRows, rows: DataFrame) -> DataFrame:
    """Those that are enough of rows which are old."""
    best = which.best
    if best is None:
        return _one_of_each(rows, _names(which.columns), "c0")
    group, value = _names(best.group), f"c{best.column}"
    if best.group == which.columns:
        return _one_of_each(rows, group, value, best.highest)
    extreme = F.max if best.highest else F.min
    top = rows.groupBy(*group).agg(extreme(value).alias(value))
    rows = rows.join(top, on=[*group, value], how="left_semi")
    return _one_of_each(rows, _names(which.columns), "c0")


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
