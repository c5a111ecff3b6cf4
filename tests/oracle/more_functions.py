"""Conversions, mathematics, texts and the calendar, each in the plainest way there is.

int          of a float what is before the point, of a text its digits
round        the nearest whole number, or decimal; halves away from zero, by the written digits
split        a part of a text, or nothing
date_trunc   the last instant at or before a time at which the local clocks began a part: found
             by trying instants
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import re2

from oracle.failure import ValueFailure

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EXACT = Context(prec=60)  # enough for the root that is nearest to be found


def _int(value: Any) -> int:
    if isinstance(value, str) and not re.fullmatch(r"\s*[+-]?[0-9]+\s*", value, re.ASCII):
        raise ValueFailure(f"{value!r} is not an int")
    return int(value)


def _float(value: Any) -> float:
    if isinstance(value, str):
        number = r"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*"
        if not re.fullmatch(number, value, re.ASCII):
            raise ValueFailure(f"{value!r} is not a float")
    return float(value)


def _string(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _time(value: Any) -> int:
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        raise ValueFailure(f"{value!r} is not a time") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return (moment - EPOCH) // timedelta(microseconds=1)


def _round(value: float, digits: int | None = None) -> Any:
    scale = Fraction(10) ** (digits or 0)
    exact = abs(Fraction(repr(value))) * scale
    count = math.floor(exact + Fraction(1, 2))
    result = Fraction(-count if value < 0 else count) / scale
    return int(result) if digits is None else float(result)


def _number(function: Callable[..., float]) -> Callable[..., float]:
    def compute(*values: Any) -> float:
        try:
            return function(*(float(v) for v in values))
        except (ValueError, ZeroDivisionError, OverflowError) as error:
            raise ValueFailure(str(error)) from None

    return compute


def _split(text: str, separator: str, position: int) -> str:
    if not separator:
        raise ValueFailure("no separator")
    return dict(enumerate(text.split(separator))).get(position, "")


def _replace(text: str, old: str, new: str) -> str:
    if not old:
        raise ValueFailure("nothing to replace")
    return new.join(text.split(old))


def _extract(text: str, pattern: str, group: int = 0) -> str:
    try:
        found = re2.search(pattern, text)
        count = re2.compile(pattern).groups
    except re2.error as error:
        raise ValueFailure(str(error)) from None
    if not 0 <= group <= count:
        raise ValueFailure("no such group")
    return (found.group(group) or "") if found else ""


def _json(text: str, path: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        raise ValueFailure("not JSON") from None
    for name, position in re.findall(r"([^.\[\]$]+)(?![^\[]*\])|\[([0-9]+)\]", path):
        try:
            value = value[int(position)] if position else value[name]
        except (KeyError, IndexError, TypeError):
            return ""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _hash(text: str) -> int:
    number = int(hashlib.sha256(text.encode()).hexdigest()[:16], 16)
    return number - 2**64 if number >= 2**63 else number


def local(at: int, zone: str = "UTC") -> datetime:
    return (EPOCH + timedelta(microseconds=at)).astimezone(ZoneInfo(zone))


_SHOWN = {
    "minute": "%Y-%m-%d %H:%M",
    "hour": "%Y-%m-%d %H",
    "day": "%Y-%m-%d",
    "week": "%G-%V",
    "month": "%Y-%m",
    "year": "%Y",
}


@cache
def _truncated(unit: str, at: int, zone: str = "UTC") -> int:
    def part(time: int) -> str:
        moment = local(time, zone)
        if unit == "quarter":
            return f"{moment.year} {(moment.month - 1) // 3}"
        # The second hour of this name is another one.
        fold = moment.fold if unit in ("hour", "minute") else 0
        return f"{moment.strftime(_SHOWN[unit])} {fold}"

    # The clocks change at full minutes, as seen from UTC, in the years that tests use.
    time = at - at % 60_000_000
    if part(time) != part(at):
        raise AssertionError("the clocks changed within a minute")
    step = 60_000_000 if unit in ("minute", "hour") else 900_000_000
    time -= time % step
    while part(time - step) == part(at):
        time -= step
    return time


MORE: dict[str, Callable[..., Any]] = {
    "in": lambda value, *items: any(value == item for item in items),
    "int": _int,
    "float": _float,
    "string": _string,
    "time": _time,
    "round": _round,
    "sqrt": _number(lambda x: float(Decimal(x).sqrt(_EXACT)) if x > 0 else math.sqrt(x)),
    "exp": _number(lambda x: math.exp(x)),
    "log": _number(lambda x: math.log(x)),
    "pow": _number(lambda x, y: math.pow(x, y)),
    "split": _split,
    "trim": str.strip,
    "replace": _replace,
    "regex_extract": _extract,
    "json": _json,
    "hash": _hash,
    "format": lambda at, form, zone="UTC": local(at, zone).strftime(form),
    "year": lambda at, zone="UTC": local(at, zone).timetuple().tm_year,
    "month": lambda at, zone="UTC": local(at, zone).timetuple().tm_mon,
    "day": lambda at, zone="UTC": local(at, zone).timetuple().tm_mday,
    "hour": lambda at, zone="UTC": local(at, zone).timetuple().tm_hour,
    "minute": lambda at, zone="UTC": local(at, zone).timetuple().tm_min,
    "weekday": lambda at, zone="UTC": local(at, zone).timetuple().tm_wday + 1,
    "date": lambda at, zone="UTC": local(at, zone).strftime("%Y-%m-%d"),
    "date_trunc": _truncated,
}
