"""Predicates without columns, and the ends of logical time, at the surfaces of Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import streamlog
from streamlog.spark import run, start
from streamlog.spark.inputs import Inputs
from streamlog.spark.records import ColumnsError
from streamlog.spark.sinks import write
from streamlog.spark.sources import read

BARE = "table u(). table v(x: int). output ok, p. ok() <- u(). p(X) <- v(X), not ok(). v(1)."
TIMED = """
stream s(T: int, x: int). table u(). table v(a: float). output p, ok, total.
v(1e16). v(1.0). v(-1e16).
p(T + 10, X) <- s(T, X).
ok() <- u().
total(T, sum(V)) <- s(T, _), T = 0, v(V).
"""
AROUND = [-(2**63), -(2**62) - 1, -(2**62), 0, 2**62, 2**62 + 1, 2**63 - 1]
INSIDE = [t for t in AROUND if abs(t) <= 2**62]


def test_dataframes_without_columns(spark: SparkSession) -> None:
    program = streamlog.compile(BARE)
    for values, holds in ("(true), (true), (false), (null)", True), ("(false)", False):
        frame = spark.sql(f"SELECT * FROM VALUES {values} AS u(holds)")
        answers = run(program, {"u": frame})
        assert answers["ok"].dtypes == [("holds", "boolean")]
        assert [tuple(r) for r in answers["ok"].collect()] == [(True,)] * holds
        assert answers["p"].count() == (not holds)
        reasons = [r["reason"] for r in answers.rejects.collect()]
        assert any("column `holds`: false is not a fact" in reason for reason in reasons)
    with pytest.raises(ColumnsError, match="lack `holds`"):
        run(program, {"u": spark.sql("SELECT 1 AS a, 2 AS b")})


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_files_without_columns(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    program, path = streamlog.compile(BARE), tmp_path / f"u.{kind}"
    for count in 1, 0:
        write(spark.sql(f"SELECT TRUE AS c0 LIMIT {count}"), (), (), path)
        if kind == "parquet":
            assert pq.read_table(path).to_pydict() == {"holds": [True] * count}
        else:
            row = "true\n" if kind == "csv" else '{"holds": true}\n'
            assert path.read_text() == "holds\n" * (kind == "csv") + row * count
        given = Inputs.of(spark, program, {"u": read(spark, path, "u", program)})
        assert given.checked({"u": ()})["u"].count() == count


def test_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Near the ends of time, beside a table without columns; and floats added up."""
    program = streamlog.compile(TIMED)
    rows = tmp_path / "s"
    spark.createDataFrame([(t, 1) for t in AROUND], "T long, x long").write.parquet(str(rows))
    frame = spark.readStream.schema("T long, x long").parquet(str(rows))
    found: dict[str, list[tuple]] = {"p": [], "ok": [], "total": [], "rejects": []}

    def sink(name: str):
        return lambda frame, batch: found[name].extend(map(tuple, frame.collect()))

    sinks = {name: sink(name) for name in found}
    given = {"s": frame, "u": spark.sql("SELECT TRUE AS holds")}
    running = start(program, given, sinks, str(tmp_path / "state"))
    running.catch_up()
    running.end()
    assert found["total"] == [(0, 1.0)]
    assert sorted(found["p"]) == [(t + 10, 1) for t in INSIDE]
    assert found["ok"] == [(True,)]
    ends = (
        "is not a valid timestamp: logical time goes from -4611686018427387904 to 461168601842738"
    )
    assert len(found["rejects"]) == len(AROUND) - len(INSIDE)
    assert all(ends in str(reject) for reject in found["rejects"])


def test_complete_data(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(t, 1) for t in AROUND], "T long, x long")
    answers = run(streamlog.compile(TIMED), {"s": frame}, empty=["u"])
    assert sorted(map(tuple, answers["p"].collect())) == [(t + 10, 1) for t in INSIDE]
    assert answers.rejects.count() == len(AROUND) - len(INSIDE)
