"""Structured Streaming: micro-batches cut at will, late rows, restarts, changed programs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import streamlog
from streamlog.app.run_spark import live_line
from streamlog.compiler import Program
from streamlog.kernel import Kernel
from streamlog.runtime.envelope import CheckpointError
from streamlog.runtime.executor import END, Row
from streamlog.spark import Running, start
from streamlog.spark.run_status import KEPT, Figures, Record

# A negation that waits, the first of each key, a count over a window, and a recursion that the
# kernel does in tasks.
PROGRAM = """
stream ask(T: int, x: string) slack 3.
stream answer(T: int, x: string) slack 3.
output open, first, n, chain.
open(T, X) <- ask(T, X), not (answer(T1, X), T <= T1, T1 <= T + 5).
first(T, X) <- ask(T, X), not earlier(T, X).
earlier(T, X) <- ask(T0, X), T0 < T.
n(T, X, count(Y)) <- first(T, X), ask(T1, Y), T1 <= T, T1 > T - 4.
chain(T, X, Y) <- ask(T, X), answer(T, Y).
chain(T, X, Z) <- chain(T1, X, Y), chain(T2, Y, Z), lgr(T1, T2, T).
"""
OUTPUTS = ("open", "first", "n", "chain")
STREAMS = ("ask", "answer")
SLACK = 3


class Folders:
    """Files that appear one by one, and what comes out."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark = root, spark
        self.found: dict[str, list[Row]] = {name: [] for name in (*OUTPUTS, "late", "rejects")}
        self.batches = 0
        for stream in STREAMS:
            (root / stream).mkdir()

    def fill(self, rows: dict[str, list[Row]]) -> None:
        self.batches += 1
        for stream, some in rows.items():
            table = pa.table({"T": [r[0] for r in some], "x": [r[1] for r in some]})
            pq.write_table(table, self.root / stream / f"{self.batches:03}.parquet")

    def start(self, program: Program) -> Running:
        inputs = {
            stream: self.spark.readStream.schema("T long, x string").parquet(
                str(self.root / stream)
            )
            for stream in STREAMS
        }
        sinks = {name: self._sink(name) for name in self.found}
        return start(program, inputs, sinks, str(self.root / "state"))

    def _sink(self, name: str) -> Callable[[DataFrame, int], None]:
        return lambda rows, batch: self.found[name].extend(map(tuple, rows.collect()))


def batches(rng: Random, count: int) -> list[dict[str, list[Row]]]:
    """Rows with a few that are late."""
    result = []
    for number in range(count):
        rows: dict[str, list[Row]] = {}
        for stream in STREAMS:
            times = [max(0, 5 * number + rng.randrange(-4, 6)) for _ in range(6)]
            rows[stream] = [(t, rng.choice("abc")) for t in times]
        result.append(rows)
    return result


def in_time(given: list[dict[str, list[Row]]]) -> tuple[dict[str, list[Row]], int]:
    """The rows that are not late, by the rule that a micro-batch is judged as a whole."""
    kept: dict[str, set[Row]] = {stream: set() for stream in STREAMS}
    late = 0
    for stream in STREAMS:
        progress = seen = -(10**9)
        for rows in given:
            good = [r for r in rows[stream] if r[0] >= progress]
            late += len(rows[stream]) - len(good)
            kept[stream] |= set(good)
            seen = max([seen, *(r[0] for r in good)])
            progress = max(progress, seen - SLACK)
    return {s: sorted(rows) for s, rows in kept.items()}, late


def test_micro_batches_with_restarts(spark: SparkSession, tmp_path: Path) -> None:
    program = streamlog.compile(PROGRAM)
    folders = Folders(tmp_path, spark)
    given = batches(Random(1), 5)
    running = folders.start(program)
    for number, rows in enumerate(given):
        folders.fill(rows)
        running.catch_up()
        if number == 2:
            running.stop()
            running = folders.start(program)
    assert [f.jobs for f in running.figures if not any(f.answers.values())] in ([], [2], [2, 2])
    running.end()
    kept, late = in_time(given)
    wanted = Kernel(program.closed, {}).step(kept, dict.fromkeys(STREAMS, END))
    for name in OUTPUTS:
        assert sorted(folders.found[name]) == sorted(wanted.get(name, [])), name
    assert len(folders.found["late"]) == late > 0
    stream, _, reason, row = folders.found["late"][0]
    assert stream in STREAMS and json.loads(row)[0] == reason.split()[0]
    assert not folders.found["rejects"]


def test_two_runs_in_one_session(spark: SparkSession, tmp_path: Path) -> None:
    program = streamlog.compile("stream ask(T: int, x: string). output o. o(T, X) <- ask(T, X).")
    found: dict[str, list[Row]] = {"a": [], "b": []}
    runs = []
    for name, to in found.items():
        (tmp_path / name / "ask").mkdir(parents=True)
        pq.write_table(pa.table({"T": [1], "x": [name]}), tmp_path / name / "ask" / "1.parquet")
        source = spark.readStream.schema("T long, x string").parquet(str(tmp_path / name / "ask"))
        sink = {"o": lambda rows, _, to=to: to.extend(map(tuple, rows.collect()))}
        runs.append(start(program, {"ask": source}, sink, str(tmp_path / name / "state")))
    for run in runs:
        run.catch_up()
        run.stop()
    assert found == {"a": [(1, "a")], "b": [(1, "b")]}


def test_another_program_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    folders = Folders(tmp_path, spark)
    folders.fill(batches(Random(2), 1)[0])
    running = folders.start(streamlog.compile(PROGRAM))
    running.catch_up()
    running.stop()
    changed = streamlog.compile(PROGRAM.replace("T + 5", "T + 6"))
    with pytest.raises(CheckpointError, match="of another program"):
        folders.start(changed)


def test_a_damaged_commit_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    folders = Folders(tmp_path, spark)
    folders.fill(batches(Random(3), 1)[0])
    running = folders.start(streamlog.compile(PROGRAM))
    running.catch_up()
    running.stop()
    commit = max((tmp_path / "state" / "commits").glob("[0-9]*.json"))
    commit.write_text(commit.read_text().replace('"batch": 0', '"batch": 7'))
    with pytest.raises(CheckpointError, match=r"0\.json' is damaged: ChecksumException"):
        folders.start(streamlog.compile(PROGRAM))
    for crc in commit.parent.glob(".*.crc"):
        crc.unlink()
    with pytest.raises(CheckpointError, match="checksum is wrong"):
        folders.start(streamlog.compile(PROGRAM))


def test_the_stream_that_holds_answers_back_is_named(spark: SparkSession, tmp_path: Path) -> None:
    folders = Folders(tmp_path, spark)
    running = folders.start(streamlog.compile(PROGRAM))
    assert running.status.batch is None and running.status.slowest == "held by `answer`, never seen"
    folders.fill({"ask": [(10, "a"), (50, "b")], "answer": [(12, "a")]})
    running.catch_up()
    status = running.status
    assert status.is_active and status.failure is None
    assert (status.batch, status.rows) == (0, 3)
    assert status.progress == {"ask": "47", "answer": "9"}
    held = {h.output: str(h) for h in status.held}
    assert held["open"] == "open: waiting for `answer`, last seen 12"
    assert held["first"] == "first: waiting for `ask`, last seen 50"
    patience = time.monotonic() + 20
    while not running.status.sources and time.monotonic() < patience:
        time.sleep(0.1)  # Spark tells a moment later
    assert sorted(s.rows for s in running.status.sources) == [1, 2]
    line = live_line(running.status)
    assert line.startswith("batch 0 · 3 rows · ") and "held by `answer`, last seen 12 ·" in line
    running.end()
    assert not running.status.held and not running.status.is_active


def test_a_failure_is_part_of_the_status(spark: SparkSession, tmp_path: Path) -> None:
    program = streamlog.compile("stream ask(T: int, x: string). output p. p(T, X) <- ask(T, X).")
    folders = Folders(tmp_path, spark)
    rows = spark.readStream.schema("T long, x string").parquet(str(tmp_path / "ask"))

    def broken(rows: DataFrame, batch: int) -> None:
        raise RuntimeError("the sink is full")

    running = start(program, {"ask": rows}, {"p": broken}, str(tmp_path / "state"))
    folders.fill({"ask": [(1, "a")]})
    with pytest.raises(StreamingQueryException):
        running.catch_up()
    patience = time.monotonic() + 20
    while running.status.failure is None and time.monotonic() < patience:
        time.sleep(0.1)
    assert "the sink is full" in (running.status.failure or "")
    assert not running.status.is_active
    running.stop()


def test_figures_do_not_grow_for_ever() -> None:
    record = Record()
    for batch in range(KEPT + 5):
        record.add(Figures(batch, {}, {}, 0, 0, rounds=1, jobs=2, seconds=0.1))
    assert [record.last[0].batch, record.last[-1].batch] == [5, KEPT + 4]
    assert (record.batches, record.rounds, record.jobs) == (KEPT + 5, KEPT + 5, 2 * (KEPT + 5))
