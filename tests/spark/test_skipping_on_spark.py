"""What cannot be computed, on Spark: left out, and told once."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from failing_programs import random_case
from kernel_checks import arrivals, compiled, tables
from pyspark.sql import SparkSession
from test_skipping import collected, expected

import streamlog
from streamlog.compiler import skipping
from streamlog.runtime.executor import END
from streamlog.runtime.functions import EvaluationError
from streamlog.runtime.python_functions import PythonError
from streamlog.spark import run, start
from streamlog.spark.executor import SparkExecutor
from streamlog.spark.failures import explained

PROGRAM = """
stream s(T: int, a: int, b: int).
output p, q.
p(T, A // B) <- s(T, A, B).
q(T, X) <- p(T, X), not s(T, X, X).
"""
ROWS = [(1, 4, 2), (2, 4, 0), (3, 9, 3), (4, 1, 0), (5, 1, 1)]


def frame(spark: SparkSession):
    return spark.createDataFrame(ROWS, "T long, a long, b long")


def test_complete_data(spark: SparkSession) -> None:
    found = run(streamlog.compile(PROGRAM), {"s": frame(spark)}, on_error="skip")
    assert {tuple(r) for r in found["q"].collect()} == {(1, 2), (3, 3)}
    assert {tuple(r) for r in found.errors.collect()} == {
        ("<text>:4", "division by zero", '{"T": 2, "A": 4, "B": 0}'),
        ("<text>:4", "division by zero", '{"T": 4, "A": 1, "B": 0}'),
    }


def test_a_query_that_fails_names_its_rule(spark: SparkSession) -> None:
    found = run(streamlog.compile(PROGRAM), {"s": frame(spark).limit(3)})
    with pytest.raises(EvaluationError) as raised, explained(found.blame):
        found["q"].collect()
    assert str(raised.value) == (
        "division by zero in the rule at <text>:4: p(T, A // B) <- s(T, A, B). "
        "(with T = 2, A = 4, B = 0)"
    )


def test_functions_of_python(spark: SparkSession, tmp_path: Path) -> None:
    """Their text goes to the tasks, which may run where the file is not."""
    (tmp_path / "f.py").write_text("def half(a):\n    return a // 2 if a != 9 else None\n")
    path = tmp_path / "p.slog"
    text = 'function half(int): int from "f.py". p(T, half(A)) <- s(T, A, _). output p.'
    path.write_text(f"{text} stream s(T: int, a: int, b: int).")
    program = streamlog.compile(path)
    with pytest.raises(PythonError):
        run(program, {"s": frame(spark)})
    found = run(program, {"s": frame(spark)}, on_error="skip", allow_python=True)
    (tmp_path / "f.py").unlink()
    assert {tuple(r) for r in found["p"].collect()} == {(1, 2), (2, 2), (4, 0), (5, 0)}
    ((_, reason, values),) = found.errors.collect()
    assert reason == "`half` of 'f.py' gives a value of type NoneType, not int"
    assert values == '{"T": 3, "A": 9}'


def test_micro_batches_with_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    program, source = streamlog.compile(PROGRAM), tmp_path / "in"
    source.mkdir()
    sinks = {name: str(tmp_path / f"{name}.csv") for name in ("p", "q", "errors")}
    for number in range(2):
        some = ROWS[3 * number : 3 * number + 3]
        lines = "".join(f"{t},{a},{b}\n" for t, a, b in some)
        (source / f"{number}.csv").write_text(lines)
        rows = spark.readStream.schema("T long, a long, b long").csv(str(source))
        folder = str(tmp_path / "st")
        running = start(program, {"s": rows}, sinks, folder, on_error="skip")
        running.catch_up()
        running.stop() if number == 0 else running.end()
    lines = [
        line
        for path in sorted((tmp_path / "errors.csv").rglob("*.csv"))
        for line in path.read_text().splitlines()[1:]
    ]
    assert len(lines) == 2 and all("division by zero" in line for line in lines)
    assert running.run.store.last is not None
    assert running.run.store.last.figures["skipped"] == {"<text>:4": 2}


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(spark: SparkSession, seed: int) -> None:
    case = random_case(Random(seed))
    program = skipping(compiled(case))
    executor = SparkExecutor(program.closed, tables(program, case))
    ended = dict.fromkeys(program.schema.streams, END)
    found = collected(program, [executor.step(arrivals(program, case), ended)])
    assert found == expected(program, case)
