"""Between batches Spark keeps what the contract says, where that is one row per key."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from runtime.test_kept import PROGRAMS, assert_one_row_per_key, batches

import streamlog
from streamlog.analysis.contract import Keeps
from streamlog.compiler import compile_file
from streamlog.kernel import Kernel
from streamlog.runtime.columns import column_types
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import Row
from streamlog.spark import arrival, wire
from streamlog.spark.delivery import Relations
from streamlog.spark.executor import SparkExecutor
from streamlog.spark.inputs import Inputs
from streamlog.spark.streaming import Run

ROOT = Path(__file__).parents[2]


def per_key(path: Path) -> bool:
    contract = compile_file(ROOT / path).contract
    return any(p.kept.what is Keeps.PER_KEY for p in contract.predicates)


@pytest.mark.parametrize("path", [p for p in PROGRAMS if per_key(p)], ids=str)
def test_one_row_per_key(path: Path) -> None:
    program = compile_file(ROOT / path)
    spark, local = (Engine(program, executor) for executor in (SparkExecutor, Kernel))
    # Components in kernels keep their own state, which `tests/runtime` looks at.
    promised = {
        p.predicate.name: p.kept
        for p in program.contract.predicates
        if p.kept.what is Keeps.PER_KEY
    }
    for batch, now in list(batches(program))[:4]:
        for engine in (spark, local):
            for stream, row in batch:
                engine.push(stream, [row])
            engine.advance(now)
        assert spark.step() == local.step()
        for name, rows in spark.executor.holding().items():
            if name in promised:
                past = [row for row in rows if row[0] < now - promised[name].span]
                goals = {i.where for i in program.closed.plan.indexes if i.pred == name}
                assert_one_row_per_key(program, name, past, promised[name], len(goals))


LATER_FIRST = """
stream s(T: int, k: string, v: int).
stream r(T: int, v: int).
stream ask(T: int, k: string).
output q.
p(T, K) <- s(T, K, V), r(T1, V), T1 <= T.
q(T, K) <- ask(T, K), not (p(T0, K), T0 < T).
"""


def test_a_row_that_is_found_after_a_later_one_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    """The later one is not old yet for questions that come between the two."""
    program = streamlog.compile(LATER_FIRST)
    types = column_types(program.closed, {})
    found: list[Row] = []
    sink = Relations(lambda rows, _: found.extend(map(tuple, rows.collect())))
    run = Run(spark, program, Inputs.of(spark, program, {}), types, {"q": sink}, str(tmp_path))
    batches: list[dict[str, list[Row]]] = [
        {"s": [(5, "k", 2), (8, "k", 1), (20, "z", 9)], "r": [(3, 1)], "ask": [(2, "z")]},
        {"r": [(4, 2), (20, 9)], "ask": [(6, "z")]},
        {"ask": [(7, "k"), (30, "z")]},
    ]
    for number, batch in enumerate(batches):
        frames = {
            name: spark.createDataFrame(
                wire.relation(rows, types[name]), wire.columns(types[name])
            ).withColumns(
                {
                    c: F.lit(None).cast("string")
                    for c in (arrival.PLACE, arrival.REASON, arrival.TEXT, arrival.ODD)
                }
            )
            for name, rows in batch.items()
        }
        run.step(arrival.united(frames, types, run.width), number)
    run.step(None, len(batches))
    assert sorted(found) == [(2, "z"), (6, "z")]
