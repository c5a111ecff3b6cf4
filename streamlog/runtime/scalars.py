"""Functions of values that every engine leaves to Python, so that they are the same everywhere.

Where there is no result, `EvaluationError` says why, as for a division by zero.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any

from streamlog.analysis.calendar import TRUNCATIONS, truncated, zone_of
from streamlog.analysis.patterns import PatternError, compiled
from streamlog.runtime.errors import EvaluationError
from streamlog.runtime.values import (
    FIRST_TIME,
    LAST_TIME,
    Unfit,
    float_of,
    int_of,
    time_of,
    to_duration,
    to_time,
)
from streamlog.syntax.ast import INT64_MAX, INT64_MIN
from streamlog.syntax.literals import EPOCH, MICROSECOND
from streamlog.syntax.time_forms import unknown_directive

_MOST_DIGITS = 400  # of a float's decimals


def _read(read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except Unfit as unfit:
        raise EvaluationError(str(unfit)) from None


# ------------------------------------------------------------------------------ conversions


def to_int(value: Any) -> int:
    """Of a float what stands before the point; of a time or duration its microseconds."""
    if isinstance(value, str):
        return int(_read(int_of, value))
    whole = int(value)
    if not INT64_MIN <= whole <= INT64_MAX:
        raise EvaluationError(f"{value} does not fit into 64 bits")
    return whole


def to_float(value: Any) -> float:
    return float(_read(float_of, value)) if isinstance(value, str) else float(value)


def to_string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def time(value: Any) -> int:
    return int(_read(time_of if isinstance(value, str) else to_time, value))


def duration(value: Any) -> int:
    return int(_read(to_duration, value))


# ---------------------------------------------------------------------------------- numbers


def rounded(value: float, digits: int | None = None) -> Any:
    """Halves go away from zero. What counts are the digits that the float is written with."""
    places = 0 if digits is None else max(-_MOST_DIGITS, min(digits, _MOST_DIGITS))
    exact = Decimal(repr(value))
    unit = Decimal(1).scaleb(-places)
    if exact.as_tuple().exponent >= unit.as_tuple().exponent:  # type: ignore[operator]
        result = exact
    else:
        count = (exact / unit).to_integral_value(ROUND_HALF_UP)
        result = count * unit
    return to_int(result) if digits is None else finite(float(result))


def finite(value: float) -> float:
    if not math.isfinite(value):
        raise EvaluationError("the result is beyond the range of floats")
    return value


def _of_floats(name: str, function: Callable[..., float]) -> Callable[..., float]:
    def compute(*values: float) -> float:
        try:
            return finite(float(function(*map(float, values))))
        except OverflowError:
            raise EvaluationError("the result is beyond the range of floats") from None
        except (ValueError, ZeroDivisionError):
            given = ", ".join(str(value) for value in values)
            raise EvaluationError(f"{name}({given}) is not a number") from None

    return compute


# ------------------------------------------------------------------------------------ texts


def split(text: str, separator: str, position: int) -> str:
    """The part at a position, from 0; nothing if there are not as many."""
    if not separator:
        raise EvaluationError("an empty text separates nothing")
    parts = text.split(separator)
    return parts[position] if 0 <= position < len(parts) else ""


def replace(text: str, old: str, new: str) -> str:
    if not old:
        raise EvaluationError("an empty text cannot be replaced")
    return text.replace(old, new)


def regex_extract(text: str, pattern: str, group: int = 0) -> str:
    """What the first match has in a group; nothing if there is none."""
    try:
        regex = compiled(pattern, groups=True)
    except PatternError as error:
        raise EvaluationError(f"`{pattern}` is not a regular expression: {error}") from None
    if not 0 <= group <= regex.groups:
        raise EvaluationError(f"`{pattern}` has {regex.groups} groups, and none is number {group}")
    found = regex.search(text.encode())
    part = found.group(group) if found else None
    return bytes(part).decode() if part else ""


def from_json(text: str, path: str) -> str:
    """What is at a path such as `a.b[0]`: a text as it is, anything else as JSON; nothing if
    there is nothing, or null."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise EvaluationError("a text is not JSON") from None
    for step in _steps(path):
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
        if value is None:
            return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@lru_cache(1000)
def _steps(path: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    for part in path.removeprefix("$").removeprefix(".").split("."):
        name, *positions = part.split("[")
        if name:
            steps.append(name)
        for position in positions:
            digits = position.removesuffix("]")
            if not (position.endswith("]") and digits.isascii() and digits.isdigit()):
                raise EvaluationError(f"`{path}` is not a path: write `a.b[0]`")
            steps.append(int(digits))
    return tuple(steps)


def hashed(text: str) -> int:
    """The first 8 bytes of SHA-256, as a signed number."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)


# --------------------------------------------------------------------------------- calendar


def _local(at: int, zone: str) -> datetime:
    found = zone_of(zone)
    if found is None:
        raise EvaluationError(f'there is no time zone "{zone}"')
    if not FIRST_TIME <= at <= LAST_TIME:
        raise EvaluationError(f"the time {at} lies outside the years 1 to 9999")
    try:
        return (EPOCH + at * MICROSECOND).astimezone(found)
    except OverflowError:
        raise EvaluationError(f"the time {at} lies outside the years 1 to 9999") from None


def _part(part: Callable[[datetime], Any]) -> Callable[..., Any]:
    return lambda at, zone="UTC": part(_local(at, zone))


def written(at: int, format_: str, zone: str = "UTC") -> str:
    # Python takes more, which depends on the machine.
    if unknown_directive(format_) is not None:
        raise EvaluationError(f"`{format_}` is not a format of times")
    return _local(at, zone).strftime(format_)


def date_trunc(unit: str, at: int, zone: str = "UTC") -> int:
    if unit not in TRUNCATIONS:
        raise EvaluationError(f'"{unit}" is not one of {", ".join(TRUNCATIONS)}')
    return truncated(unit, at, _local(at, zone))


def choice(condition: bool, then: Any, other: Any) -> Any:
    return then if condition else other


# By their names in the language.
SCALARS: dict[str, Callable[..., Any]] = {
    "int": to_int,
    "float": to_float,
    "string": to_string,
    "time": time,
    "duration": duration,
    "round": rounded,
    "sqrt": _of_floats("sqrt", math.sqrt),
    "exp": _of_floats("exp", math.exp),
    "log": _of_floats("log", math.log),
    "pow": _of_floats("pow", math.pow),
    "split": split,
    "trim": str.strip,
    "replace": replace,
    "regex_extract": regex_extract,
    "json": from_json,
    "hash": hashed,
    "format": written,
    "year": _part(lambda local: local.year),
    "month": _part(lambda local: local.month),
    "day": _part(lambda local: local.day),
    "hour": _part(lambda local: local.hour),
    "minute": _part(lambda local: local.minute),
    "weekday": _part(datetime.isoweekday),
    "date": _part(lambda local: local.date().isoformat()),
    "date_trunc": date_trunc,
}
