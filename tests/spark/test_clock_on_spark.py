"""The wall clock and `advance` in micro-batches: time goes on although nothing comes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import streamlog
from streamlog.spark import Running, start
from streamlog.spark.inputs import InputError

PATIENCE = 120  # seconds
PROGRAM = """
stream beat(T: time, sensor: string){}.
output silent.
silent(T, S) <- beat(T, S), not (beat(T1, S), T < T1, T1 <= T + 3s).
"""
CLOCK = PROGRAM.format(" arrives within 1s")


class Case:
    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark = root, spark
        (root / "beat").mkdir()

    def beat(self, sensor: str, at: datetime) -> None:
        """A file with one row, there at once."""
        file = self.root / "beat" / f".{sensor}"
        file.write_text(f"T,sensor\n{at.isoformat()},{sensor}\n")
        file.rename(file.with_name(f"{sensor}.csv"))

    def start(self, program: str = CLOCK) -> Running:
        rows = self.spark.readStream.schema("T string, sensor string").option("header", True)
        return start(
            streamlog.compile(program),
            {"beat": rows.csv(str(self.root / "beat"))},
            {"silent": str(self.root / "silent"), "late": str(self.root / "late")},
            str(self.root / "state"),
        )

    def silent(self) -> list[str]:
        files = sorted((self.root / "silent").glob("batch=*/part*.parquet"))
        return sorted(s for f in files for s in pq.read_table(f)["S"].to_pylist())

    def late(self) -> int:
        files = (self.root / "late").glob("batch=*/part*.parquet")
        return sum(pq.read_table(f).num_rows for f in files)


@pytest.fixture
def case(spark: SparkSession, tmp_path: Path) -> Case:
    return Case(tmp_path, spark)


def until(found: Callable[[], object]) -> None:
    patience = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < patience
        time.sleep(0.02)


def now() -> datetime:
    return datetime.now(timezone.utc)


def test_an_alarm_is_raised_in_silence_once(case: Case) -> None:
    case.beat("old", now() - timedelta(hours=1))
    running = case.start()
    until(lambda: case.silent() == ["old"])
    case.beat("a", now())
    due = time.monotonic() + 4
    until(lambda: case.silent() == ["a", "old"])
    print(f"raised {time.monotonic() - due:.2f} s after it was due", file=sys.stderr)
    assert time.monotonic() > due - 0.5
    case.beat("b", now())
    until(lambda: running.status.rows == 3)
    running.stop()
    # In the silence nobody runs; what comes meanwhile is not late, whatever the clock says.
    case.beat("c", now())
    time.sleep(4)
    running = case.start()
    until(lambda: case.silent() == ["a", "b", "c", "old"])
    batch = running.status.batch
    assert batch is not None
    time.sleep(1)
    running.stop()
    assert case.silent() == ["a", "b", "c", "old"]
    assert case.late() == 0


def test_advance_from_outside(case: Case) -> None:
    at = datetime(2026, 11, 15, 8, tzinfo=timezone.utc)
    case.beat("a", at)
    running = case.start(PROGRAM.format(""))
    running.catch_up()
    with pytest.raises(InputError, match="`beats` is not a stream"):
        running.advance(0, "beats")
    running.advance("2026-11-15T08:00:03Z")
    until(lambda: running.run.progress["beat"].progress > running.run.progress["beat"].seen)
    running.catch_up()
    assert case.silent() == []
    running.advance("2026-11-15T08:00:03.000001Z", "beat")
    until(lambda: case.silent() == ["a"])
    case.beat("b", at)
    until(lambda: case.late() == 1)
    running.stop()
