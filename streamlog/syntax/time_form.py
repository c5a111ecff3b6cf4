"""How data write the times of a column."""

from __future__ import annotations

from fractions import Fraction

from attrs import frozen

# Microseconds in each.
TIME_UNITS = {
    "s": Fraction(1_000_000),
    "ms": Fraction(1_000),
    "us": Fraction(1),
    "ns": Fraction(1, 1_000),
}


@frozen
class TimeForm:
    """How data write the times of a column: as numbers that count a unit since 1970, `time(ms)`,
    or as texts, `time("%d.%m.%Y %H:%M", "Europe/Berlin")`; without a zone they are UTC."""

    unit: str = ""
    format: str = ""
    zone: str = ""

    def __attrs_post_init__(self) -> None:
        if bool(self.unit) == bool(self.format) or (self.zone and not self.format):
            raise ValueError("times have a unit, or a format and perhaps a zone")
