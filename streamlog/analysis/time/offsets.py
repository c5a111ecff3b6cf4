"""Offsets in words: `5min` on a clock of times, `5` on a logical one."""

from __future__ import annotations

from streamlog.syntax.ast import INT64_MAX, INT64_MIN, Type
from streamlog.syntax.pretty import duration_text


def amount(value: int, clock: Type | None) -> str:
    """`5min`, `-10s`, `3`."""
    if clock is not Type.TIME or not INT64_MIN <= value <= INT64_MAX:
        return str(value)
    return duration_text(value)


def shifted(name: str, value: int | None, clock: Type | None) -> str:
    """`T`, `T + 5min`, `T - 1`; `any T` when nothing bounds it."""
    if value is None:
        return f"any time after {name}"
    if value == 0:
        return name
    sign = "+" if value > 0 else "-"
    return f"{name} {sign} {amount(abs(value), clock)}"
