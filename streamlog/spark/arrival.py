"""Rows of all streams as one streaming DataFrame, and what a micro-batch of it brings.

Each row is checked where it is read and packed (`wire`) under its stream's name; a bad one has a
`reason`, its place and its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from attrs import frozen
from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W  # noqa: N817
from pyspark.sql import functions as F  # noqa: N812

from streamlog.runtime.columns import ColumnTypes
from streamlog.runtime.evaluation import clamped
from streamlog.runtime.executor import BEGIN
from streamlog.runtime.progress import Clock
from streamlog.spark import wire
from streamlog.spark.format_sql import as_written
from streamlog.spark.ingest import ODD, PLACE, REASON, TEXT
from streamlog.syntax.ast import Type


@frozen
class Seen:
    """A stream's new rows in numbers."""

    rows: int
    rejected: int
    late: int
    latest: int | None  # the latest time of a good row
    odd: str | None  # about one of them


def united(frames: Mapping[str, DataFrame], types: ColumnTypes, width: int) -> DataFrame:
    """Checked rows of several streams in one DataFrame."""
    packed = [
        wire.packed(rows, name, types[name], width, also=(PLACE, REASON, TEXT, ODD))
        for name, rows in sorted(frames.items())
    ]
    return reduce(DataFrame.unionAll, packed)


def and_files_of(new: DataFrame, folder: str) -> DataFrame:
    """The same rows, and a micro-batch also when there is a new file in a folder."""
    files = new.sparkSession.readStream.text(folder).where("false")
    nothing = (F.lit(None).cast(f.dataType).alias(f.name) for f in new.schema.fields)
    return new.unionAll(files.select(*nothing))


def _of(stream: str) -> Column:
    return F.col(wire.TABLE) == stream


def _good(clock: Clock) -> Column:
    return _of(clock.stream) & F.col(REASON).isNull()


def look(new: DataFrame, clocks: Iterable[Clock]) -> dict[str, Seen]:
    """One job: how many rows, how far in time."""
    found: dict[str, list[Column]] = {}
    for clock in clocks:
        late = F.col("i0") < clamped(clock.progress)
        found[clock.stream] = [
            F.count_if(_of(clock.stream)),
            F.count_if(_of(clock.stream) & F.col(REASON).isNotNull()),
            F.count_if(_good(clock) & late),
            F.max(F.when(_good(clock), F.col("i0"))),
            F.min(F.when(_good(clock), F.col(ODD))),
        ]
    columns = [c for columns in found.values() for c in columns]
    row = new.agg(*(c.alias(f"x{i}") for i, c in enumerate(columns))).first()
    assert row is not None
    values = iter(row)
    return {stream: Seen(*(next(values) for _ in columns)) for stream, columns in found.items()}


def believed(new: DataFrame, clock: Clock, known: int) -> int | None:
    """With a horizon: the latest time to believe. A row may be as much later than everything
    before it as the horizon says; what lies beyond a wider gap is doubted."""
    assert clock.horizon is not None
    times = new.where(_good(clock)).select(F.col("i0").alias("at")).distinct()
    if known > BEGIN:
        times = times.where(F.col("at") > known)
    before = F.lag("at", 1, known if known > BEGIN else None).over(W.orderBy("at"))
    gaps = times.select("at", before.alias("before"))
    wide = gaps.where(F.col("at") - F.col("before") > clock.horizon)
    row = wide.agg(F.min("before")).first()
    return None if row is None or row[0] is None else int(row[0])


def rows_of(new: DataFrame, clock: Clock, types: ColumnTypes, latest: int | None) -> DataFrame:
    """The good rows of a stream that are not late."""
    rows = new.where(_good(clock))
    if clock.progress > BEGIN:
        rows = rows.where(F.col("i0") >= clamped(clock.progress))
    if latest is not None:
        rows = rows.where(F.col("i0") <= latest)
    return _unpacked(rows, clock, types)


def bad_files(new: DataFrame, streams: Sequence[str]) -> dict[str, list[str]]:
    """One job: the files in which the bad rows of streams are."""
    bad = new.where(F.col(wire.TABLE).isin(*streams) & F.col(REASON).isNotNull())
    found = bad.select(wire.TABLE, PLACE).distinct().collect()
    return {stream: sorted(place for s, place in found if s == stream) for stream in streams}


def rejects_of(new: DataFrame, stream: str) -> DataFrame:
    """The bad rows."""
    bad = new.where(_of(stream) & F.col(REASON).isNotNull())
    return _report(bad, F.lit(stream), F.col(PLACE), F.col(REASON), F.col(TEXT))


def doubted_of(new: DataFrame, clock: Clock, types: ColumnTypes, latest: int) -> DataFrame:
    assert clock.horizon is not None
    rows = _unpacked(new.where(_good(clock) & (F.col("i0") > latest)), clock, types)
    reason = F.concat(
        _moment("c0", clock),
        F.lit(" is more than the horizon after "),
        _moment(f"{latest}L", clock),
        F.lit(", the latest time known"),
    )
    return _report(rows, F.lit(clock.stream), F.lit(""), reason, _text(types[clock.stream]))


def late_of(new: DataFrame, clock: Clock, types: ColumnTypes) -> DataFrame:
    rows = new.where(_good(clock) & (F.col("i0") < clamped(clock.progress)))
    rows = _unpacked(rows, clock, types)
    passed = F.lit(f", which `{clock.stream}` has passed")
    at, progress = _moment("c0", clock), _moment(f"{clock.progress}L", clock)
    reason = F.concat(at, F.lit(" is earlier than "), progress, passed)
    return _report(rows, F.lit(clock.stream), F.lit(""), reason, _text(types[clock.stream]))


def _unpacked(rows: DataFrame, clock: Clock, types: ColumnTypes) -> DataFrame:
    return wire.unpacked(rows, clock.stream, types[clock.stream])


def _report(rows: DataFrame, *columns: Column) -> DataFrame:
    return rows.select(*(c.alias(f"c{i}") for i, c in enumerate(columns)))


def _moment(time: str, clock: Clock) -> Column:
    """A time in words, as the local engine has them."""
    return F.expr(as_written(time, clock.type or Type.INT))


def _text(types: Sequence[Type]) -> Column:
    """A relation's row as it could have been read, times in words."""
    fields = ", ".join(as_written(f"c{i}", type_) for i, type_ in enumerate(types))
    return F.expr(f"TO_JSON(ARRAY({fields}))")
