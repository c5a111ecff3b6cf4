"""What the facts of a table fix: a row from elsewhere that breaks it is refused, with a reason."""

from __future__ import annotations

import pytest

from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Source
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine

MINUTE = 60_000_000
GRACE = """
stream order(T: time, id: string).
stream payment(T: time, id: string).
table grace(wait: duration).
grace(10min).
unpaid(T, I) <- order(T, I), grace(W), not (payment(T1, I), T <= T1, T1 <= T + W).
"""
KINDS = """
stream s(T: int, k: string).
stream r(T: int, k: string).
table limit(kind: string, n: int).
limit(fast, 5).
limit(slow, 100).
alone(T, K) <- s(T, K), limit(fast, N), not (r(T1, K), T <= T1, T1 <= T + N).
"""
DATA = """
stream s(T: int, n: int).
table limit(n: int).
limit(5).
above(T, N) <- s(T, N), limit(L), N > L.
"""


def program(text: str) -> Program:
    found = compile_source(Source("assumptions", text))
    assert found.ok, found.diagnostics
    return found


def test_a_longer_wait_than_the_fact_is_refused() -> None:
    engine = Engine(program(GRACE), Kernel, {"grace": [(60 * MINUTE,), (10 * MINUTE,)]})
    (reject,) = engine.rejects
    assert reject.reason == (
        "column `wait`: the rule for `unpaid` in line 6 relies on the fact 10min of the program; "
        "to allow others, declare the range of `wait`"
    )
    assert engine.facts("grace") == [(10 * MINUTE,)]


def test_a_declared_range_is_what_counts() -> None:
    text = GRACE.replace("wait: duration", "wait: duration 1min..1h")
    assert Engine(program(text), Kernel, {"grace": [(60 * MINUTE,)]}).rejects == []


@pytest.mark.parametrize(("row", "is_refused"), [(("fast", 50), True), (("slow", 500), False)])
def test_only_rows_that_a_rule_asks_for(row: tuple[str, int], is_refused: bool) -> None:
    assert bool(Engine(program(KINDS), Kernel, {"limit": [row]}).rejects) == is_refused


def test_nothing_is_assumed_where_time_does_not_rest_on_it() -> None:
    found = program(DATA)
    assert found.assumptions == ()
    assert Engine(found, Kernel, {"limit": [(7,)]}).rejects == []
