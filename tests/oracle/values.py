"""What operators, functions and aggregates make of values: one plain function for each.

    int, time, duration   int64; a result outside raises
    float                 a result that is not finite raises
    /                     true division, always a float
    // and %              floor: -7 // 2 is -4, -7 % 2 is 1; with floats too
    floor(V, d), ceil     the next multiple of d below or above, d > 0
    substr(S, i, n)       the characters at positions p with i <= p < i + n, counted from 0; what
                          lies outside of S is not there, so nothing is ever an error
    strings               Unicode code points: length, order, lower and upper as Python has them
    avg                   of numbers the true quotient of the exact sum; of durations its floor
    sum                   of floats the correctly rounded sum, whatever the order
    first, last           see `at_the_end`

A zero divisor, an overflow, a step that is not positive and a pattern that is no regular
expression raise `ValueFailure`; the evaluator says in which rule.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import re2

from oracle.failure import ValueFailure as ValueFailure
from oracle.more_functions import MORE
from streamlog.syntax.ast import INT64_MAX, INT64_MIN
from streamlog.syntax.nothing import NONE, Nothing

Value: TypeAlias = int | float | str | bool | Nothing
Row: TypeAlias = tuple[Value, ...]


def checked(value: Any) -> Any:
    """The value, if it fits its type."""
    if type(value) is int and not INT64_MIN <= value <= INT64_MAX:
        raise ValueFailure(f"{value} does not fit into 64 bits")
    if type(value) is float and not math.isfinite(value):
        raise ValueFailure("the number is too large for a float")
    return value


# ------------------------------------------------------------------------------- operators

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: float(left) / float(right),
    "//": operator.floordiv,
    "%": operator.mod,
    "++": operator.add,
}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def there(*values: Value) -> None:
    """The compiler lets nothing compute with `none`."""
    if NONE in values:
        raise ValueFailure("a rule computes with none")


def apply(op: str, left: Value, right: Value) -> Value:
    if op in _COMPARISONS:
        return compare(op, left, right)
    there(left, right)
    try:
        return checked(_OPERATORS[op](left, right))
    except ZeroDivisionError:
        raise ValueFailure(f"{left} {op} {right}: division by zero") from None
    except OverflowError:
        raise ValueFailure(f"{left} {op} {right}: the number is too large") from None


def negate(value: Any) -> Value:
    there(value)
    return checked(-value)


def compare(op: str, left: Value, right: Value) -> bool:
    """Numbers by their value, whether int or float; strings by code points; false < true."""
    if op not in ("=", "!="):
        there(left, right)
    return _COMPARISONS[op](left, right)


# ------------------------------------------------------------------------------- functions


def floor(value: Any, step: Any) -> Value:
    if step <= 0:
        raise ValueFailure(f"floor to multiples of {step}")
    if isinstance(value, float) and abs(value / step - round(value / step)) < 1e-9:
        return checked(round(value / step) * step)  # 0.29 is 29 times 0.01
    return checked(value // step * step)


def ceil(value: Any, step: Any) -> Value:
    if step <= 0:
        raise ValueFailure(f"ceil to multiples of {step}")
    return checked(-floor(-value, step))


def substr(text: str, start: int, length: int | None = None) -> str:
    end = len(text) if length is None else start + length
    return "".join(c for position, c in enumerate(text) if start <= position < end)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "max": max,
    "min": min,
    "abs": lambda value: checked(abs(value)),
    "floor": floor,
    "ceil": ceil,
    "length": len,
    "lower": str.lower,
    "upper": str.upper,
    "substr": substr,
}


def call(name: str, args: Sequence[Value]) -> Value:
    if name == "default":
        return args[1] if args[0] is NONE else args[0]
    if name != "in":
        there(*args)
    return checked((_FUNCTIONS.get(name) or MORE[name])(*args))


def holds(name: str, text: str, other: str) -> bool:
    """The goals that test strings: `contains`, `starts_with`, `matches` (anywhere in the text)."""
    there(text, other)
    match name:
        case "contains":
            return other in text
        case "starts_with":
            return text.startswith(other)
        case "matches":
            try:
                return re2.search(other, text) is not None
            except re2.error as error:
                raise ValueFailure(f"{other!r} is no regular expression: {error}") from None
        case _:
            raise AssertionError(name)


# ------------------------------------------------------------------------------ aggregates


def total(values: Iterable[Any]) -> Value:
    values = list(values)
    if any(isinstance(v, float) for v in values):
        try:
            return checked(float(sum(map(Fraction, values))))  # rounded once
        except OverflowError:
            raise ValueFailure("the sum is too large for a float") from None
    return checked(sum(values))


def average(values: Iterable[Any], *, of_durations: bool) -> Value:
    values = list(values)
    if of_durations:
        return sum(values) // len(values)
    if any(isinstance(v, float) for v in values):
        return checked(total(values) / len(values))  # type: ignore[operator]
    return float(sum(values)) / len(values)


def at_the_end(candidates: Iterable[tuple[tuple[int, ...], Any]], *, last: bool) -> Value:
    """`first` or `last` of (timestamps, value).

    The timestamps are those of the solution's positive goals, in the order of the body, compared
    one after the other. Of several values at the same timestamps the smallest counts, for
    `first` and for `last`.
    """
    candidates = list(candidates)
    end = (max if last else min)(times for times, _ in candidates)
    return min(value for times, value in candidates if times == end)


def aggregate(
    name: str, candidates: Sequence[tuple[tuple[int, ...], Any]], *, of_durations: bool = False
) -> Value:
    """The aggregate of a group: one (timestamps, value) for each distinct solution."""
    values = [value for _, value in candidates]
    if name not in ("count", "count_distinct"):
        there(*(value for _, value in candidates))
    match name:
        case "count":
            return len(values)
        case "count_distinct":
            return len(set(values))
        case "sum":
            return total(values)
        case "avg":
            return average(values, of_durations=of_durations)
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "count_if":
            return values.count(True)
        case "var" | "stddev":
            mean = sum(map(Fraction, values)) / len(values)
            spread = sum((Fraction(v) - mean) ** 2 for v in values) / max(len(values) - 1, 1)
            return checked(float(spread) if name == "var" else math.sqrt(float(spread)))
        case "median":
            ranked = sorted([*values, *values])  # each twice: the middle lies between two
            low, high = ranked[len(values) - 1 : len(values) + 1]
            return (low + high) // 2 if of_durations else float(Fraction(low) + Fraction(high)) / 2
        case "percentile":
            ranked = sorted(v for v, _ in values)
            rank = Fraction(str(values[0][1])) * (len(ranked) - 1)
            weights = ((v, max(0, 1 - abs(rank - i))) for i, v in enumerate(ranked))
            exact = sum(Fraction(v) * weight for v, weight in weights)
            return exact // 1 if of_durations else checked(float(exact))
        case "arg_min" | "arg_max":
            end = (min if name == "arg_min" else max)(by for _, by in values)
            return min(v for v, by in values if by == end)
        case "collect":
            return "[" + ", ".join(json.dumps(v, ensure_ascii=False) for v in sorted(values)) + "]"
        case "first" | "last":
            return at_the_end(candidates, last=name == "last")
        case _:
            raise AssertionError(name)
