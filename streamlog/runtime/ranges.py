"""The values that the columns of an input may have."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from streamlog.analysis.schema import Predicate
from streamlog.runtime.values import FIRST_TIME, LAST_TIME, USUAL_FIRST, USUAL_LAST, written
from streamlog.syntax.ast import (
    FIRST_INSTANT,
    INT64_MAX,
    INT64_MIN,
    LAST_INSTANT,
    LOGICAL_TIME,
    Type,
)


@frozen
class Range:
    """The values that a column may have, and what to say behind any other."""

    low: int | float
    high: int | float
    refusal: str


def ranges_of(predicate: Predicate, types: Sequence[Type | None]) -> dict[int, tuple[Range, ...]]:
    found: dict[int, tuple[Range, ...]] = {}
    if predicate.temporal and types[0] in (Type.INT, None):
        refusal = f" is not a valid timestamp: {LOGICAL_TIME}"
        found[0] = (Range(FIRST_INSTANT, LAST_INSTANT, refusal),)
    for position, column in enumerate(predicate.columns):
        if column.low is not None and column.high is not None:
            low, high = column.low.value, column.high.value
            assert isinstance(low, int | float)
            assert isinstance(high, int | float)
            ends = f"{written(low, types[position])} to {written(high, types[position])}"
            declared = Range(low, high, f" is outside the declared range {ends}")
            found[position] = (*found.get(position, ()), declared)
    return found


def value_tests(
    name: str, type_: Type | None, ranges: Sequence[Range], is_clock: bool, is_trusted: bool
) -> list[str]:
    """When a Python value is of its column's type as it stands; `is_trusted`: as a time it is
    known to be in microseconds."""
    limits = None
    if ranges:
        limits = max(r.low for r in ranges), min(r.high for r in ranges)
    match type_:
        case Type.STRING:
            return [f"{name}.__class__ is str and {name}.isascii()"]
        case Type.BOOL:
            return [f"{name}.__class__ is bool"]
        case Type.FLOAT:
            low, high = limits or (-1.7976931348623157e308, 1.7976931348623157e308)
            return [f"{name}.__class__ is float and {low!r} <= {name} <= {high!r}"]
        case Type.TIME:
            low, high = limits or (FIRST_TIME, LAST_TIME)
            usual = (FIRST_TIME, LAST_TIME) if is_trusted else (USUAL_FIRST, USUAL_LAST - 1)
            low, high = max(low, usual[0]), min(high, usual[1])
            return [f"{name}.__class__ is int and {low} <= {name} <= {high}"]
        case None if not is_clock:
            return [
                f"({name}.__class__ is str and {name}.isascii() or {name}.__class__ is int"
                f" and {INT64_MIN} <= {name} <= {INT64_MAX})"
            ]
        case _:
            low, high = limits or (INT64_MIN, INT64_MAX)
            return [f"{name}.__class__ is int and {low} <= {name} <= {high}"]
