"""Distances in time, for people."""

from __future__ import annotations

from collections.abc import Mapping

from streamlog.syntax.ast import Type

Clocks = Mapping[str, Type | None]

_UNITS = (
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
)


def quantity(value: int, clock: Type | None) -> str:
    """A distance in time for people: `1 h 30 min`, `5 min - 1 us`, or a plain number."""
    if clock is not Type.TIME or value == 0:
        return str(value)
    if value < 0:
        return f"-{quantity(-value, clock)}".replace(" - ", " + ")
    # What one or two `<` make of a limit is said with the limit.
    short = -value % 1000
    if value > 1000 and 0 < short <= 2:
        return f"{quantity(value + short, clock)} - {short} us"
    parts = []
    for unit, size in _UNITS:
        if count := value // size:
            parts.append(f"{count} {unit}")
        value %= size
    return " ".join(parts)
