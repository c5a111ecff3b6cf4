"""Limits on Spark: those of the local engine, in kernels, in recursion over DataFrames, in jobs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import streamlog
from streamlog.plan.parts import Strategy
from streamlog.runtime.executor import LimitError, Limits
from streamlog.spark import run, start
from streamlog.spark.failures import explained
from streamlog.spark.session import Jobs, SessionError, with_memory

GROWING = """
stream s(T: int, n: int).
output p.
p(T, N) <- s(T, N).
p(T, M) <- p(T, N), M = N + 1.
"""
DOUBLING = """
stream s(T: int, x: string).
output p.
p(T, X) <- s(T, X).
p(T, Y) <- p(T, X), Y = X ++ X.
"""


def stopped(spark: SparkSession, text: str, strategy: Strategy, limits: Limits) -> str:
    first = "0" if text is GROWING else "'a'"
    data = {"s": spark.sql(f"SELECT 1L AS T, {first} AS {'n' if text is GROWING else 'x'}")}
    with pytest.raises(LimitError) as found, explained():
        program = streamlog.compile(text, batch=True)
        run(program, data, strategy=strategy, limits=limits)["p"].collect()
    return str(found.value)


@pytest.mark.parametrize("strategy", [Strategy.KERNEL, Strategy.FIXPOINT])
def test_rounds_and_rows(spark: SparkSession, strategy: Strategy) -> None:
    for limits, said in (
        (Limits(rounds=5), "stopped after 5 rounds (--max-rounds): the recursion of p had "),
        (Limits(rows=4), "stopped after 4 rows (--max-rows): the recursion of p had 5 rows by"),
    ):
        message = stopped(spark, GROWING, strategy, limits)
        assert message.startswith(said)
        assert message.endswith("p(T, M) <- p(T, N), M = N + 1.")


@pytest.mark.parametrize("strategy", [Strategy.KERNEL, Strategy.FIXPOINT])
def test_seconds(spark: SparkSession, strategy: Strategy) -> None:
    message = stopped(spark, GROWING, strategy, Limits(seconds=3))
    assert message.startswith("stopped after 3 seconds (--max-seconds): ")


def test_memory_of_a_kernel(spark: SparkSession) -> None:
    message = stopped(spark, DOUBLING, Strategy.KERNEL, Limits(memory=2**29))
    assert message.startswith("stopped for lack of memory (--max-memory is 512 MB): ")
    assert message.endswith("p(T, Y) <- p(T, X), Y = X ++ X.")


@pytest.mark.parametrize("limits", [Limits(rows=5), Limits(seconds=3)])
def test_streams(spark: SparkSession, tmp_path: Path, limits: Limits) -> None:
    data = str(tmp_path / "s")
    spark.sql("SELECT 1L AS T, 0L AS n UNION ALL SELECT 9L, 0L").write.parquet(data)
    running = start(
        streamlog.compile(GROWING),
        {"s": spark.readStream.schema("T long, n long").parquet(data)},
        {"p": str(tmp_path / "p")},
        str(tmp_path / "state"),
        strategy=Strategy.FIXPOINT,
        limits=limits,
    )
    with pytest.raises(LimitError, match=r"stopped after \d (rows|seconds) \(--max-"):
        running.wait(120)


def test_a_job_is_cancelled(spark: SparkSession) -> None:
    slow = spark.range(10**7).crossJoin(spark.range(10**7).toDF("b")).selectExpr("MAX(id * b)")
    began = time.monotonic()
    with (
        pytest.raises(LimitError, match=r"^stopped after 1 seconds \(--max-seconds\): a test$"),
        explained(),
        Jobs(spark, "a test", 1),
    ):
        slow.collect()
    assert time.monotonic() - began < 50
    with Jobs(spark, "another", 60) as jobs:
        assert spark.range(3).count() == 3
    assert jobs.count


def test_graphframes_keeps_to_no_limit_and_is_not_used(spark: SparkSession) -> None:
    text = "table a(x: int, y: int). output r. r(X, Y) <- a(X, Y). r(X, Z) <- r(X, Y), a(Y, Z)."
    data = {"a": spark.sql("SELECT 1L AS x, 2L AS y")}
    found = run(streamlog.compile(text), data, strategy=Strategy.GRAPH, limits=Limits(rounds=9))
    assert found["r"].count() == 1
    assert found.metrics.no_graphs
    assert all(c.strategy is not Strategy.GRAPH for c in found.metrics.strategies.values())


def test_java_gets_as_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_memory({"a": "b"}, None) == {"a": "b"}
    with pytest.raises(SessionError, match="too late for Spark that runs already"):
        with_memory({}, 2**30)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    assert with_memory({"spark.executor.memory": "2g"}, 2**30) == {
        "spark.driver.memory": "1048576k",
        "spark.executor.memory": "2g",
    }
    with pytest.raises(SessionError, match="Spark needs --max-memory 512MB or more"):
        with_memory({}, 2**20)
