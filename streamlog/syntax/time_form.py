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

# Which of the two is meant where the clocks of a zone show a time twice.
OF_TWO = ("first", "last")


@frozen
class TimeForm:
    """How data write the times of a column: as numbers that count a unit since 1970, `time(ms)`,
    or as texts, `time("%d.%m.%Y %H:%M", "Europe/Berlin")`; without a zone they are UTC. A time that
    the clocks of the zone show twice is rejected, unless `of_two` says which is meant."""

    unit: str = ""
    format: str = ""
    zone: str = ""
    of_two: str = ""

    def __attrs_post_init__(self) -> None:
        if bool(self.unit) == bool(self.format) or (self.zone and not self.format):
            raise ValueError("times have a unit, or a format and perhaps a zone")
        if self.of_two and (not self.zone or self.of_two not in OF_TWO):
            raise ValueError("of two times that a zone has, the first or the last is meant")
