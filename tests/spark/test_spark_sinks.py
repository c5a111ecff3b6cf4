"""Answers of Spark in files: the same text as the local engine's, whole or not there."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from streamlog.runtime.sinks import open_sink
from streamlog.runtime.sources import SourceError
from streamlog.spark import sinks, wire
from streamlog.spark.inputs import counted
from streamlog.spark.sinks import shown, write
from streamlog.syntax.ast import INT64_MAX, INT64_MIN, Type

NAMES = ("T", "area", "wait", "n", "x", "ok")
TYPES = (Type.TIME, Type.STRING, Type.DURATION, Type.INT, Type.FLOAT, Type.BOOL)


def nasty(count: int) -> list[tuple[Any, ...]]:
    rng = random.Random(3)
    times = [0, 1, -1, 10**6, 1794729600000000, 1794729600250000, -62135596800000000, INT64_MAX,
             INT64_MIN, 253402300799999999, 253402300800000000, -86400000000, -1000001]  # fmt: skip
    texts = ["", "a", 'a "b", c', "Zürich\n", "a,b", "lone\rreturn", "'", "\\", "\t", "🚀", " x "]
    sizes = [0, 1, -1, 1000, 300_000_000, -604_800_000_000, 86_400_000_000, INT64_MAX, INT64_MIN]
    floats = [0.0, -0.0, 0.5, 1e300, 1e16, 123456789012345.6, 1e15, 1e7, 12345678.9, 1e-3, 1e-4,
              0.00012345678901234567, 1e-5, -1.5e-7, 1.7976931348623157e308, 0.1,
              1e22]  # fmt: skip
    return [
        (*map(rng.choice, (times, texts, sizes, sizes, floats)), rng.random() < 0.5)
        for _ in range(count)
    ]


ROWS = sorted(set(nasty(500)))


def relation(spark: SparkSession, rows: list[tuple[Any, ...]], types: Any = TYPES) -> DataFrame:
    frame = spark.createDataFrame(wire.relation(rows, types), schema=wire.columns(types))
    return frame.repartition(3) if rows else frame


def local(path: Path, rows: list[tuple[Any, ...]], names: Any = NAMES, types: Any = TYPES) -> Path:
    sink = open_sink(path, names, types)
    sink.write(rows)
    sink.close()
    return path


@pytest.mark.parametrize("on_a_cluster", [False, True])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_the_same_text(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    on_a_cluster: bool,
) -> None:
    monkeypatch.setattr(sinks, "is_local", lambda _: not on_a_cluster)
    path = tmp_path / f"a.{kind}"
    write(relation(spark, ROWS), NAMES, TYPES, path)
    expected = local(tmp_path / f"b.{kind}", ROWS).read_bytes().split(b"\n")
    assert path.read_bytes().split(b"\n") == expected
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"a.{kind}", f"b.{kind}"]


def test_partitions(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(1, "a b", 1), (2, "c/d", 1), (3, "a b", 2), (4, "", 2)]
    types = (Type.INT, Type.STRING, Type.INT)
    names = ("T", "area", "n")
    for batch, by in ((None, ("area",)), (3, ("area", "n")), (3, ("area", "n"))):
        out = tmp_path / "-".join(by)
        write(relation(spark, rows, types), names, types, out, batch_id=batch, by=by)
        read = spark.read.parquet(str(out)).select("T", "area", "n").collect()
        # Spark reads the text "" from the name of a folder as NULL.
        assert sorted((t, area or "", n) for t, area, n in read) == rows
        assert not [p for p in out.rglob("*") if p.name[0] in "._" and p.is_file()]
    assert sorted(p.name for p in (tmp_path / "area-n" / "batch=3").iterdir())[1:] == [
        "area=a b",
        "area=c%2Fd",
    ]
    with pytest.raises(SourceError, match="is not empty, and a partitioned output"):
        write(relation(spark, rows, types), names, types, tmp_path / "area", by=["area"])
    write(relation(spark, []), NAMES, TYPES, tmp_path / "area-n", batch_id=3, by=["area"])
    assert [*(tmp_path / "area-n").iterdir()] == []


def test_floats_read_back(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(4)
    floats = [rng.uniform(-1, 1) * 10.0 ** rng.randint(-25, 25) for _ in range(2_000)]
    floats += [5e-324, 2e-323, 1e23]
    path = tmp_path / "a.csv"
    write(relation(spark, [(f,) for f in floats], (Type.FLOAT,)), ("x",), (Type.FLOAT,), path)
    lines = path.read_text().splitlines()[1:]
    assert [*map(float, lines)] == sorted(floats)
    # Java has other digits for some; where they are Python's, so is the text.
    same = [line for line in lines if Decimal(line) == Decimal(repr(float(line)))]
    assert same
    assert same == [repr(float(line)) for line in same]


def test_a_single_column(spark: SparkSession, tmp_path: Path) -> None:
    rows = [("",), ("a",)]
    write(relation(spark, rows, (Type.STRING,)), ("x",), (Type.STRING,), tmp_path / "a.csv")
    expected = local(tmp_path / "b.csv", rows, ("x",), (Type.STRING,))
    assert (tmp_path / "a.csv").read_bytes() == expected.read_bytes()


def test_parquet(spark: SparkSession, tmp_path: Path) -> None:
    rows = [r for r in ROWS if abs(r[0]) < 2**55]
    write(relation(spark, rows), NAMES, TYPES, tmp_path / "a.parquet")
    mine = pq.read_table(tmp_path / "a.parquet")
    theirs = pq.read_table(local(tmp_path / "b.parquet", rows))
    assert [str(f.type) for f in mine.schema] == [
        "timestamp[us, tz=UTC]", "string", "int64", "int64", "double", "bool"
    ]  # fmt: skip
    wait = mine.schema.get_field_index("wait")
    waits = mine.column(wait).cast(theirs.schema.field("wait").type)
    assert mine.set_column(wait, "wait", waits).to_pydict() == theirs.to_pydict()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_no_rows(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    write(relation(spark, []), NAMES, TYPES, path)
    if kind == "parquet":
        assert pq.read_table(path).num_rows == 0
    else:
        assert path.read_bytes() == local(tmp_path / f"b.{kind}", []).read_bytes()
    write(relation(spark, []), NAMES, TYPES, tmp_path / "out", kind, batch_id=1)
    assert [*(tmp_path / "out").iterdir()] == []


def test_a_batch_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    types, names = (Type.INT,), ("n",)
    for batch, rows in [(0, [(1,)]), (1, [(2,), (3,)]), (1, [(4,)]), (2, [(5,)]), (2, [])]:
        write(relation(spark, rows, types), names, types, out, batch_id=batch)
    found = {str(p.relative_to(out)): p.read_text() for p in out.rglob("*") if p.is_file()}
    assert found == {"batch=0/part.csv": "n\n1\n", "batch=1/part.csv": "n\n4\n"}
    assert sorted(p.name for p in out.iterdir()) == ["batch=0", "batch=1"]


def test_rows_are_computed_once(spark: SparkSession, tmp_path: Path) -> None:
    rows, count = counted(relation(spark, ROWS).repartition(3))
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    try:
        write(rows, NAMES, TYPES, tmp_path / "a.csv")
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before or "1")
    assert count() == len(ROWS)


def test_where_nothing_can_be_written(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(SourceError, match="it is a folder"):
        write(relation(spark, ROWS), NAMES, TYPES, tmp_path / "a.csv", "csv")
    (tmp_path / "b").touch()
    with pytest.raises(SourceError, match="cannot be written"):
        write(relation(spark, ROWS), NAMES, TYPES, tmp_path / "b" / "c.csv")
    with pytest.raises(SourceError, match="what kind of file"):
        write(relation(spark, ROWS), NAMES, TYPES, tmp_path / "c")
    write(relation(spark, [(1,)], (Type.INT,)), ("n",), (Type.INT,), tmp_path / "c", "csv")
    assert (tmp_path / "c" / "part.csv").read_text() == "n\n1\n"


def test_as_python_sees_them(spark: SparkSession) -> None:
    row = (1794729600250000, "a", 90_000_000, 5, 0.5, True)
    frame = shown(relation(spark, [row]), NAMES, TYPES)
    assert dict(frame.dtypes)["T"] == "timestamp"
    table = frame.toArrow().to_pylist()[0]
    assert table["T"].replace(tzinfo=None) == datetime(2026, 11, 15, 8, 0, 0, 250_000)
    assert table["wait"] == timedelta(seconds=90)
    assert (table["area"], table["n"], table["x"], table["ok"]) == ("a", 5, 0.5, True)
