"""What the language's functions do with values, wherever they are called from."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import fsum, isclose, isfinite

from streamlog.analysis.patterns import PatternError, compiled
from streamlog.syntax.ast import INT64_MAX, INT64_MIN


class EvaluationError(Exception):
    """A value cannot be computed: a division by zero, a number beyond 64 bits."""


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


def divide(one: float, other: float) -> float:
    """As `/` does: of whole numbers too, as floats, the way other engines have it."""
    return float(one) / float(other)


def floor(value: float, step: float) -> float:
    """The largest multiple of the step that is not larger than the value."""
    if step <= 0:
        raise EvaluationError(f"{step} is no step to round to")
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


# What generated code may call, besides Python's own.
FUNCTIONS = {
    "whole": whole,
    "finite": finite,
    "exact_sum": exact_sum,
    "floor": floor,
    "ceil": ceil,
    "substr": substr,
    "matches": matches,
}
