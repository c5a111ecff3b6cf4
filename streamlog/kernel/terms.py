"""Terms and tests as Python expressions, and the functions they call."""

from __future__ import annotations

import re
from functools import lru_cache
from math import isclose

from streamlog.syntax.ast import (
    INT64_MAX,
    INT64_MIN,
    Agg,
    Atom,
    BinOp,
    Call,
    Comparison,
    Const,
    Neg,
    Term,
    Var,
)


class EvaluationError(Exception):
    """A value cannot be computed: a division by zero, a number beyond 64 bits."""


def whole(value: int) -> int:
    """The value, if it fits into 64 bits."""
    if not INT64_MIN <= value <= INT64_MAX:
        raise EvaluationError(f"{value} does not fit into 64 bits")
    return value


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


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise EvaluationError(f"`{pattern}` is not a regular expression: {error}") from None


def matches(text: str, pattern: str) -> bool:
    return _pattern(pattern).search(text) is not None


# What generated code may call, besides Python's own.
FUNCTIONS = {"whole": whole, "floor": floor, "ceil": ceil, "substr": substr, "matches": matches}

_COMPARISONS = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def name(var: Var) -> str:
    """A variable's name in generated code."""
    return var.name.replace("_#", "a_") if "#" in var.name else f"v_{var.name}"


def python(term: Term) -> str:
    match term:
        case Var():
            return name(term)
        case Const(value):
            return repr(value)
        case Neg(operand):
            return f"(-{python(operand)})"
        case BinOp("++", left, right):
            return f"({python(left)} + {python(right)})"
        case BinOp(op, left, right):
            return f"({python(left)} {op} {python(right)})"
        case Call("length", (text,)):
            return f"len({python(text)})"
        case Call("lower" | "upper" as method, (text,)):
            return f"{python(text)}.{method}()"
        case Call(function, args):
            return f"{function}({', '.join(map(python, args))})"
        case Agg():
            raise ValueError("an aggregate is no value")


def test(literal: Comparison | Atom) -> str:
    match literal:
        case Comparison(op, left, right):
            return f"{python(left)} {_COMPARISONS[op]} {python(right)}"
        case Atom("contains", (text, part)):
            return f"{python(part)} in {python(text)}"
        case Atom("starts_with", (text, start)):
            return f"{python(text)}.startswith({python(start)})"
        case Atom("matches", (text, pattern)):
            return f"matches({python(text)}, {python(pattern)})"
        case _:
            raise ValueError(f"{literal.pred} is no test")
