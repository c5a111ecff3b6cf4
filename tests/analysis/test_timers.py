"""Which rules go on by themselves."""

from __future__ import annotations

import pytest

from streamlog.compiler import compile_source
from streamlog.diagnostics import Source

GOES_ON = {
    "a timer": "b(T) <- s(T). b(T + 1) <- b(T).",
    "two that call each other": "b(T) <- s(T). b(T + 1) <- c(T). c(T) <- b(T).",
    "one old event is enough": "b(T) <- s(T). b(T + 1) <- b(T), r(T1), T1 <= T.",
    "by a setting": "table w(n: int 1..9). b(T) <- s(T). b(U) <- b(T), w(N), U = T + N.",
    "by a value": "stream r(T: int, n: int 1..5). b(T) <- s(T). "
    "b(U) <- b(T), r(T1, N), T1 < T, U = T + N.",
    "through a time in a column": "b(T) <- s(T). b(U) <- c(T, U), T < U, U < T + 9. "
    "c(T, U) <- b(T), U = T + 5.",
}
STOPS = {
    "a head in the future": "b(T + 10) <- s(T). c(T + 1) <- b(T).",
    "a cycle of negations": "b(T + 10) <- s(T), not c(T). c(T + 1) <- b(T).",
    "as far as events go": "b(T) <- s(T). b(T) <- b(T1), s(T), T1 < T.",
    "with a bound": "b(T) <- s(T). b(T + 1) <- b(T), T < 100.",
    "paths": "p(T, X, Y) <- a(T, X, Y). p(T, X, Z) <- p(T1, X, Y), p(T2, Y, Z), lgr(T1, T2, T).",
    "times in a table": "table at(n: int 0..99). b(T) <- s(T). "
    "b(N) <- b(T), at(N), T < N, N < T + 9.",
    "an event decides, through a negation": "b(T) <- s(T). b(T + 1) <- b(T), c(T). "
    "c(T) <- s(T), not b(T - 1).",
}


def going_on(text: str) -> bool:
    program = compile_source(Source("timers", text))
    assert program.ok, [d.message for d in program.diagnostics]
    return any(rule.is_timer for rule in program.closed.plan.rules)


@pytest.mark.parametrize("text", GOES_ON.values(), ids=GOES_ON.keys())
def test_goes_on_by_itself(text: str) -> None:
    assert going_on(text)


@pytest.mark.parametrize("text", STOPS.values(), ids=STOPS.keys())
def test_stops_by_itself(text: str) -> None:
    assert not going_on(text)
