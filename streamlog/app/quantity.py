"""Distances in time, for people."""

from __future__ import annotations

from collections.abc import Mapping

from streamlog.syntax.ast import Type
from streamlog.syntax.literals import UNITS

Clocks = Mapping[str, Type | None]


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
    for unit, size in reversed([u for u in UNITS.items() if u[0] != "week"]):
        if count := value // size:
            parts.append(f"{count} {unit}")
        value %= size
    return " ".join(parts)
