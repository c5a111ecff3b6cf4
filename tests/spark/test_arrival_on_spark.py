"""Times of arrival in micro-batches: in the order of the source, and the same when repeated."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import streamlog
from streamlog.compiler import Program
from streamlog.spark import Running, start
from streamlog.spark.inputs import Inputs
from streamlog.spark.sources import read_stream
from streamlog.spark.start import started

PROGRAM = """
stream report(app: time, sys: time arrival, area: string) progress app slack 1d, sys
    where app <= sys.
stream key(T: time arrival, what: string).
output log, pressed, alone.
log(S, A, W) <- report(A, S, W).
pressed(T, W) <- key(T, W).
alone(T, W) <- key(T, W), not (key(T1, W), T < T1, T1 <= T + 2s).
"""
PATIENCE = 60


def text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def given(spark: SparkSession, program: Program, root: Path, **kinds: str) -> Inputs:
    records = {
        name: read_stream(spark, root / name, name, program, kind=kinds.get(name, "csv"))
        for name in program.schema.streams
    }
    return Inputs.of(spark, program, records)


def run(spark: SparkSession, root: Path, sinks: dict[str, Any], **kinds: str) -> Running:
    program = streamlog.compile(PROGRAM)
    return started(program, given(spark, program, root, **kinds), sinks, str(root / "state"))


def rows(root: Path, name: str) -> list[tuple[Any, ...]]:
    files = sorted((root / name).glob("batch=*/part*.parquet"))
    return sorted(tuple(r.values()) for f in files for r in pq.read_table(f).to_pylist())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("report", "key"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_rows_have_the_order_of_their_lines(spark: SparkSession, root: Path) -> None:
    before = datetime.now(timezone.utc)
    lines = [f"w{n}" for n in range(50, 0, -1)]
    (root / "key" / "a.csv").write_text("what\n" + "\n".join(lines))
    (root / "report" / "a.jsonl").write_text(
        f'{{"app": "{text(before - timedelta(hours=1))}", "area": "a"}}\n'
        f'{{"app": "{text(before + timedelta(hours=9))}", "area": "b"}}\n'
        '{"app": "soon", "area": "c"}\n'
    )
    sinks = {name: str(root / f"out-{name}") for name in ("log", "pressed", "alone", "rejects")}
    running = run(spark, root, sinks, report="jsonl")
    running.catch_up()
    pressed = rows(root, "out-pressed")
    assert [what for _, what in pressed] == lines
    stamps = [at for at, _ in pressed] + [at for at, *_ in rows(root, "out-log")]
    assert len({*stamps}) == 51
    assert min(stamps) > before
    (rejected, other) = sorted(rows(root, "out-rejects"), key=lambda row: row[2])
    assert rejected[2].startswith("breaks `where app <= sys`: `app` is ")
    assert other[1].endswith("a.jsonl:3")
    assert running.run.store.last.figures["streams"]["report"] == [3, 2, 0]
    # In silence the clock moves time on.
    until = time.monotonic() + PATIENCE
    while len(rows(root, "out-alone")) < 50:
        assert time.monotonic() < until
        time.sleep(0.05)
    last = max(stamps)
    running.stop()
    (root / "key" / "b.csv").write_text("what\nz\n")
    running = run(spark, root, sinks, report="jsonl")
    running.catch_up()
    running.end()
    after = rows(root, "out-pressed")
    assert after[:-1] == pressed
    assert after[-1][0] > last
    assert rows(root, "out-alone")[-1] == after[-1]


def test_a_batch_that_is_repeated_has_the_same_stamps(spark: SparkSession, root: Path) -> None:
    (root / "key" / "a.csv").write_text("what\nb\na\nb\n")
    seen: list[list[tuple[Any, ...]]] = []

    def failing(found: DataFrame, batch: int) -> None:
        seen.append(sorted(tuple(row) for row in found.collect()))
        if len(seen) == 1:
            raise ValueError("no power")

    running = run(spark, root, {"pressed": failing})
    with pytest.raises(StreamingQueryException, match="no power"):
        running.catch_up()
    running.stop()
    running = run(spark, root, {"pressed": failing})
    running.catch_up()
    running.stop()
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert [what for _, what in seen[0]] == ["b", "a", "b"]


def test_dataframes_have_no_stamps_yet(spark: SparkSession, root: Path) -> None:
    (root / "key" / "a.csv").write_text("what\nx\n")
    reader = spark.readStream.schema("what string").option("header", True)
    program = streamlog.compile(PROGRAM)
    sinks = {"pressed": str(root / "out")}
    running = start(
        program,
        {"key": reader.csv(str(root / "key"))},
        sinks,
        str(root / "state"),
        empty=["report"],
        trigger={"availableNow": True},
    )
    running.wait(PATIENCE)
    running.end()
    assert [what for _, what in rows(root, "out")] == ["x"]
