"""A stream with two timelines in micro-batches: rows that one of them has passed, late rows,
duplicates, time from outside, a restart."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import streamlog
from streamlog.spark import Running, run, start

PROGRAM = """
stream detection(app: int, area: string) slack 5.
stream report(app: int, sys: int, area: string) progress app slack 5, sys where app <= sys.
output alarm, received.
alarm(T, A) <- detection(T, A), not (report(_, S, A), T <= S, S <= T + 20).
received(S, A) <- report(_, S, A), not (report(_, S1, A), S < S1, S1 <= S + 3).
"""
DETECTIONS = [(10, "a"), (11, "b"), (40, "c")]
REPORTS = [(12, 15, "b"), (8, 16, "x"), (8, 16, "x"), (9, 40, "a")]


class Case:
    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark = root, spark
        for name in ("detection", "report"):
            (root / name).mkdir()

    def write(self, name: str, file: str, rows: list[tuple[object, ...]]) -> None:
        header = {"detection": "app,area", "report": "app,sys,area"}[name]
        text = "\n".join([header, *(",".join(map(str, row)) for row in rows)])
        place = self.root / name / f".{file}"
        place.write_text(text + "\n")
        place.rename(place.with_name(f"{file}.csv"))

    def start(self) -> Running:
        def rows(name: str, schema: str):
            made = self.spark.readStream.schema(schema).option("header", True)
            return made.csv(str(self.root / name))

        return start(
            streamlog.compile(PROGRAM),
            {
                "detection": rows("detection", "app string, area string"),
                "report": rows("report", "app string, sys string, area string"),
            },
            {n: str(self.root / "out" / n) for n in ("alarm", "received", "late")},
            str(self.root / "state"),
        )

    def found(self, name: str) -> list[tuple[object, ...]]:
        files = sorted((self.root / "out" / name).glob("batch=*/part*.parquet"))
        return sorted(tuple(row.values()) for f in files for row in pq.read_table(f).to_pylist())


@pytest.fixture
def case(spark: SparkSession, tmp_path: Path) -> Case:
    return Case(tmp_path, spark)


def test_micro_batches(case: Case) -> None:
    case.write("detection", "1", DETECTIONS)
    case.write("report", "1", REPORTS[:2])
    running = case.start()
    running.catch_up()
    assert case.found("alarm") == case.found("received") == []
    # `sys` is at 16, `app` at 7: (8, 16) has left the buffer by `sys`, and comes again.
    case.write("report", "2", [REPORTS[2], (3, 17, "late on app"), (12, 15, "late on sys")])
    running.catch_up()
    assert running.status.rows == 8
    late = [(row[2], row[3]) for row in case.found("late")]
    assert late == [
        ("15 is earlier than 16, which `report.sys` has passed", '["12","15","late on sys"]'),
        ("3 is earlier than 7, which `report` has passed", '["3","17","late on app"]'),
    ]
    running.stop()
    running = case.start()
    running.advance(32, "report.sys")
    case.write("report", "3", REPORTS[3:])  # a detection at 10, answered too late
    running.catch_up()
    assert case.found("received") == [(15, "b"), (16, "x")]
    assert case.found("alarm") == [(10, "a")]
    assert dict(running.status.progress)["report.sys"] == "40"
    running.end()
    assert case.found("alarm") == [(10, "a"), (40, "c")]
    assert case.found("received") == [(15, "b"), (16, "x"), (40, "a")]


def test_complete_data(case: Case) -> None:
    case.write("detection", "1", DETECTIONS)
    case.write("report", "1", REPORTS)
    read = case.spark.read.option("header", True)
    inputs = {n: read.csv(str(case.root / n)) for n in ("detection", "report")}
    answers = run(streamlog.compile(PROGRAM), inputs)
    assert sorted(map(tuple, answers["alarm"].collect())) == [(10, "a"), (40, "c")]
    assert sorted(map(tuple, answers["received"].collect())) == [(15, "b"), (16, "x"), (40, "a")]
