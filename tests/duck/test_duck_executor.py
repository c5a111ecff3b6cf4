"""What DuckDB does differently from the kernel must not show: errors, values, names, limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Source
from streamlog.duck import DuckExecutor
from streamlog.kernel import Kernel
from streamlog.plan.parts import Strategy
from streamlog.runtime import checkpoint
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import END, LimitError, Limits, Measured, Resumable, Row
from streamlog.runtime.functions import EvaluationError


def compiled(text: str) -> Program:
    program = compile_source(Source("p.slog", text))
    assert isinstance(program, Program), program.diagnostics
    return program


def in_duckdb(program: Program) -> bool:
    return any(s.strategy is Strategy.SQL for s in DuckExecutor(program.closed, {}).stages)


def outcome(program: Program, executor: type, rows: list[Row]) -> object:
    """The answers, or what is said in their place."""
    try:
        found = executor(program.closed, {}).step({"s": sorted(rows)}, {"s": END})
    except EvaluationError as error:
        return str(error)
    return {name: sorted(some) for name, some in found.items()}


BIG = 2**63 - 1
DECLARED = "stream s(T: int, x: string, n: int, f: float).\noutput p.\n"
CASES = {
    "division by zero": ("p(T, N // (N - 1)) <- s(T, _, N, _).", [(0, "a", 1, 0.5)]),
    "division by zero that a test drops": (
        "p(T, D) <- s(T, _, N, _), N > 1, D = N // (N - 1).",
        [(0, "a", 1, 0.5), (1, "a", 7, 0.5), (2, "a", -7, 0.5)],
    ),
    "a quotient rounds down": (
        "p(T, N // 2, N % 3, N / 2) <- s(T, _, N, _).",
        [(t, "a", n, 0.0) for t, n in enumerate((-7, -1, 0, 1, 7, BIG, -BIG - 1))],
    ),
    "too large": ("p(T, N + 1) <- s(T, _, N, _).", [(0, "a", BIG, 0.5)]),
    "too large on the way": ("p(T, N + 1 - 1) <- s(T, _, N, _).", [(0, "a", BIG, 0.5)]),
    "a sum too large on the way": (
        "p(T, sum(N)) <- s(T, _, N, _).",
        [(0, "a", BIG, 0.5), (0, "b", BIG, 0.5), (0, "c", -BIG, 0.5)],
    ),
    "a sum too large": ("p(T, sum(N)) <- s(T, _, N, _).", [(0, "a", BIG, 0.5), (0, "b", 9, 0.5)]),
    "beyond the floats": ("p(T, F * F) <- s(T, _, _, F).", [(0, "a", 1, 1e200)]),
    "an exact sum": (
        "p(T, sum(F)) <- s(T, X, _, F).",
        [(0, "a", 1, 1e16), (0, "b", 1, 1.0), (0, "c", 1, -1e16), (0, "d", 1, 0.1)],
    ),
    "a sum beyond the floats": (
        "p(T, sum(F)) <- s(T, X, _, F).",
        [(0, "a", 1, 1.7e308), (0, "b", 1, 1.7e308)],
    ),
    "texts by code point": (
        'p(T, min(X), max(X)) <- s(T, X, _, _).\np(T, X, "later") <- s(T, X, _, _), X > "a".',
        [(0, x, 1, 0.0) for x in ("a", "B", "é", "z", "Z", "", "\U0001f680", "\uffee", "a ")],
    ),
    "texts that look like parameters": (
        """p(T, X ++ "$low '$high' \\"$low\\"") <- s(T, X, _, _), X != "$high".""",
        [(0, "$low", 1, 0.0), (0, "$high", 1, 0.0), (0, "it's", 1, 0.0)],
    ),
    "regular expressions": (
        'p(T, X) <- s(T, X, _, _), matches(X, "^\\\\pL+$").',
        [(0, x, 1, 0.0) for x in ("a", "é", "1", "")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_as_the_kernel(name: str) -> None:
    rules, rows = CASES[name]
    program = compiled(DECLARED + rules)
    assert in_duckdb(program) or "expressions" in name
    assert outcome(program, DuckExecutor, rows) == outcome(program, Kernel, rows)


def test_an_error_names_the_rule() -> None:
    program = compiled(DECLARED + CASES["division by zero"][0])
    said = outcome(program, DuckExecutor, CASES["division by zero"][1])
    where = "in the rule at p.slog:3: p(T, N // (N - 1)) <- s(T, _, N, _)."
    assert said == f"division by zero {where} (with T = 0, N = 1)"


def test_predicates_without_columns() -> None:
    program = compiled(
        "stream s(T: int).\ntable on().\ntable off().\noutput p, q.\non().\n"
        "also() <- on(), not off().\np(T) <- s(T), also().\nq(T) <- s(T), off()."
    )
    found = DuckExecutor(program.closed, {"on": [()], "off": []}).step({"s": [(1,)]}, {"s": END})
    assert found == {"also": [()], "p": [(1,)]}


PC_ALARM = (
    "stream pre(T: int, area: string).\nstream report(T: int, area: string).\noutput alarm.\n"
    "alarm(T, A) <- pre(T, A), not (report(T1, A), T <= T1, T1 <= T + 5).\n"
)


def test_what_is_not_needed_is_dropped() -> None:
    program = compiled(PC_ALARM)
    executor = DuckExecutor(program.closed, {})
    assert isinstance(executor, Resumable) and isinstance(executor, Measured)
    for at in range(0, 9000, 10):
        rows = {"pre": [(at, "a"), (at, "b")], "report": [(at + 1, "a")]}
        found = executor.step(rows, {"pre": at + 1, "report": at + 1})
        assert found.get("alarm", []) == ([(at - 10, "b")] if at else [])
        assert executor.size() < 3100  # a thousand rows of each are not worth a look
    assert sum(map(len, executor.holding().values())) <= 5
    assert executor.size() <= 5


def test_checkpoints(tmp_path: Path) -> None:
    program = compiled(PC_ALARM)

    def made() -> Engine:
        return Engine(program, DuckExecutor, {}, remember=False)

    first = made()
    for stream in ("pre", "report"):
        first.push(stream, [(t, x) for t in range(8) for x in "ab" if stream == "pre" or x == "a"])
    assert first.step() == {"alarm": [(0, "b"), (1, "b")]}
    checkpoint.save(first, tmp_path)
    second = made()
    checkpoint.load(second, tmp_path)
    second.end()
    assert second.step() == {"alarm": [(t, "b") for t in range(2, 8)]}


def test_recursion_that_does_not_end_is_stopped() -> None:
    program = compiled(
        "stream s(T: int, n: int).\noutput p.\np(T, N) <- s(T, N).\np(T, N + 1) <- p(T, N)."
    )
    for limits in (Limits(rounds=50), Limits(rows=50)):
        executor = DuckExecutor(program.closed, {}, limits, Strategy.FIXPOINT)
        with pytest.raises(LimitError, match=r"stopped after 50 .* the rule at p.slog:4"):
            executor.step({"s": [(1, 1)]}, {"s": END})


def test_a_query_that_takes_too_long_is_stopped() -> None:
    program = compiled(
        "stream s(T: int, n: int).\noutput p.\n"
        "p(T, max(A + B)) <- s(T, A), s(T, B), s(T, C), s(T, D), A * B != C * D."
    )
    rows = {"s": [(1, n) for n in range(3000)]}
    with pytest.raises(LimitError, match=r"stopped after 0\.2 seconds .*rule at p.slog:3"):
        DuckExecutor(program.closed, {}, Limits(seconds=0.2)).step(rows, {"s": END})
