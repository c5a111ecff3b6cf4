"""Random programs as streaming runs: micro-batches cut by chance, rows in any order that the slack
permits, some of them twice, a restart between any two batches: the kernel's answers, none twice.

    STREAMLOG_SPARK_STREAMS=300 STREAMLOG_SEED=5000 pytest tests/spark/test_random_streaming.py
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import best_programs
import pytest
from merging import merged
from oracle.programs import Case, arrival_orders, random_case
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamlog.runtime.executor import Row
from streamlog.spark import arrival, store, wire
from streamlog.spark.columns import column_types, types_of_rows
from streamlog.spark.delivery import Relations
from streamlog.spark.inputs import Inputs
from streamlog.spark.streaming import Run

PAIRS = int(os.environ.get("STREAMLOG_SPARK_STREAMS", "4"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))
SHARD, SLACK, BATCHES = 4, 3, 3


@pytest.mark.parametrize("make", [random_case, best_programs.random_case], ids=["any", "best"])
@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS, SHARD))
def test_micro_batches(
    first: int,
    make: Callable[[Random], Case],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "_FOLDERS", 2)  # put together already in so few batches
    rng = Random(first)
    given = merged(range(first, min(first + SHARD, SEED + PAIRS)), SLACK, make)
    program = given.program
    types = column_types(program, types_of_rows({**given.facts, **given.tables}))
    found: dict[str, list[Row]] = {name: [] for name in given.answers}

    def frame(name: str, rows: list[Row]):
        return spark.createDataFrame(wire.relation(rows, types[name]), wire.columns(types[name]))

    def started() -> Run:
        tables = {name: frame(name, rows) for name, rows in given.tables.items() if name in types}
        inputs = Inputs.of(spark, program, tables)
        sinks = {
            name: Relations(lambda rows, _, to=found[name]: to.extend(map(tuple, rows.collect())))
            for name in found
        }
        return Run(spark, program, inputs, types, sinks, str(tmp_path))

    run = started()
    orders = arrival_orders(rng, {n: r for n, r in given.facts.items() if n in types}, SLACK)
    rows = [row for batch in orders for row in batch]
    cuts = sorted(rng.sample(range(len(rows)), BATCHES - 1))
    for batch, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        arrived: dict[str, list[Row]] = {}
        for name, row in rows[start:stop]:
            arrived.setdefault(name, []).extend([row] * rng.choice([1, 1, 2]))
        frames = {
            name: frame(name, some).withColumns(
                {c: F.lit(None).cast("string") for c in (arrival.REASON, arrival.RAW)}
            )
            for name, some in arrived.items()
        }
        run.step(arrival.united(frames, types, run.width), batch)
        if rng.random() < 0.5:
            run = started()
    run.step(None, BATCHES)
    assert {n: sorted(r) for n, r in found.items()} == {
        n: sorted(r) for n, r in given.answers.items()
    }
