"""Python functions: declared, checked, executed only when that is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

import streamlog
from streamlog.runtime.functions import EvaluationError
from streamlog.runtime.python_functions import PythonError

PROGRAM = """function risk(float, string): float from "lib/risk.py".
function later(time): time from "lib/risk.py".

stream s(T: time, a: float, x: string).
output p, q.

p(T, R) <- s(T, A, X), R = risk(A, X), R > 1.0.
q(T, later(T)) <- s(T, _, _).

test "twice as much" {
    s(@2026-01-01T00:00:00Z, 2.0, a).
    end.
    expect p(@2026-01-01T00:00:00Z, 4.0).
}
"""
PYTHON = """
import math

def risk(a, x):
    if x == "raise":
        raise ValueError("no such country")
    return {"nan": math.nan, "none": None, "text": "1", "int": 7, "big": 10**400}.get(x, a * 2)

def later(t):
    return t + 1_000_000
"""
DATA = "T,a,x\n2026-01-01T00:00:00Z,1.5,a\n2026-01-01T00:00:01Z,1.5,int\n"
ARGS = ("run", "a.slog", "--engine", "local", "--input", "s=s.csv", "--format", "csv")


@pytest.fixture(autouse=True)
def files(write) -> None:
    write("a.slog", PROGRAM)
    write("lib/risk.py", PYTHON)
    write("s.csv", DATA)


def test_it_is_called(run) -> None:
    result = run(*ARGS, "--allow-python")
    assert result.exit_code == 0
    assert "p,2026-01-01T00:00:00Z,3.0" in result.stdout
    assert "p,2026-01-01T00:00:01Z,7.0" in result.stdout
    assert "q,2026-01-01T00:00:00Z,2026-01-01T00:00:01Z" in result.stdout


def test_a_setting_allows_it(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMLOG_ALLOW_PYTHON", "1")
    assert run(*ARGS).exit_code == 0
    assert run("test", "a.slog").exit_code == 0


@pytest.mark.parametrize("args", [ARGS, ("test", "a.slog"), ("repl", "a.slog")])
def test_it_is_refused_unless_allowed(run, write, args: tuple[str, ...]) -> None:
    write("lib/risk.py", "raise SystemExit('executed')")
    result = run(*args, input="")
    assert result.exit_code in (1, 2)
    text = " ".join((result.stdout + result.stderr).split())
    assert "`risk` is a Python function, from 'lib/risk.py'" in text
    assert "--allow-python" in text and "SystemExit" not in text


@pytest.mark.parametrize(
    "args",
    [["check"], ["fmt", "--check"], ["explain"], ["explain", "--plan"], ["explain", "--sql"]],
)
def test_others_never_execute_it(run, write, args: list[str]) -> None:
    write("lib/risk.py", "raise SystemExit('executed')")
    assert run(*args, "a.slog").exit_code == 0


def test_tests_call_it(run) -> None:
    assert run("test", "a.slog", "--allow-python").exit_code == 0


def test_queries_and_proofs_call_it(run) -> None:
    lines = 's(@2026-01-01T00:00:00Z, 2.0, a).\n.end\n?p(T, R), risk(R, "b") > 7.0.\n'
    lines += ".why p(@2026-01-01T00:00:00Z, 4.0)\n"
    result = run("repl", "a.slog", "--allow-python", input=lines)
    assert result.exit_code == 0
    assert "4.0" in result.stdout and "risk" in result.stdout


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("raise", "ValueError: no such country"),
        ("nan", "gives a number that is not finite"),
        ("big", "gives a number that is not finite"),
        ("none", "gives a value of type NoneType, not float"),
        ("text", "gives a value of type str, not float"),
    ],
)
def test_what_it_cannot_give_is_an_error_of_the_rule(run, write, given: str, reason: str) -> None:
    write("s.csv", f"{DATA}2026-01-01T00:00:02Z,1.0,{given}\n")
    result = run(*ARGS, "--allow-python")
    assert result.exit_code == 1
    assert f"`risk` of 'lib/risk.py'{':' if given == 'raise' else ''} {reason}" in result.stderr
    assert "in the rule at a.slog:7" in result.stderr and f"X = '{given}'" in result.stderr
    result = run(*ARGS, "--allow-python", "--on-error", "skip")
    assert result.exit_code == 0
    assert "a.slog:7         1" in result.stderr


@pytest.mark.parametrize(
    ("declared", "result", "is_right"),
    [
        ("int", "5", True),
        ("int", "True", False),
        ("int", "2**63", False),
        ("int", "5.0", False),
        ("bool", "True", True),
        ("bool", "1", False),
        ("string", "'x'", True),
        ("string", r"'\ud800'", False),
        ("duration", "-(2**63)", True),
        ("float", "False", False),
    ],
)
def test_types(tmp_path: Path, declared: str, result: str, is_right: bool) -> None:
    (tmp_path / "f.py").write_text(f"def f():\n    return {result}\n")
    path = tmp_path / "p.slog"
    path.write_text(
        f'function f(): {declared} from "f.py". stream s(T: int). output p. p(T, f()) <- s(T).'
    )
    engine = streamlog.Engine(streamlog.compile(path), allow_python=True)
    engine.push("s", [(1,)])
    engine.end()
    if is_right:
        assert len(engine.step()["p"]) == 1
    else:
        with pytest.raises(EvaluationError):
            engine.step()


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ('function lower(string): string from "lib/risk.py".', "SL0206"),
        ('function sum(int): int from "lib/risk.py".', "SL0206"),
        ('function risk(int): int from "lib/risk.py".', "SL0202"),
        ('function f(int): int from "lib/none.py".', "SL0107"),
        ('function f(int): int from "../a.py".', "SL0107"),
        ('function f(number): int from "lib/risk.py".', "SL0105"),
        ('function f(int) from "lib/risk.py".', "SL0101"),
        ("output r. r(T, risk(A)) <- s(T, A, _).", "SL0205"),
        ("output r. r(T, risk(X, A)) <- s(T, A, X).", "SL0301"),
        ("output r. r(T, rsik(A, X)) <- s(T, A, X).", "SL0205"),
        ("output r. r(later(T), A) <- s(T, A, _).", "SL0401"),
        ("output r. r(T, A) <- s(T, A, _), not (s(T1, A, _), T1 <= later(T)).", "SL0401"),
    ],
)
def test_what_is_wrong_is_found(run, write, statement: str, code: str) -> None:
    write("a.slog", PROGRAM + statement)
    result = run("check", "a.slog")
    assert result.exit_code == 1
    assert f"[{code}]" in result.stderr


@pytest.mark.parametrize(
    ("python", "reason"),
    [
        ("def risk(a): return a", "has no function `later`"),
        ("risk = later = 5", "has no function `risk`"),
        ("1 / 0", "cannot be executed: ZeroDivisionError"),
        ("def risk(:", "cannot be executed: SyntaxError"),
    ],
)
def test_a_file_that_is_wrong(run, write, python: str, reason: str) -> None:
    write("lib/risk.py", python)
    result = run(*ARGS, "--allow-python")
    assert result.exit_code == 2
    assert reason in result.stderr


def test_a_checkpoint_knows_the_file(run, write) -> None:
    args = (*ARGS, "--allow-python", "--checkpoint", "st")
    assert run(*args).exit_code == 0
    write("lib/risk.py", f"{PYTHON}\n# another\n")
    result = run(*args)
    assert result.exit_code == 2
    assert "is of another program" in result.stderr


def test_skipping_under_a_negation(run, write) -> None:
    write("a.slog", f"{PROGRAM} output r. r(T) <- s(T, _, _), not p(T, 1.0).")
    result = run(*ARGS, "--allow-python", "--on-error", "skip")
    assert result.exit_code == 2
    assert "`R = risk(A, X)` in the rule at a.slog:7 may fail" in result.stderr


def test_in_python(tmp_path: Path) -> None:
    program = streamlog.compile(tmp_path / "a.slog")
    with pytest.raises(PythonError, match="allow_python=True"):
        streamlog.Engine(program)
    engine = streamlog.Engine(program, allow_python=True)
    engine.push("s", [("2026-01-01T00:00:00Z", 1.5, "a")])
    engine.end()
    assert engine.step()["p"] == [(1767225600000000, 3.0)]
    assert engine.query('p(T, R), risk(R, "a") > 5.0') == [{"T": 1767225600000000, "R": 3.0}]


def test_it_is_no_goal(run, write) -> None:
    """Not read as an input of this name."""
    write("a.slog", PROGRAM.replace("R = risk(A, X), R > 1.0", "risk(A, X), R = A"))
    result = run("check", "a.slog")
    assert result.exit_code == 1
    assert "error[SL0205]: `risk` is a function, not a predicate" in result.stderr
    assert "compare its result: `risk(…) = …`" in result.stderr
