"""Values as files write them: text to value and back, one function a type.

A converter takes whatever a row holds and returns a value of its type, or raises `Unfit` with the
reason in words a user understands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from operator import index
from types import MappingProxyType
from typing import Any, TypeAlias

from streamlog.syntax.ast import INT64_MAX, INT64_MIN, Type, Value
from streamlog.syntax.literals import EPOCH, MICROSECOND, UNITS
from streamlog.syntax.pretty import duration_text, time_text
from streamlog.syntax.time_form import TIME_UNITS

Converter: TypeAlias = Callable[[Any], Value]


def _microseconds(moment: datetime) -> int:
    return (moment.replace(tzinfo=timezone.utc) - EPOCH) // MICROSECOND


# The calendar's years 1 to 9999. A timestamp outside them is a slip: nanoseconds where
# microseconds are meant, or noise.
FIRST_TIME, LAST_TIME = _microseconds(datetime.min), _microseconds(datetime.max)
# A number outside these years hardly counts microseconds.
USUAL_FIRST = _microseconds(datetime(1990, 1, 1))
USUAL_LAST = _microseconds(datetime(2100, 1, 1))
UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6})0*)?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?)?",
    re.ASCII,
)
NUMBER = re.compile(r"[+-]?[0-9]{1,25}(\.[0-9]{1,25})?", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]{1,25}", re.ASCII)
_FLOAT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,6})?", re.ASCII)
_DURATION = re.compile(r"(-?[0-9]{1,19}(?:\.[0-9]{1,19})?) ?([a-z]+)", re.ASCII)
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Unfit(ValueError):  # noqa: N818  (a finding about data, not a failure)
    """A value that its column cannot take; the message says why."""


def shown(value: object) -> str:
    """A value in a reason: short, quoted, printable."""
    text = ascii(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


# ------------------------------------------------------------------------------- converters


def to_int(value: Any) -> int:
    """An int of 64 bits; digits in a text count, a float never does."""
    if value.__class__ is str:
        return int_of(value)
    if value.__class__ is not int:
        value = whole(value, "int")
    if INT64_MIN <= value <= INT64_MAX:
        return int(value)
    raise Unfit(f"{shown(value)} does not fit into 64 bits")


def whole(value: Any, wanted: str) -> int:
    """An int from whatever is one."""
    if value is None:
        raise Unfit("a value is missing")
    if not isinstance(value, bool):
        try:
            return index(value)  # numpy's integers and the like
        except TypeError:
            pass
    raise Unfit(f"{shown(value)} is not a valid {wanted}")


def int_of(text: str) -> int:
    """The int that a text spells."""
    if text.isdigit() and text.isascii() and len(text) < 19:
        return int(text)
    text = text.strip()
    if not text:
        raise Unfit("a value is missing")
    if not _INTEGER.fullmatch(text):
        long = text.isascii() and text.lstrip("+-").isdigit()
        what = "does not fit into 64 bits" if long else "is not a valid int"
        raise Unfit(f"{shown(text)} {what}")
    value = int(text)
    if not INT64_MIN <= value <= INT64_MAX:
        raise Unfit(f"{shown(value)} does not fit into 64 bits")
    return value


def to_float(value: Any) -> float:
    """A finite float; an int is as good."""
    if value.__class__ is str:
        return float_of(value)
    if value is None:
        raise Unfit("a value is missing")
    if isinstance(value, bool) or not hasattr(value, "__float__") or isinstance(value, timedelta):
        raise Unfit(f"{shown(value)} is not a valid float")
    try:
        return _finite(float(value))
    except (OverflowError, ValueError, TypeError):
        raise Unfit(f"{shown(value)} is not a finite number") from None


def float_of(text: str) -> float:
    """The float that a text spells; `nan` and `inf` are none."""
    text = text.strip()
    if _FLOAT.fullmatch(text):
        return _finite(float(text))
    if not text:
        raise Unfit("a value is missing")
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        raise Unfit(f"{shown(text)} is not a finite number")
    raise Unfit(f"{shown(text)} is not a valid float")


def _finite(value: float) -> float:
    if math.isfinite(value):
        return value
    raise Unfit(f"{value} is not a finite number")


def to_string(value: Any) -> str:
    """A text of Unicode characters; bytes are read as UTF-8."""
    if isinstance(value, bytes | bytearray):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            raise Unfit(f"{shown(value)} is not UTF-8") from None
    if value is None:
        raise Unfit("a value is missing")
    if not isinstance(value, str):
        raise Unfit(f"{shown(value)} is not a valid string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            # How a reader passes on bytes that are no UTF-8.
            bad = 0xDC80 <= ord(value[error.start]) <= 0xDCFF
            reason = "is not UTF-8" if bad else "has half a character"
            raise Unfit(f"{shown(value)} {reason}") from None
    return str(value)


def to_bool(value: Any) -> bool:
    """True or false; from a text also `yes`, `no`, `1` and `0`, in any case."""
    if value.__class__ is bool:
        return bool(value)
    if value is None or value == "":
        raise Unfit("a value is missing")
    if isinstance(value, str) and (word := _WORDS.get(value.strip().lower())) is not None:
        return word
    if type(value).__name__ in ("bool_", "bool"):  # numpy's
        return bool(value)
    raise Unfit(f"{shown(value)} is not a valid bool")


def to_time(value: Any) -> int:
    """Microseconds since 1970 from an int, an ISO timestamp, or Python's dates."""
    if value.__class__ is str:
        return time_of(value)
    if isinstance(value, date):
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if value.tzinfo is None:
            value = value.replace(tzinfo=timezone.utc)
        if getattr(value, "nanosecond", 0):  # pandas'
            raise Unfit(f"the time {value} is finer than a microsecond")
        return in_calendar((value - EPOCH) // MICROSECOND, shown(value))
    return _of_microseconds(whole(value, "time"))


def in_calendar(time: int, text: str) -> int:
    if FIRST_TIME <= time <= LAST_TIME:
        return time
    raise Unfit(f"the time {text} lies outside the years 1 to 9999")


def _of_microseconds(number: int) -> int:
    if FIRST_TIME <= number <= LAST_TIME:
        return number
    unit = likely_unit(number)
    hint = f"; if it counts {UNIT_NAMES[unit]}, declare `time({unit})`" if unit else ""
    raise Unfit(f"the time {shown(number)} lies outside the years 1 to 9999{hint}")


def is_usual(time: int) -> bool:
    """Whether it lies in the years in which most data do: 1990 to 2099."""
    return USUAL_FIRST <= time < USUAL_LAST


def likely_unit(number: int) -> str | None:
    """The unit in which a number is a time of those years."""
    return next((unit for unit, per in TIME_UNITS.items() if is_usual(int(number * per))), None)


# Rows are many and seconds are few, so what a second means is remembered, both ways.
_MOST_SECONDS = 100_000
_seconds: dict[str, int] = {}
_texts: dict[int, str] = {}


def time_of(text: str) -> int:
    """The microseconds that an ISO timestamp, or a text of digits, stands for.

    Without an offset it is UTC; a date alone is its midnight.
    """
    known = _seconds.get(text[:19])
    if known is not None:
        rest = text[19:]
        if rest == "Z" or not rest:
            return known
        digits = rest[1:-1]
        plain = len(digits) < 7 and digits.isdigit() and digits.isascii()
        if plain and rest[0] == "." and rest[-1] == "Z":
            return known + int(digits.ljust(6, "0"))
    return _time_of_any(text)


def _time_of_any(text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        return _time_of_other(text)
    day, hour, minute, second, fraction, zone = match.groups()
    try:
        moment = datetime(
            int(day[:4]),
            int(day[5:7]),
            int(day[8:]),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            tzinfo=timezone.utc,
        )
    except ValueError as error:
        raise Unfit(f"there is no such time as {shown(text)}: {error}") from None
    time = (moment - EPOCH) // MICROSECOND
    if second is not None:
        if len(_seconds) >= _MOST_SECONDS:
            _seconds.clear()
        _seconds[text[:19]] = time
    if fraction is not None:
        time += int(fraction.ljust(6, "0"))
    if zone is None or zone == "Z":
        return time
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        raise Unfit(f"there is no such offset as in {shown(text)}")
    offset = (hours * 60 + minutes) * 60_000_000
    return in_calendar(time + (offset if zone[0] == "-" else -offset), shown(text))


def _time_of_other(text: str) -> int:
    stripped = text.strip()
    if not stripped:
        raise Unfit("a value is missing")
    if _INTEGER.fullmatch(stripped):
        return _of_microseconds(int(stripped))
    if stripped != text:
        return time_of(stripped)
    if re.fullmatch(r"[0-9T :.-]+\.[0-9]{7,}(Z|[+-][0-9:]+)?", text):
        raise Unfit(f"the time {shown(text)} is finer than a microsecond")
    raise Unfit(f"{shown(text)} is not a valid time")


def to_duration(value: Any) -> int:
    """Microseconds from an int, a text such as `5min`, or a timedelta."""
    if isinstance(value, timedelta):
        return to_int(value // MICROSECOND)
    if value.__class__ is not str:
        return to_int(value) if isinstance(value, int) else to_int(whole(value, "duration"))
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        try:
            return int_of(value)
        except Unfit as unfit:
            raise Unfit(str(unfit).replace("valid int", "valid duration")) from None
    if match[2] not in UNITS:
        raise Unfit(f"{shown(match[2])} is not a unit of time: the units are {', '.join(UNITS)}")
    length = Fraction(match[1]) * UNITS[match[2]]
    if length.denominator != 1:
        raise Unfit(f"{shown(value)} is not a whole number of microseconds")
    return to_int(int(length))


def to_any(value: Any) -> Value:
    """A value of a column whose type nothing settles, as it comes."""
    if value.__class__ in (int, bool) or isinstance(value, bool):
        return value if isinstance(value, bool) else to_int(value)
    if isinstance(value, float | Decimal):
        return to_float(value)
    if isinstance(value, str | bytes | bytearray):
        return to_string(value)
    if isinstance(value, date):
        return to_time(value)
    if isinstance(value, timedelta):
        return to_duration(value)
    try:
        return to_int(index(value))
    except TypeError:
        pass
    if value is None:
        raise Unfit("a value is missing")
    raise Unfit(f"{shown(value)} is not a value")


def any_of(text: str) -> Value:
    """What a text says where no type is known: an int, else a float, else itself."""
    if _INTEGER.fullmatch(text):
        return int_of(text)
    if _FLOAT.fullmatch(text):
        return float_of(text)
    return to_string(text)


FROM_PYTHON: Mapping[Type | None, Converter] = MappingProxyType(
    {
        Type.INT: to_int,
        Type.FLOAT: to_float,
        Type.STRING: to_string,
        Type.BOOL: to_bool,
        Type.TIME: to_time,
        Type.DURATION: to_duration,
        None: to_any,
    }
)
FROM_TEXT: Mapping[Type | None, Converter] = MappingProxyType(
    {
        Type.INT: int_of,
        Type.FLOAT: float_of,
        Type.STRING: to_string,
        Type.BOOL: to_bool,
        Type.TIME: time_of,
        Type.DURATION: to_duration,
        None: any_of,
    }
)

# ---------------------------------------------------------------------------------- writing


def written(value: Value, type_: Type | None) -> Value:
    """The value as files and people read it: times as ISO, durations with their unit."""
    if value.__class__ is int:
        if type_ is Type.TIME:
            # What lies outside the calendar can only be said in microseconds.
            return iso(value) if FIRST_TIME <= value <= LAST_TIME else value
        if type_ is Type.DURATION:
            return duration_text(value)
    return value


def iso(time: int) -> str:
    """A time of the calendar as ISO has it, in UTC."""
    second, fraction = divmod(time, 1_000_000)
    text = _texts.get(second)
    if text is None:
        if len(_texts) >= _MOST_SECONDS:
            _texts.clear()
        text = _texts[second] = time_text(second * 1_000_000)[1:-1]
    return f"{text}.{fraction:06}".rstrip("0") + "Z" if fraction else f"{text}Z"


def moment(time: int, clock: Type | None) -> str:
    """A point in time for a message; the ends of time have words."""
    if time <= INT64_MIN:
        return "the beginning"
    if time > INT64_MAX:
        return "the end"
    return str(written(time, Type.TIME if clock is Type.TIME else Type.INT))
