"""`none`: what is in a column in which a value is missing."""

from __future__ import annotations

import enum


class Nothing(enum.Enum):
    """A value like others: equal to itself alone, and smaller than all others."""

    NONE = "none"

    def __lt__(self, other: object) -> bool:
        return other is not self

    def __le__(self, other: object) -> bool:
        return True

    def __gt__(self, other: object) -> bool:
        return False

    def __ge__(self, other: object) -> bool:
        return other is self

    def _nothing(self, *_: object) -> Nothing:
        return self

    # Of a row that a test is about to drop; nothing else is computed with.
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _nothing
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _nothing  # noqa: PIE796
    __neg__ = __abs__ = _nothing  # noqa: PIE796

    def __int__(self) -> int:
        raise TypeError("none is not a number")

    __float__ = __int__

    def __repr__(self) -> str:
        """As generated code calls it."""
        return "NONE"

    def __str__(self) -> str:
        """As a field of CSV."""
        return ""


NONE = Nothing.NONE


def as_float(value: int | float | str | Nothing) -> float | Nothing:
    """A value as a column of floats has it."""
    return value if isinstance(value, Nothing) else float(value)
