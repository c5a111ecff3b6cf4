"""A rule that cannot be computed is reported with the values that made it fail."""

from __future__ import annotations

import pytest

import streamlog
from streamlog.runtime.functions import EvaluationError


def failure(program: str, **rows: list[tuple[object, ...]]) -> EvaluationError:
    engine = streamlog.Engine(streamlog.compile(program))
    for stream, some in rows.items():
        engine.push(stream, some)
    engine.end()
    with pytest.raises(EvaluationError) as raised:
        engine.step()
    return raised.value


def test_the_values_are_those_of_the_row() -> None:
    """Not of the rows before it: Z has been computed for one of them."""
    rules = "stream s(T: time, x: int, y: int). output p. p(T, Z) <- s(T, X, Y), Z = X // Y."
    rows = [(f"2026-11-15T08:00:0{n}Z", 4, 2 - n) for n in range(4)]
    error = failure(rules, s=rows)
    assert str(error).endswith("(with T = '2026-11-15T08:00:02Z', X = 4, Y = 0)")
    ((stream, (_, *values)),) = error.goals
    assert (stream, values) == ("s", [4, 0])


def test_two_rules_that_start_from_one_stream() -> None:
    rules = """
    stream s(T: int, x: int, y: int). stream t(T: int, y: int). output p, q.
    p(T, Z) <- s(T, X, Z), t(T1, X), T1 <= T, T1 >= T - 5.
    q(T, W) <- s(T, X, Y), t(T1, Z), T1 <= T, T1 >= T - 5, W = X // (Y - Z).
    """
    error = failure(rules, t=[(1, 3), (2, 7)], s=[(3, 9, 1), (4, 8, 7)])
    assert str(error).startswith("division by zero in the rule at <text>:4: q(T, W) <- ")
    # Whichever goal the rule starts from, T1 is the time of the t that fits.
    assert error.goals == (("s", (4, 8, 7)), ("t", (2, 7)))


def test_a_variable_that_is_not_bound_yet_has_no_value() -> None:
    rules = "stream s(T: int, x: string). output p. p(T, N) <- s(T, X), matches(X, X), N = int(X)."
    error = failure(rules, s=[(1, "7"), (2, "(")])
    assert [goal for goal in error.goals if goal[0] == "s"] == [("s", (2, "("))]
    assert str(error).endswith("(with T = 2, X = '(')")
