"""Times as a column's data write them: numbers in some unit, texts in some format and zone.

Nothing is rounded, and nothing is guessed: a time that is not a whole number of microseconds, that
the clocks of its zone passed over, or that they showed twice, is not taken.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from streamlog.runtime.values import (
    NUMBER,
    UNIT_NAMES,
    Converter,
    Unfit,
    in_calendar,
    iso,
    likely_unit,
    shown,
    time_of,
    to_time,
    whole,
)
from streamlog.syntax.literals import EPOCH, MICROSECOND
from streamlog.syntax.pretty import quoted
from streamlog.syntax.time_form import TIME_UNITS, TimeForm
from streamlog.syntax.time_forms import zone_of

_WHOLE = {unit: int(per) for unit, per in TIME_UNITS.items() if unit != "ns"}
# Rows are many and their times are few.
_MOST_TEXTS = 100_000


def reader(form: TimeForm) -> Converter:
    """What reads the times of a column; Python's own dates need no form."""
    read = _of_number(form.unit) if form.unit else _of_text(form)

    def time(value: Any) -> int:
        return to_time(value) if isinstance(value, date) else read(value)

    return time


def scaled(value: Any, unit: str) -> int:
    """Microseconds from a number of a unit."""
    if value.__class__ is int:
        if unit != "ns":
            return int(value * _WHOLE[unit])
        if value % 1_000 == 0:
            return int(value // 1_000)
    count = Fraction(value) * TIME_UNITS[unit]
    if count.denominator != 1:
        raise Unfit(f"the time {value} {unit} is finer than a microsecond")
    return int(count)


def _of_number(unit: str) -> Callable[[Any], int]:
    def time(value: Any) -> int:
        if value.__class__ is str:
            if not (value.isdigit() and value.isascii()):
                return _of_other_text(value, unit)
            value = int(value[:40])
        elif isinstance(value, float | Decimal):
            value = _decimal(value)
        elif value.__class__ is not int:
            value = whole(value, "time")
        return in_calendar(scaled(value, unit), f"{value} {unit}")

    return time


def _of_other_text(text: str, unit: str) -> int:
    stripped = text.strip()
    if not NUMBER.fullmatch(stripped):
        return time_of(text)
    return in_calendar(scaled(Decimal(stripped), unit), f"{stripped} {unit}")


def _decimal(value: float | Decimal) -> Decimal:
    """What was written: a float has its shortest digits, which are those of any time in
    microseconds up to the year 2255."""
    number = Decimal(repr(value)) if isinstance(value, float) else value
    if not number.is_finite():
        raise Unfit(f"{shown(value)} is not a valid time")
    return number


def _of_text(form: TimeForm) -> Callable[[Any], int]:
    format_, zone_name = form.format, form.zone
    zone = zone_of(zone_name or "UTC")
    assert zone is not None
    known: dict[str, int] = {}

    def time(value: Any) -> int:
        found = known.get(value) if value.__class__ is str else None
        if found is not None:
            return found
        if value is None or (isinstance(value, str) and not value.strip()):
            raise Unfit("a value is missing")
        if not isinstance(value, str):
            raise Unfit(f"{shown(value)} is not a time in the format {quoted(format_)}")
        if len(known) >= _MOST_TEXTS:
            known.clear()
        found = known[value] = _parsed(value)
        return found

    def _parsed(text: str) -> int:
        try:
            moment = datetime.strptime(text.strip(), format_)  # the zone is added below
        except ValueError as error:
            # Python says the same of every text that does not match.
            why = "" if "match" in str(error) or "remains" in str(error) else f": {error}"
            reason = f"{shown(text)} is not a time in the format {quoted(format_)}{why}"
            raise Unfit(reason) from None
        try:
            if moment.tzinfo is not None:
                return in_calendar((moment - EPOCH) // MICROSECOND, shown(text))
            first, second = (
                (moment.replace(tzinfo=zone, fold=fold) - EPOCH) // MICROSECOND for fold in (0, 1)
            )
        except OverflowError:
            raise Unfit(f"the time {shown(text)} lies outside the years 1 to 9999") from None
        if first > second:
            skipped = f"the clocks of {zone_name} skip it"
            raise Unfit(f"there is no such time as {shown(text)}: {skipped}")
        if first < second and form.of_two:
            return in_calendar(first if form.of_two == "first" else second, shown(text))
        if first < second:
            both = f"{iso(first)} or {iso(second)} (declare `first` or `last`)"
            raise Unfit(f"the time {shown(text)} occurs twice in {zone_name}: {both}")
        return in_calendar(first, shown(text))

    return time


# ---------------------------------------------------------------------------------- doubts


def is_number(value: object) -> bool:
    """Whether a value is a time only by a unit that nobody has declared."""
    if isinstance(value, str):
        return NUMBER.fullmatch(value.strip()) is not None
    return not isinstance(value, date)


def doubt(pred: str, column: str, number: int) -> str:
    """What to say of a column with a number that is hardly one of microseconds."""
    unit = likely_unit(number)
    likely = f"if it counts {UNIT_NAMES[unit]}, " if unit else "if it counts something else, "
    declare = f"declare `{column}: time({unit or 's'})`"
    return (
        f"`{pred}`: column `{column}` has the time {number}, read as microseconds, "
        f"which is {iso(number)}; {likely}{declare}"
    )
