"""Columns in objects and in lists mean the same on Spark, and what is wrong is said the same."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from nested_data import Case, case, records, write
from pyspark.sql import SparkSession
from streaming import compiled
from test_spark_sources import interpreted, on_spark, streamed_rows  # noqa: F401

import streamlog.spark
from streamlog.runtime import sources as local
from streamlog.runtime.arrow_values import with_none
from streamlog.runtime.ingest import Checker, Reject, paths_of
from streamlog.spark.records import ColumnsError, Records
from streamlog.syntax.ast import Type


def agree(spark: SparkSession, path: Path, text: str, types: tuple[Type, ...]) -> Counter[str]:
    """The reasons for which both engines reject rows, if both find the same good rows and the
    same places; and the texts too, unless these are of times in another unit."""
    program = compiled(text)
    rows = list(local.read(local.Input("s", path), Checker(program, "s")))
    good, bad = on_spark(spark, path, program, types)
    assert good == Counter(row for row in rows if not isinstance(row, Reject))
    rejected = [row for row in rows if isinstance(row, Reject)]
    found = Counter((r.where, r.reason) for r in rejected)
    assert Counter((r.place, r.reason) for r in bad) == found
    if path.suffix != ".parquet":
        assert sorted(r.text for r in bad) == sorted(r.text for r in rejected)
    return Counter(r.reason for r in rejected)


@pytest.mark.parametrize("seed", range(8))
def test_random_data(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = random.Random(1000 + seed)
    made = case(rng)
    lines = records(made, rng, 25, typed=False)
    agree(spark, write(made, lines, tmp_path / "a.jsonl"), made.text, made.types)
    rows = records(made, rng, 25, typed=True)
    agree(spark, write(made, rows, tmp_path / "a.parquet"), made.text, made.types)
    assert in_stream(spark, made, lines, tmp_path, f"nested_{seed}") == Counter(
        row for record in lines for row in made.meaning(record)
    )


def in_stream(
    spark: SparkSession, made: Case, lines: list[Any], folder: Path, name: str
) -> Counter[Any]:
    (folder / "in").mkdir()
    write(made, lines, folder / "in" / "a.jsonl")
    rows = streamed_rows(spark, folder / "in", name, compiled(made.text), made.types)
    width = len(made.types)
    return Counter(with_none(tuple(row)[:width] for row in rows if row.reason is None))


def test_json_lines(spark: SparkSession, tmp_path: Path) -> None:
    text = """
    stream s("event-time" as T: time(ms), user: string at "meta.user name", n: int at "`a.b`.n").
    output p. p(T, U, N) <- s(T, U, N)."""
    line = {"event-time": 1794729600000, "meta": {"user name": "é"}, "a.b": {"n": 1}}
    odd = [{**line, "meta": m} for m in (None, 5, [], "x", {}, {"USER NAME": "a"})]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, [line, *odd, [1794729600000, "a", 2], {}])))
    assert agree(spark, path, text, (Type.TIME, Type.STRING, Type.INT)) == {
        "column `user`: a value is missing": 1,
        "column `user`: 5 is not an object with a `user name`": 1,
        "column `user`: [] is not an object with a `user name`": 1,
        "column `user`: 'x' is not an object with a `user name`": 1,
        "column `user` is missing: there is no `meta.user name`": 1,
        "column `T` is missing: there is no `event-time`": 1,
    }


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_and_durations_in_structs_and_lists(
    spark: SparkSession, tmp_path: Path, unit: str
) -> None:
    times = pa.array([10**15 * 1000 + 5000, None, 3], pa.timestamp("ns")).cast(
        pa.timestamp(unit), safe=False
    )
    waits = pa.array([timedelta(seconds=1), timedelta(hours=1), None], pa.duration(unit))
    inner = pa.StructArray.from_arrays([times, waits], ["at", "wait"])
    some = pa.ListArray.from_arrays([0, 2, 2, 3], inner)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"meta": inner, "some": some}), path)
    types = (Type.TIME, Type.DURATION)
    plain = 'stream s(T: time at "meta.at", d: duration at "meta.wait").'
    rules = "output p. p(T, D) <- s(T, D)."
    assert agree(spark, path, f"{plain} {rules}", types).total() == 2
    listed = 'stream s(T: time in "some[].at", d: duration in "some[].wait").'
    assert agree(spark, path, f"{listed} {rules}", types).total() == 2


def test_data_frames(spark: SparkSession) -> None:
    text = """
    stream s(T: int, u: string at "meta.user", x: int in "items[].x").
    table t("the name" as n: string, m: string in "ms[]").
    output p. p(T, U, X, M) <- s(T, U, X), t(U, M)."""
    program = compiled(text)
    schema = "T long, META struct<`USER`: string>, items array<struct<x: int>>"
    rows = [(1, ("a",), [(1,), (2,)]), (2, ("a",), []), (3, ("b",), [(3,)])]
    s = spark.createDataFrame(rows, schema)
    t = spark.createDataFrame([("a", ["m", "n"]), ("b", [])], "`the name` string, ms array<string>")
    found = streamlog.spark.run(program, {"s": s, "t": t})["p"].collect()
    assert sorted(map(tuple, found)) == [(1, "a", x, m) for x in (1, 2) for m in "mn"]
    paths = paths_of(program, "s")
    for frame, message in [
        (s.drop("items"), "lack `items"),
        (s.selectExpr("T", "5 AS meta", "items"), "have no fields in `meta`"),
        (s.selectExpr("T", "meta", "5 AS items"), "have no list `items`"),
        (spark.createDataFrame([(1, "a", 2)], "a int, b string, c int"), "lack `T` and `meta"),
    ]:
        with pytest.raises(ColumnsError, match=message):
            Records.of(frame, paths, "s")


def test_fields_that_differ_in_case_alone(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [(1, ("a", "b"))], "T long, meta struct<user: string, User: string>"
    )
    program = compiled('stream s(T: int, u: string at "meta.user"). output p. p(T, U) <- s(T, U).')
    with pytest.raises(ColumnsError, match=r"several columns `user` where `meta.user` is"):
        Records.of(frame, paths_of(program, "s"), "s")
