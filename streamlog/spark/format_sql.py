"""Values as files and people read them (`runtime.values.written`), in SQL."""

from __future__ import annotations

from streamlog.spark.values import in_calendar, says
from streamlog.syntax.ast import Type
from streamlog.syntax.literals import UNITS


def iso(time: str) -> str:
    """A time of the calendar as `runtime.values.iso` writes it; else the number."""
    second = f"({time} - PMOD({time}, 1000000L)) DIV 1000000L"
    day = f"DATE_ADD(DATE'1970-01-01', CAST(({second} - PMOD({second}, 86400L)) DIV 86400L AS INT))"
    rest = f"PMOD({second}, 86400L)"

    def two(number: str) -> str:
        return f"LPAD(CAST({number} AS STRING), 2, '0')"

    fraction = f"LPAD(CAST(PMOD({time}, 1000000L) AS STRING), 6, '0')"
    fraction = f"IF(PMOD({time}, 1000000L) = 0, '', CONCAT('.', RTRIM('0', {fraction})))"
    hms = f"{two(f'{rest} DIV 3600L')}, ':', {two(f'{rest} DIV 60L % 60L')}, ':', "
    hms += two(f"{rest} % 60L")
    stamp = says(f"CAST({day} AS STRING)", "'T'", hms, fraction, "'Z'")
    return f"IF({in_calendar(time)}, {stamp}, CAST({time} AS STRING))"


def duration(size: str) -> str:
    """In the largest unit that divides it."""
    units = " ".join(
        f"WHEN {size} % {UNITS[unit]}L = 0 THEN CONCAT(CAST({size} DIV {UNITS[unit]}L AS STRING),"
        f" '{unit}')"
        for unit in reversed(UNITS)
    )
    return f"CASE WHEN {size} = 0 THEN '0s' {units} END"


def as_written(value: str, type_: Type) -> str:
    """`runtime.values.written` as text."""
    if type_ is Type.TIME:
        return iso(value)
    return duration(value) if type_ is Type.DURATION else f"CAST({value} AS STRING)"
