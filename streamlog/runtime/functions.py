"""What the language's functions do with values, wherever they are called from."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import fsum, isclose, isfinite
from typing import Any

from streamlog.analysis.patterns import PatternError, compiled
from streamlog.runtime.errors import EvaluationError as EvaluationError
from streamlog.runtime.executor import BEGIN, END
from streamlog.runtime.scalars import SCALARS
from streamlog.runtime.values import written
from streamlog.syntax.ast import INT64_MAX, INT64_MIN, Type
from streamlog.syntax.nothing import NONE, as_float

# What evaluating rules and queries may raise, besides.
ERRORS = (EvaluationError, ZeroDivisionError, OverflowError, TypeError)


def reason(error: Exception) -> str:
    """Why a value cannot be computed."""
    if isinstance(error, ZeroDivisionError):
        return "division by zero"
    if isinstance(error, TypeError):
        return f"values of different kinds meet ({error}): declare the types of the columns"
    return str(error)


def whole(value: int) -> int:
    """The value, if it fits into 64 bits."""
    if not INT64_MIN <= value <= INT64_MAX:
        raise EvaluationError(f"{value} does not fit into 64 bits")
    return value


def finite(value: float) -> float:
    """The value as a float, if it is a number: neither infinite nor none at all."""
    result = float(value)
    if not isfinite(result):
        raise EvaluationError("the result is beyond the range of floats")
    return result


def exact_sum(values: Sequence[float]) -> float:
    """The sum of floats, rounded once: it does not depend on their order."""
    try:
        return fsum(values)
    except OverflowError:  # on the way, which the order decides, or in the end
        try:
            return float(sum(map(Fraction, values)))
        except OverflowError:
            raise EvaluationError("the sum is beyond the range of floats") from None


def floor(value: float, step: float) -> float:
    """The largest multiple of the step that is not larger than the value."""
    if step <= 0:
        raise EvaluationError(f"{step} is not a step to round to")
    if isinstance(value, float) and (multiple := _multiple(value, step)) is not None:
        return multiple
    return value // step * step


def ceil(value: float, step: float) -> float:
    return -floor(-value, step)


def _multiple(value: float, step: float) -> float | None:
    """The multiple of the step that a float stands for: 0.29 is 29 times 0.01, though 28.99…96
    is what dividing gives."""
    nearest = round(value / step)
    return nearest * step if isclose(value / step, nearest, rel_tol=1e-12) else None


def substr(text: str, start: int, length: int | None = None) -> str:
    """The characters at `start`, `start + 1`, …, as far as there are any; the first is at 0."""
    end = len(text) if length is None else max(start + length, 0)
    return text[max(start, 0) : end]


def matches(text: str, pattern: str) -> bool:
    """Whether the pattern is found somewhere in the text."""
    try:
        return compiled(pattern).search(text.encode()) is not None
    except PatternError as error:
        raise EvaluationError(f"`{pattern}` is not a regular expression: {error}") from None


# ---------------------------------------------------------------- what cannot be computed


def failure(*parts: Callable[[], Any]) -> str:
    """Why parts of a rule have no value: of the first that has none, unless one is false."""
    first = ""
    for part in parts:
        try:
            if not part():
                return ""
        except ERRORS as error:
            first = first or reason(error)
    return first


def fits(_: Any) -> bool:
    """What has been computed is one of its type's values."""
    return True


def values(*named: Any) -> str:
    """Names with types, and values, as JSON."""
    found = {}
    for title, value in zip(named[::2], named[1::2], strict=True):
        name, _, kind = title.partition(" ")
        found[name] = written(value, Type(kind) if kind else None)
    return json.dumps(found, ensure_ascii=False)


# -------------------------------------------------------------- lists in the order of time


def between(stored: Any, part: int, low: int, high: int) -> Sequence[Any]:
    """What one of the lists holds from one time to another."""
    if stored is None:
        return ()
    times = stored[0]
    rows: Sequence[Any] = stored[part][bisect_left(times, low) : bisect_right(times, high)]
    return rows


def latest(times: Sequence[int], count: int, low: int, high: int) -> int:
    """Where the so many latest of some times begin; a time may occur several times."""
    for _ in range(count):
        if high <= low:
            return low
        high = bisect_left(times, times[high - 1], low, high)
    return high


def any_between(stored: Any, low: int, high: int) -> bool:
    if stored is None:
        return False
    times = stored[0]
    at = bisect_left(times, low)
    return at < len(times) and times[at] <= high


def put_late(stored: Any, time: int, rows: Sequence[Any], values: Sequence[Any]) -> None:
    """Into lists by time, one that comes after later ones: its row, if rows are stored, and the
    values that the totals are of."""
    at = bisect_right(stored[0], time)
    stored[0].insert(at, time)
    if rows:
        stored[1].insert(at, rows[0])
    for totals, value in zip(stored[1 + len(rows) :], values, strict=True):
        totals[at + 1 :] = [totals[at] + value, *(total + value for total in totals[at + 1 :])]


ONCE = ((),)  # rows of which nothing is stored but that there is one

# What generated code may name, besides Python's own.
FUNCTIONS: dict[str, Any] = {
    "whole": whole,
    "finite": finite,
    "exact_sum": exact_sum,
    "floor": floor,
    "ceil": ceil,
    "substr": substr,
    "matches": matches,
    "ERRORS": ERRORS,
    "failure": failure,
    "fits": fits,
    "values": values,
    "contains": str.__contains__,
    "starts_with": str.startswith,
    "bisect_left": bisect_left,
    "bisect_right": bisect_right,
    "between": between,
    "any_between": any_between,
    "latest": latest,
    "put_late": put_late,
    "once": ONCE,
    "never": END,
    "ever": BEGIN,
    "NONE": NONE,
    "as_float": as_float,
    **{f"call_{name}": function for name, function in SCALARS.items()},
}
