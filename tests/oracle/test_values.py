from __future__ import annotations

from typing import Any

import pytest

from oracle import values
from oracle.values import ValueFailure
from streamlog.syntax.ast import INT64_MAX, INT64_MIN


@pytest.mark.parametrize(
    ("left", "op", "right", "result"),
    [
        (7, "/", 2, 3.5),
        (6, "/", 2, 3.0),
        (-7, "//", 2, -4),
        (-7, "%", 2, 1),
        (7, "%", -2, -1),
        (7.5, "//", 2, 3.0),
        (INT64_MAX, "-", 1, INT64_MAX - 1),
        ("a", "++", "b", "ab"),
    ],
)
def test_operator(left: Any, op: str, right: Any, result: Any) -> None:
    found = values.apply(op, left, right)
    assert (found, type(found)) == (result, type(result))


@pytest.mark.parametrize(
    ("left", "op", "right"),
    [
        (1, "/", 0),
        (1, "//", 0),
        (1.0, "%", 0.0),
        (INT64_MAX, "+", 1),
        (INT64_MIN, "-", 1),
        (INT64_MIN, "//", -1),
        (2**62, "*", 2),
        (1e308, "*", 10),
    ],
)
def test_operator_without_result(left: Any, op: str, right: Any) -> None:
    with pytest.raises(ValueFailure):
        values.apply(op, left, right)


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [
        ("floor", (7, 3), 6),
        ("floor", (-7, 3), -9),
        ("ceil", (7, 3), 9),
        ("ceil", (-7, 3), -6),
        ("ceil", (6, 3), 6),
        ("floor", (0.75, 0.5), 0.5),
        ("abs", (-3,), 3),
        ("max", (1, 3, 2), 3),
        ("substr", ("stream", 1, 3), "tre"),
        ("substr", ("stream", 4), "am"),
        ("substr", ("stream", -2, 3), "s"),
        ("substr", ("stream", 9, 3), ""),
        ("substr", ("stream", 2, -1), ""),
        ("length", ("ßé",), 2),
        ("upper", ("ab",), "AB"),
    ],
)
def test_function(name: str, args: tuple[Any, ...], result: Any) -> None:
    assert values.call(name, args) == result


@pytest.mark.parametrize(
    ("name", "args"),
    [("floor", (7, 0)), ("ceil", (7, -1)), ("abs", (INT64_MIN,)), ("ceil", (INT64_MAX, 10))],
)
def test_function_without_result(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(ValueFailure):
        values.call(name, args)


def test_matches_searches_anywhere() -> None:
    assert values.holds("matches", "stream", "r.a")
    assert not values.holds("matches", "stream", "^r")
    with pytest.raises(ValueFailure):
        values.holds("matches", "stream", "(")


def test_sum_of_floats_does_not_depend_on_the_order() -> None:
    numbers = [0.1] * 10 + [1e16, -1e16]
    assert values.total(numbers) == values.total(numbers[::-1]) == 1.0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("count", 4),
        ("count_distinct", 3),
        ("sum", 12),
        ("avg", 3.0),
        ("min", 1),
        ("max", 5),
        ("first", 3),  # of 3 and 5 at the first timestamps the smaller
        ("last", 1),
    ],
)
def test_aggregate(name: str, expected: Any) -> None:
    solutions = [((2, 9), 3), ((1, 7), 5), ((1, 7), 3), ((2, 9), 1)]
    assert values.aggregate(name, solutions) == expected


def test_average_of_durations_is_a_duration() -> None:
    assert values.average([1, 2], of_durations=True) == 1
    assert values.average([-1, -2], of_durations=True) == -2
