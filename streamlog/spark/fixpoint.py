"""Relations that a recursion over DataFrames adds to.

Each round is one job. What it finds is cut off from the queries that found it, so plans do not
grow, and its rows are counted by the same job.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from attrs import field, mutable
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from streamlog.runtime.fixpoint import Delta

# So many pieces a relation may be in before they are put together.
_PIECES = 8


@mutable
class Total:
    """All rows so far (`runtime.fixpoint.Total`), in pieces."""

    before: DataFrame | None
    pieces: list[Delta[DataFrame]] = field(factory=list)

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

    def beyond(self, found: DataFrame) -> Delta[DataFrame]:
        """The job of a round."""
        rows = found.distinct()
        if (known := self.rows) is not None:
            rows = rows.join(known, on=rows.columns, how="left_anti")
        return _stored(rows)

    def add(self, delta: Delta[DataFrame]) -> None:
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


def _stored(rows: DataFrame) -> Delta[DataFrame]:
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
