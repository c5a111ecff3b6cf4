"""Complete data: DataFrames in, DataFrames out, with few jobs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dialect import DIALECT
from pyspark.sql import SparkSession

import streamlog
from streamlog.kernel import Kernel
from streamlog.plan.parts import Strategy
from streamlog.runtime.executor import END
from streamlog.runtime.functions import EvaluationError
from streamlog.spark import run
from streamlog.spark.failures import explained
from streamlog.spark.inputs import InputError
from streamlog.spark.session import Jobs

ALARM = """
stream pre_alarm(T: time, area: string).
stream report(T: time, area: string).
output pc_alarm.
pc_alarm(T, A) <- pre_alarm(T, A), not (report(T1, A), T <= T1, T1 <= T + 5min).
"""
MINUTE = 60_000_000
DOCS = Path(__file__).parents[2] / "docs"


def rows(spark: SparkSession, values: list[tuple], schema: str = "T long, area string"):
    return spark.createDataFrame(values, schema)


def test_answers_have_the_programs_columns(spark: SparkSession) -> None:
    answers = run(
        streamlog.compile(ALARM),
        {
            "pre_alarm": rows(spark, [(0, "a"), (MINUTE, "b"), (MINUTE, "b"), (2, None)]),
            "report": rows(spark, [(3 * MINUTE, "a")]),
        },
    )
    found = answers["pc_alarm"]
    assert found.dtypes == [("T", "timestamp"), ("A", "string")]
    assert [(str(t), a) for t, a in found.collect()] == [("1970-01-01 00:01:00", "b")]
    (bad,) = answers.rejects.collect()
    assert (bad["stream"], bad["reason"]) == ("pre_alarm", "column `area`: a value is missing")
    assert answers.late.count() == 0


def test_rows_that_break_what_facts_fix_are_refused(spark: SparkSession) -> None:
    program = streamlog.compile(
        "stream s(T: int, k: string). stream r(T: int, k: string).\n"
        "table limit(kind: string, n: int). limit(fast, 5). limit(slow, 100). output alone.\n"
        "alone(T, K) <- s(T, K), limit(fast, N), not (r(T1, K), T <= T1, T1 <= T + N)."
    )
    answers = run(
        program,
        {
            "s": rows(spark, [(1, "a")], "T long, k string"),
            "r": rows(spark, [(9, "a")], "T long, k string"),
            "limit": rows(spark, [("fast", 50), ("slow", 500)], "kind string, n long"),
        },
    )
    assert [tuple(row) for row in answers["alone"].collect()] == [(1, "a")]
    (bad,) = answers.rejects.collect()
    assert (bad["stream"], bad["reason"]) == (
        "limit",
        "column `n`: the rule for `alone` in line 3 relies on the fact 5 of the program; "
        "to allow others, declare the range of `n`",
    )


def test_names_that_spark_would_take_for_each_other(spark: SparkSession) -> None:
    program = streamlog.compile(
        "stream s(T: int, a: int, b: int). output pA, pa, ﬁ.\n"
        "pA(T, Ab, AB) <- s(T, Ab, AB). pa(T, ℌ) <- s(T, ℌ, H), H > 3. ﬁ(T) <- pa(T, _)."
    )
    answers = run(program, {"s": rows(spark, [(1, 2, 3), (2, 5, 4)], "T long, a long, b long")})
    found = {name: sorted(map(tuple, answers[name].collect())) for name in ("pA", "pa", "ﬁ")}
    assert found == {"pA": [(1, 2, 3), (2, 5, 4)], "pa": [(2, 5)], "ﬁ": [(2,)]}


@pytest.mark.parametrize("rule", ["p(T, X * X) <- s(T, X).", "p(T, Y - Y) <- s(T, X), Y = X * X."])
def test_a_result_beyond_the_range_of_floats(spark: SparkSession, rule: str) -> None:
    answers = run(
        streamlog.compile(f"stream s(T: int, x: float). output p. {rule}"),
        {"s": rows(spark, [(1, 1.7e308)], "T long, x double")},
    )
    with pytest.raises(EvaluationError, match="beyond the range of floats"), explained():
        answers["p"].collect()


def test_an_unknown_input_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InputError, match="did you mean `report`"):
        run(streamlog.compile(ALARM), {"reports": rows(spark, [])})


def test_patterns_are_those_of_the_local_engine(spark: SparkSession) -> None:
    program = streamlog.compile(
        "stream s(T: int, text: string, pattern: string). output p, slow.\n"
        "p(T) <- s(T, X, P), matches(X, P).\n"
        'slow(T) <- s(T, X, P), length(X) > 99, matches(X, "^(a+)+$").'
    )
    given = [(i, text, pattern) for i, (text, pattern, _) in enumerate(DIALECT)]
    given.append((99, "a" * 5_000 + "!", "^(a|aa)+$"))
    answers = run(program, {"s": rows(spark, given, "T long, text string, pattern string")})
    found = sorted(row[0] for row in answers["p"].collect())
    assert found == [i for i, (_, _, is_found) in enumerate(DIALECT) if is_found]
    assert answers["slow"].count() == 0


def test_an_error_in_a_rule_is_told_in_the_rules_words(spark: SparkSession) -> None:
    program = streamlog.compile("stream s(T: int, n: int). output p. p(T, 1 // N) <- s(T, N).")
    answers = run(program, {"s": rows(spark, [(1, 0)], "T long, n long")}, strategy=Strategy.KERNEL)
    from streamlog.spark.failures import explained

    with (
        pytest.raises(EvaluationError, match="division by zero in the rule at") as raised,
        explained(),
    ):
        answers["p"].collect()
    assert raised.value.goals == (("s", (1, 0)),)


@pytest.mark.parametrize("instants", [10, 100_000])
def test_jobs_do_not_depend_on_the_number_of_timestamps(spark: SparkSession, instants: int) -> None:
    program = streamlog.compile(
        "stream s(T: int, x: string). output n. output first.\n"
        "n(T, X, count(Y)) <- s(T, X), s(T1, Y), T1 <= T, T1 > T - 3.\n"
        "first(T, X) <- s(T, X), not earlier(T, X).\n"
        "earlier(T, X) <- s(T0, X), T0 < T."
    )
    s = spark.range(instants).selectExpr("id AS T", "CAST(id % 7 AS STRING) AS x")
    with Jobs(spark, "test") as jobs:
        answers = run(program, {"s": s})
        assert answers["n"].toArrow().num_rows == instants
        assert answers["first"].toArrow().num_rows == 7
    assert jobs.count == 2  # one for each answer


MINPATH = """
stream arc(T: int, a: string, b: string, d: int).
output path.
path(T, X, Y, min(D)) <- arc(T, X, Y, D).
path(T, X, Z, min(D)) <- path(T1, X, Y, D1), arc(T2, Y, Z, D2), lgr(T1, T2, T), D = D1 + D2.
"""


def test_a_stepwise_component_is_one_job(spark: SparkSession) -> None:
    program = streamlog.compile(MINPATH)
    arcs = [
        (1, "a", "b", 2),
        (2, "b", "c", 2),
        (3, "a", "c", 9),
        (4, "c", "a", 1),
        (5, "a", "c", 3),
    ]
    with Jobs(spark, "test") as jobs:
        answers = run(program, {"arc": rows(spark, arcs, "T long, a string, b string, d long")})
        found = {tuple(row) for row in answers["path"].collect()}
    assert found == set(Kernel(program.closed, {}).step({"arc": arcs}, {"arc": END})["path"])
    assert jobs.count == 1


def test_a_file_that_was_written_again_is_read_again(spark: SparkSession, tmp_path: Path) -> None:
    """Though the answers of the first run, which share a relation, were not released: Spark finds
    cached rows by their plan, and each run counts its rows under a name of its own."""
    program = streamlog.compile(
        "stream s(T: int, x: string). output p, q. r(T, X) <- s(T, X), X != a. "
        "p(T, X) <- r(T, X), T > 0. q(T, X) <- r(T, X), not p(T + 1, X)."
    )
    path = tmp_path / "s.csv"
    found = []
    for text in ("b", "c"):
        path.write_text(f"1,{text}\n", encoding="utf-8")
        answers = run(program, {"s": spark.read.csv(str(path), "T long, x string")})
        found.append([[tuple(row) for row in answers[name].collect()] for name in ("p", "q")])
    assert found == [[[(1, "b")], [(1, "b")]], [[(1, "c")], [(1, "c")]]]


def test_a_fixpoint_that_does_not_end_is_stopped(spark: SparkSession) -> None:
    from streamlog.runtime.executor import LimitError, Limits

    program = streamlog.compile(
        "stream s(T: int, n: int). output p. p(T, N) <- s(T, N). p(T, N + 1) <- p(T, N).",
        batch=True,
    )
    data = {"s": rows(spark, [(1, 0)], "T long, n long")}
    with pytest.raises(LimitError, match="look at the rule at"):
        run(program, data, strategy=Strategy.FIXPOINT, limits=Limits(rounds=5))


def test_the_example_of_the_operations_page(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "operations.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("alarm.slog").write_text(ALARM)
    rows(spark, [(0, "gate 1")]).write.parquet(str(tmp_path / "pre"))
    rows(spark, [(9 * MINUTE, "gate 1")]).write.parquet(str(tmp_path / "report"))
    for block in blocks:
        block = re.sub(r'"(pre|report)"\)', lambda m: f'"{tmp_path}/{m[1]}")', block)
        space: dict = {}
        exec(compile(block, "operations.md", "exec"), space)
        assert space["answers"]["pc_alarm"].count() == 1
