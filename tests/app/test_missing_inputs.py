"""An input that nobody gave is an error: without payments, every order would be unpaid."""

from __future__ import annotations

import pytest

import streamlog
from streamlog.runtime.sources import SourceError
from streamlog.spark import run as run_on_spark

UNPAID = """
stream order(T: int, id: string).
stream payment(T: int, id: string).
table grace(id: string).
output unpaid.
unpaid(T, I) <- order(T, I), not grace(I), not (payment(T1, I), T <= T1, T1 <= T + 5).
order(1, a).
"""


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_an_input_without_rows_is_named(run, write, engine: str) -> None:
    path = str(write("unpaid.slog", UNPAID))
    result = run("run", path, "--engine", engine, "--empty", "grace")
    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        "stream `payment` has no rows: read them with --input payment=PATH, or say "
        "--empty payment if there are none" in " ".join(result.stderr.split())
    )
    result = run("run", path, "--engine", engine)
    assert "the inputs `grace` and `payment` have no rows: " in " ".join(result.stderr.split())


def test_an_input_that_is_said_to_be_empty(run, write) -> None:
    path = str(write("unpaid.slog", UNPAID))
    no_rows = ("--empty", "payment", "--empty", "grace")
    result = run("run", path, "--engine", "local", "--format", "csv", *no_rows)
    assert (result.exit_code, result.stdout) == (0, "T,I\n1,a\n")
    result = run("run", path, "--engine", "local", "--empty", "paiment")
    assert result.exit_code == 2
    assert "the program has no input 'paiment'; did you mean 'payment'?" in result.stderr
    rows = write("payment.csv", "T,id\n")
    given = ("--input", f"payment={rows}", *no_rows)
    result = run("run", path, "--engine", "local", *given)
    assert "`payment` is given both with --input and with --empty" in result.stderr


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_empty_goes_before_from(run, write, engine: str) -> None:
    write("order.csv", "T,id\n1,a\n")
    program = 'stream order(T: int, id: string) from "order.csv".\noutput p.\np(T) <- order(T, _).'
    path = str(write("orders.slog", program))
    for given, answers in ((), "T\n1\n"), (("--empty", "order"), "T\n"):
        result = run("run", path, "--engine", engine, "--format", "csv", *given)
        assert (result.exit_code, result.stdout) == (0, answers), result.stderr


def test_a_misspelt_predicate_is_no_empty_stream(run, write) -> None:
    path = str(write("unpaid.slog", UNPAID.replace("not (payment", "not (paiment")))
    result = run("run", path, "--engine", "local", "--empty", "grace", "--empty", "payment")
    assert result.exit_code == 2
    assert "stream `paiment` has no rows (did you mean `payment`?)" in result.stderr


def test_what_no_answer_reads_may_be_missing(run, write) -> None:
    rules = UNPAID.replace("output unpaid.", "?seen(T, I).")
    path = str(write("some.slog", f"{rules}seen(T, I) <- order(T, I).\n"))
    result = run("run", path, "--engine", "local", "--format", "csv")
    assert (result.exit_code, result.stdout) == (0, "T,I\n1,a\n")


def test_in_python() -> None:
    program = streamlog.compile(UNPAID)
    with pytest.raises(SourceError, match="pass a DataFrame for `grace`, or name it in `empty`"):
        run_on_spark(program, {})
    with pytest.raises(SourceError, match="table `grace` has no rows: pass them in `tables`"):
        streamlog.Engine(program)
    engine = streamlog.Engine(program, {"grace": []})
    with pytest.raises(
        SourceError,
        match=r"stream `payment` has no rows: push them, or say engine\.end",
    ):
        engine.end()
    engine.end("payment")
    engine.end()
    engine.step()
    assert engine.facts("unpaid") == [(1, "a")]


def test_run_prints_what_check_warns_of(run, write) -> None:
    path = str(write("lost.slog", "output p.\np(T, T1) <- s(T), s(T1), T1 < T.\ns(1). s(2).\n"))
    result = run("run", path, "--engine", "local", "--format", "csv")
    assert (result.exit_code, result.stdout) == (0, "T,T1\n2,1\n")
    assert "warning[SL0502]" in result.stderr


LOST = 'output p.\np(T, T1) <- s(T), s(T1), T1 < T.\ntest "t" { s(1). end. expect none p. }\n'


def test_test_prints_what_check_warns_of(run, write) -> None:
    result = run("test", str(write("lost.slog", LOST)))
    assert (result.exit_code, result.stdout.count("1 passed")) == (0, 2)
    assert result.stderr.startswith("warning[SL0502]")


def test_compile_warns_in_python() -> None:
    with pytest.warns(streamlog.ProgramWarning, match=r"^<text>:2:19: SL0502: every fact"):
        streamlog.compile(LOST)
