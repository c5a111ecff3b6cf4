"""Times of arrival in micro-batches.

The rows of a batch are stamped in the order in which their sources have them: those of a file by
their lines, those of a topic's partition by their offsets. They are logged before they are used, so
a batch that is repeated has the same stamps, and so the same answers.

    DIR/arrived/17/       the rows of batch 17, stamped
                17.json   the last stamp, and the files; the rows count when it is there
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import reduce
from itertools import accumulate
from typing import Any

from attrs import asdict
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamlog.compiler import Program
from streamlog.runtime.columns import ColumnTypes
from streamlog.runtime.envelope import opened, sealed
from streamlog.runtime.progress import Progress
from streamlog.runtime.stamps import Stamps
from streamlog.runtime.wall_clock import WallClock
from streamlog.spark.files import Print
from streamlog.spark.format_sql import as_written
from streamlog.spark.ingest import REASON, TEXT
from streamlog.spark.store import Store
from streamlog.spark.values import text
from streamlog.spark.wire import KIND, TABLE

_ARRIVED, _AT = "arrived", "at"
_BITS = 33  # of `monotonically_increasing_id`, those that count within a partition


class Stamping:
    def __init__(
        self,
        store: Store,
        program: Program,
        types: ColumnTypes,
        progress: Progress,
        clock: WallClock,
    ) -> None:
        self._store, self._files, self._types = store, store.files, types
        self._stamps = Stamps(program, progress, clock.now)
        self._streams = {name: program.schema[name] for name in self._stamps.columns}
        if self._streams and (logged := self._files.numbers(_ARRIVED, ".json")):
            self._stamps.last = self._log(logged[-1])["last"]

    def stamped(self, new: DataFrame, batch: int, silent: Collection[str]) -> DataFrame:
        """The rows of a micro-batch."""
        if self._streams.keys() <= {*silent}:
            return new
        place = f"{_ARRIVED}/{batch}"
        if f"{batch}.json" not in self._files.names(_ARRIVED):
            rows = self._with_stamps(new).drop(_AT)
            rows.write.mode("overwrite").parquet(self._files.path(place))
            prints = {name: asdict(p) for name, p in self._files.prints(place).items()}
            body = {"last": self._stamps.last, "files": prints}
            self._files.write(f"{place}.json", sealed(body))
            for old in self._files.numbers(_ARRIVED, ".json"):
                if old < batch:
                    self._files.delete(f"{_ARRIVED}/{old}")
                    self._files.delete(f"{_ARRIVED}/{old}.json")
        else:
            log = self._log(batch)
            self._stamps.last = log["last"]
            for name, known in log["files"].items():
                if problem := self._files.problem(name, Print(**known)):
                    raise self._store.refused(problem)
        return new.sparkSession.read.schema(new.schema).parquet(self._files.path(place))

    def _log(self, batch: int) -> Mapping[str, Any]:
        name = f"{_ARRIVED}/{batch}.json"
        return opened(self._files.read(name) or "", name)

    def _with_stamps(self, new: DataFrame) -> DataFrame:
        rows = new.withColumn(_AT, F.monotonically_increasing_id()).persist()
        partition, within = F.shiftright(_AT, _BITS), F.col(_AT).bitwiseAND((1 << _BITS) - 1)
        mine = F.col(TABLE).isin(*self._streams) & F.col(REASON).isNull()
        sizes = rows.where(mine).groupBy(partition.alias("p")).agg((F.max(within) + 1).alias("n"))
        found = {int(number): int(size) for number, size in sizes.collect()}
        if not found:
            return rows
        counts = [found.get(number, 0) for number in range(max(found) + 1)]
        first = self._stamps.reserve(sum(counts))
        starts = [0, *accumulate(counts)]
        start = F.from_json(F.lit(json.dumps(starts)), "array<bigint>")[partition]
        for stream, column in self._stamps.columns.items():
            here = mine & (F.col(TABLE) == stream)
            stamp = F.when(here, first + start + within).otherwise(F.col(f"i{column}"))
            rows = rows.withColumn(f"i{column}", stamp)
        return self._checked(rows, mine)

    def _checked(self, rows: DataFrame, good: Column) -> DataFrame:
        """With a reason for those that break a relation with their stamp; they have no place."""
        reasons, texts = [], []
        for stream, predicate in self._streams.items():
            of_stamp = (r for r in predicate.relations if predicate.arrival in r.columns)
            for relation in of_stamp:
                broken = reduce(
                    Column.__or__,
                    (
                        F.expr(f"CAST(i{left} AS DECIMAL(20)) - i{right} > {most}")
                        for left, right, most in relation.differences
                    ),
                )
                values = (
                    f"{text(f'`{predicate.columns[c].name}` is ')}, "
                    f"{as_written(f'i{c}', self._types[stream][c])}"
                    for c in sorted(relation.columns)
                )
                said = ", ' and ', ".join(values)
                said = f"{text(f'breaks `where {relation.text}`: ')}, {said}"
                here = good & (F.col(TABLE) == stream) & broken
                reasons.append(F.when(here, F.expr(f"CONCAT({said})")))
                types = self._types[stream]
                fields = (as_written(f"{KIND[t]}{i}", t) for i, t in enumerate(types))
                texts.append(F.when(here, F.expr(f"TO_JSON(ARRAY({', '.join(fields)}))")))
        if not reasons:
            return rows
        stamped = {
            REASON: F.coalesce(REASON, *reasons),
            TEXT: F.coalesce(TEXT, *texts),
        }
        return rows.withColumns(stamped)
