"""Rows of all streams as one streaming DataFrame, and what a micro-batch of it brings.

Each row is checked where it is read and packed (`wire`) under its stream's name; a bad one has a
`reason`, its place and its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

Timelines = Sequence[Clock]  # of one stream, that of its first column first
Limits = Mapping[str, int]  # by timeline, the latest time to believe


@frozen
class Seen:
    """A stream's new rows in numbers."""

    rows: int
    rejected: int
    late: int
    latest: tuple[int | None, ...]  # by timeline, the latest time of a row that counts
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


def _good(stream: str) -> Column:
    return _of(stream) & F.col(REASON).isNull()


def _at(clock: Clock) -> Column:
    """A row's time, in packed form."""
    return F.col(f"i{clock.column}")


def _late(clock: Clock) -> Column:
    return _at(clock) < clamped(clock.progress)


def _is_late(timelines: Timelines) -> Column:
    return reduce(Column.__or__, map(_late, timelines))


def look(new: DataFrame, streams: Mapping[str, Timelines]) -> dict[str, Seen]:
    """One job: how many rows, how far in time."""
    found: dict[str, list[Column]] = {}
    for stream, timelines in streams.items():
        good, late = _good(stream), _is_late(timelines)
        found[stream] = [
            F.count_if(_of(stream)),
            F.count_if(_of(stream) & F.col(REASON).isNotNull()),
            F.count_if(good & late),
            F.min(F.when(good, F.col(ODD))),
            *(F.max(F.when(good & ~late, _at(clock))) for clock in timelines),
        ]
    columns = [c for columns in found.values() for c in columns]
    row = new.agg(*(c.alias(f"x{i}") for i, c in enumerate(columns))).first()
    assert row is not None
    values = iter(row)
    seen: dict[str, Seen] = {}
    for stream, columns in found.items():
        rows, rejected, late, odd, *latest = (next(values) for _ in columns)
        seen[stream] = Seen(rows, rejected, late, tuple(latest), odd)
    return seen


def reach(new: DataFrame, timelines: Timelines, limits: Limits) -> tuple[int | None, ...]:
    """One job: how far the rows go that are believed."""
    rows = _accepted(new, timelines, limits)
    found = rows.agg(*(F.max(_at(c)).alias(f"x{i}") for i, c in enumerate(timelines))).first()
    assert found is not None
    return tuple(found)


def believed(new: DataFrame, stream: str, clock: Clock, known: int) -> int | None:
    """With a horizon: the latest time to believe. A row may be as much later than everything
    before it as the horizon says; what lies beyond a wider gap is doubted."""
    assert clock.horizon is not None
    times = new.where(_good(stream)).select(_at(clock).alias("at")).distinct()
    if known > BEGIN:
        times = times.where(F.col("at") > known)
    before = F.lag("at", 1, known if known > BEGIN else None).over(W.orderBy("at"))
    gaps = times.select("at", before.alias("before"))
    wide = gaps.where(F.col("at") - F.col("before") > clock.horizon)
    row = wide.agg(F.min("before")).first()
    return None if row is None or row[0] is None else int(row[0])


def rows_of(new: DataFrame, timelines: Timelines, types: ColumnTypes, limits: Limits) -> DataFrame:
    """The good rows of a stream that are neither late nor doubted."""
    return _unpacked(_accepted(new, timelines, limits), timelines[0].stream, types)


def _accepted(new: DataFrame, timelines: Timelines, limits: Limits) -> DataFrame:
    rows = new.where(_good(timelines[0].stream))
    for clock in timelines:
        if clock.progress > BEGIN:
            rows = rows.where(~_late(clock))
        if clock.stream in limits:
            rows = rows.where(_at(clock) <= limits[clock.stream])
    return rows


def bad_files(new: DataFrame, streams: Sequence[str]) -> dict[str, list[str]]:
    """One job: the files in which the bad rows of streams are."""
    bad = new.where(F.col(wire.TABLE).isin(*streams) & F.col(REASON).isNotNull())
    bad = bad.where(F.col(PLACE).isNotNull())  # others are refused for their stamps
    found = bad.select(wire.TABLE, PLACE).distinct().collect()
    return {stream: sorted(place for s, place in found if s == stream) for stream in streams}


def rejects_of(new: DataFrame, stream: str) -> DataFrame:
    """The bad rows."""
    bad = new.where(_of(stream) & F.col(REASON).isNotNull())
    return _report(bad, F.lit(stream), F.coalesce(PLACE, F.lit("")), F.col(REASON), F.col(TEXT))


def doubted_of(
    new: DataFrame, stream: str, clock: Clock, types: ColumnTypes, latest: int
) -> DataFrame:
    assert clock.horizon is not None
    rows = _unpacked(new.where(_good(stream) & (_at(clock) > latest)), stream, types)
    reason = F.concat(
        _moment(f"c{clock.column}", clock),
        F.lit(" is more than the horizon after "),
        _moment(f"{latest}L", clock),
        F.lit(", the latest time known"),
    )
    return _report(rows, F.lit(stream), F.lit(""), reason, _text(types[stream]))


def late_of(new: DataFrame, timelines: Timelines, types: ColumnTypes) -> DataFrame:
    stream = timelines[0].stream
    rows = _unpacked(new.where(_good(stream) & _is_late(timelines)), stream, types)
    reasons = []
    for clock in timelines:
        passed = F.lit(f", which `{clock.stream}` has passed")
        at, progress = _moment(f"c{clock.column}", clock), _moment(f"{clock.progress}L", clock)
        reason = F.concat(at, F.lit(" is earlier than "), progress, passed)
        reasons.append(F.when(F.col(f"c{clock.column}") < clamped(clock.progress), reason))
    return _report(rows, F.lit(stream), F.lit(""), F.coalesce(*reasons), _text(types[stream]))


def _unpacked(rows: DataFrame, stream: str, types: ColumnTypes) -> DataFrame:
    return wire.unpacked(rows, stream, types[stream])


def _report(rows: DataFrame, *columns: Column) -> DataFrame:
    return rows.select(*(c.alias(f"c{i}") for i, c in enumerate(columns)))


def _moment(time: str, clock: Clock) -> Column:
    """A time in words, as the local engine has them."""
    return F.expr(as_written(time, clock.type or Type.INT))


def _text(types: Sequence[Type]) -> Column:
    """A relation's row as it could have been read, times in words."""
    fields = ", ".join(as_written(f"c{i}", type_) for i, type_ in enumerate(types))
    return F.expr(f"TO_JSON(ARRAY({fields}))")
