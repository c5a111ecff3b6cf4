"""Rules with a pivot: several kernels, each in its own task, find what one does."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kernel_checks import compiled
from merging import merged
from oracle.programs import random_case
from pyspark.sql import DataFrame, SparkSession

import streamlog
from streamlog.kernel import Kernel
from streamlog.plan.parts import Strategy, part
from streamlog.plan.pivot import Pivot, find, seat
from streamlog.runtime.columns import column_types, types_of_rows
from streamlog.runtime.envelope import CheckpointError
from streamlog.runtime.executor import END, Limits, Row
from streamlog.spark import Running, run, start, tasks, wire
from streamlog.spark.session import Jobs
from streamlog.spark.store import Store

MINPATH = """
stream arc(T: int, a: string, b: string, d: int).
output path.
path(T, X, Y, min(D)) <- arc(T, X, Y, D).
path(T, X, Z, min(D)) <- path(T1, X, Y, D1), arc(T2, Y, Z, D2), lgr(T1, T2, T), D = D1 + D2.
path(0, n1, home, 3).
"""
LOCKOUT = """
stream request(T: int, badge: int, door: string).
table valid(badge: int, door: string).
output opened, refused.
opened(T, B, D)  <- request(T, B, D), valid(B, D), not (refused(T0, B, _), T0 < T, T <= T0 + 6).
refused(T, B, D) <- request(T, B, D), not opened(T, B, D).
"""
CHAIN = """
stream request(T: int, badge: int, door: string).
table valid(badge: int, door: string).
output opened, refused.
opened(T, B, D)  <- request(T, B, D), valid(B, D).
refused(T, B, D) <- request(T, B, D), not valid(B, D).
refused(T, B, D) <- refused(T1, B, _), request(T2, B, D), lgr(T1, T2, T).
"""
TIMER = """
stream start(T: int, on: bool).
stream stop(T: int, on: bool).
output due.
due(T + 2, X) <- start(T, X).
due(T + 2, X) <- due(T, X), not stop(T, X).
"""


def arcs(rng: Random, count: int) -> list[Row]:
    nodes = [f"n{i}" for i in range(6)]
    found = {(t, rng.choice(nodes), rng.choice(nodes), rng.randint(1, 5)) for t in range(count)}
    return sorted(found)


def requests(rng: Random, count: int) -> list[Row]:
    return [(t, rng.randint(-3, 9), rng.choice(["lab", "gate"])) for t in range(count)]


VALID: list[Row] = [(badge, "lab") for badge in range(-3, 9, 2)]
CASES = {
    "a stream for all": (
        MINPATH,
        {"arc": arcs(Random(1), 30)},
        "T long, a string, b string, d long",
    ),
    "all dealt out": (
        LOCKOUT,
        {"request": requests(Random(2), 60)},
        "T long, badge long, door string",
    ),
    "a timer": (
        TIMER,
        {"start": [(1, True), (4, False)], "stop": [(9, True), (30, True)]},
        "T long, on boolean",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_they_find_what_one_does(spark: SparkSession, case: str) -> None:
    text, streams, schema = CASES[case]
    program = streamlog.compile(text)
    frames = {name: spark.createDataFrame(rows, schema) for name, rows in streams.items()}
    given: dict[str, list[Row]] = {}
    if "table valid" in text:
        given["valid"] = VALID
        frames["valid"] = spark.createDataFrame(VALID, "badge long, door string")
    wanted = Kernel(program.closed, given).step(streams, dict.fromkeys(streams, END))
    for name in wanted:
        with Jobs(spark, "test") as jobs:
            answers = run(program, frames, kernels=3)
            found = [tuple(row) for row in answers[name].collect()]
        assert sorted(found) == sorted(wanted[name])
        # A timer goes on as far as the data do, which is a job to find out.
        assert jobs.count == (2 if case == "a timer" else 1)
        answers.release()


def has_pivot(seed: int) -> bool:
    program = compiled(random_case(Random(seed)))
    plan, closed = program.closed.plan, program.closed
    defined = {r.rule.head.pred for r in plan.rules}
    whole = part(plan, [c for c in plan.components if c.preds[0] in defined])
    return find(whole, closed.schema.is_temporal, closed.types.column) is not None


def test_random_programs(spark: SparkSession) -> None:
    together = merged(filter(has_pivot, range(30)))
    given = {**together.facts, **together.tables}
    types = column_types(together.program.closed, types_of_rows(given))
    names = together.program.schema.column_names
    frames = {
        name: spark.createDataFrame(wire.relation(rows, types[name]).rename_columns(names[name]))
        for name, rows in given.items()
        if rows and name in types
    }
    empty = [name for name in together.program.schema.inputs if name not in frames]
    answers = run(together.program, frames, kernels=3, strategy=Strategy.KERNEL, empty=empty)
    assert len(together.answers) > 5
    for name, wanted in together.answers.items():
        found = [tuple(row) for row in answers.relations[name].collect()]
        assert sorted(found) == sorted(wanted), name
    parts = {row["part"] for row in answers._batch.stored[-1].select("part").collect()}
    assert parts == {0, 1, 2}
    answers.release()


def test_each_has_a_task_of_its_own(spark: SparkSession) -> None:
    program = streamlog.compile(MINPATH)
    frame = spark.createDataFrame(arcs(Random(3), 20), "T long, a string, b string, d long")
    answers = run(program, {"arc": frame}, kernels=3)
    by_task = answers.relations["path"].rdd.glom().map(lambda rows: {r[1] for r in rows}).collect()
    sources = [seats for seats in by_task if seats]
    assert len(by_task) == 3 and len(sources) > 1
    for number, mine in enumerate(by_task):
        assert {seat(source, 3) for source in mine} <= {number}


def test_values_have_the_seats_that_spark_says(spark: SparkSession) -> None:
    rows = [(-5, "ü€ x", True), (0, "", False), (2**62, "a\nb", True), (7, "😀", False)]
    frame = spark.createDataFrame(rows, "c0 long, c1 string, c2 boolean")
    for column in range(3):
        pivot = Pivot({"p": column})
        program = streamlog.compile(MINPATH).closed
        job = tasks.Job(program, {}, 0, Limits(), 3, pivot, kernels=5)
        for row in tasks.seated(frame, job, "p").collect():
            assert row["part"] == seat(row[column], 5)


# ---------------------------------------------------------------------------- micro-batches


class Stream:
    """Requests in files that appear one by one, and what comes out."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark = root, spark
        self.found: dict[str, list[Row]] = {"opened": [], "refused": []}
        (root / "request").mkdir()

    def fill(self, number: int, rows: list[Row]) -> None:
        columns = dict(zip(("T", "badge", "door"), map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table(columns), self.root / "request" / f"{number}.parquet")

    def start(self, kernels: int, text: str = LOCKOUT, strategy: Strategy | None = None) -> Running:
        schema = "T long, badge long, door string"
        inputs: dict[str, DataFrame] = {
            "request": self.spark.readStream.schema(schema).parquet(str(self.root / "request")),
            "valid": self.spark.createDataFrame(VALID, "badge long, door string"),
        }
        program = streamlog.compile(text)
        sinks = {
            name: lambda rows, _, name=name: self.found[name].extend(map(tuple, rows.collect()))
            for name in self.found
        }
        state = str(self.root / "state")
        return start(program, inputs, sinks, state, strategy=strategy, kernels=kernels)


def test_a_restart_keeps_the_number(spark: SparkSession, tmp_path: Path) -> None:
    stream, rows = Stream(tmp_path, spark), requests(Random(4), 90)
    for number in range(3):
        running = stream.start(kernels=3 - number)
        assert running.run.evaluation.kernels == 3
        stream.fill(number, rows[30 * number : 30 * (number + 1)])
        running.catch_up()
        assert running.figures[-1].jobs <= 4  # to look, to compute, and one for each output
        if number < 2:
            running.stop()
    running.end()
    program = streamlog.compile(LOCKOUT)
    wanted = Kernel(program.closed, {"valid": VALID}).step({"request": rows}, {"request": END})
    for name, found in stream.found.items():
        assert sorted(found) == sorted(wanted[name])


def test_rows_dealt_out_in_another_way_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    program, folder = streamlog.compile(LOCKOUT), str(tmp_path)
    assert Store(spark, folder, program, by_badge, kernels=2).kernels == 2
    assert Store(spark, folder, program, by_badge, kernels=9).kernels == 2
    with pytest.raises(CheckpointError, match="with another strategy, or by another"):
        Store(spark, folder, program, by_door, kernels=2)


def by_badge(kernels: int) -> list[object]:
    return ["kernel", {"opened": 1}, kernels]


def by_door(kernels: int) -> list[object]:
    return ["kernel", {"opened": 2}, kernels]


def test_another_strategy_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Rows that a fixpoint has kept mean nothing to a kernel."""
    stream = Stream(tmp_path, spark)
    stream.start(kernels=1, text=CHAIN, strategy=Strategy.FIXPOINT).stop()
    stream.start(kernels=1, text=CHAIN, strategy=Strategy.FIXPOINT).stop()
    with pytest.raises(CheckpointError, match="with another strategy"):
        stream.start(kernels=1, text=CHAIN, strategy=Strategy.KERNEL)


def test_a_run_of_an_older_form_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    program, folder = streamlog.compile(LOCKOUT), str(tmp_path)
    store = Store(spark, folder, program, by_badge, kernels=2)
    document = json.loads(store.files.read("run.json") or "")
    store.files.delete("run.json")
    store.files.write("run.json", json.dumps({**document, "version": 2}))
    with pytest.raises(CheckpointError, match="has version 2; this streamlog reads 7 and 8"):
        Store(spark, folder, program, by_badge, kernels=2)
