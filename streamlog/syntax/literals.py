"""Tokens to constants: numbers, durations, timestamps and texts."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone
from fractions import Fraction

from streamlog.diagnostics import Span, did_you_mean, finding
from streamlog.syntax.ast import INT64_MAX, INT64_MIN, Const, Type
from streamlog.syntax.tokens import Refused

UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "week": 604_800_000_000,
}
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROSECOND = timedelta(microseconds=1)
# The timestamps that can be written.
FIRST, LAST = (
    (instant.replace(tzinfo=EPOCH.tzinfo) - EPOCH) // MICROSECOND
    for instant in (datetime.min, datetime.max)
)

UNIT_SLIPS = {
    **dict.fromkeys(("µs", "μs", "usec", "micros", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("msec", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("S", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "M", "mins", "minute", "minutes", "Min", "MIN"), "min"),
    **dict.fromkeys(("H", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("D", "day", "days"), "d"),
    **dict.fromkeys(("w", "W", "wk", "weeks"), "week"),
}
_NUMBER = re.compile(r"([0-9]+)(\.[0-9]+)?([eE][+-]?[0-9]+)?(\w*)")
_TIME = re.compile(
    r"@([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?(?:Z|([+-])([0-9]{2}):?([0-9]{2}))?)?"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'"}
# No number that fits needs more, and long ones cost quadratic time.
_MAX_DIGITS = 400


def number(text: str, sign: int, span: Span) -> Const:
    """`span` is of the literal with the minus that belongs to it."""
    if text.isascii() and text.isdigit() and len(text) < 19:
        return Const(sign * int(text), Type.INT, span=span)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise _bad("this is not a number", span)
    whole, fraction, exponent, unit = match.groups("")
    if unit:
        return _duration(whole + fraction, exponent, unit, sign, span)
    if fraction or exponent:
        value = float(text)
        if not math.isfinite(value):
            raise _bad("this decimal is too large", span, "the largest is about 1.8e308")
        return Const(sign * value, Type.FLOAT, span=span)
    digits = whole.lstrip("0") or "0"
    if len(digits) > 19 or not INT64_MIN <= (number := sign * int(digits)) <= INT64_MAX:
        raise _bad(
            "this integer does not fit into 64 bits", span, f"the largest integer is {INT64_MAX}"
        )
    return Const(number, Type.INT, span=span)


def negated(value: int | float, type_: Type, span: Span) -> Const:
    """The constant with its sign changed, as `-(5)` asks for."""
    if type_ is Type.TIME:
        raise _bad("a timestamp cannot be negated", span)
    if type(value) is int and -value > INT64_MAX:
        raise _bad("this integer does not fit into 64 bits", span)
    return Const(-value, type_, span=span)


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}T[\d:]+(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?")


def _duration(number: str, exponent: str, unit: str, sign: int, span: Span) -> Const:
    if unit not in UNITS:
        guess = UNIT_SLIPS.get(unit) or did_you_mean(unit, UNITS)
        if date := _DATE.match(span.source.text, max(0, span.start - len("2026-11-"))):
            known = f"a timestamp begins with `@`: `@{date[0]}`"
        elif guess is None:
            known = "the units are us, ms, s, min, h, d and week"
        else:
            known = f"did you mean `{number if len(number) < 20 else '…'}{guess}`?"
        raise _bad(f"`{unit[:40]}` is not a unit of time", span, known)
    if exponent or len(number) > _MAX_DIGITS:
        raise _bad("a duration is written without an exponent", span)
    value = sign * Fraction(number) * UNITS[unit]
    if value.denominator != 1:
        raise _bad("this duration is not a whole number of microseconds", span)
    if not INT64_MIN <= value <= INT64_MAX:
        raise _bad("this duration does not fit into 64 bits of microseconds", span)
    return Const(int(value), Type.DURATION, span=span)


def timestamp(text: str, span: Span) -> Const:
    match = _TIME.fullmatch(text)
    if match is None:
        example = "write it like `@2026-11-15T08:00:00Z` or `@2026-11-15`"
        raise _bad("this is not a timestamp", span, example)
    year, month, day, hour, minute, second, fraction, sign, off_hour, off_minute = match.groups("0")
    try:
        moment = datetime(
            int(year),
            int(month),
            int(day),
            int(hour),
            int(minute),
            int(second),
            int(fraction.ljust(6, "0")),
            timezone.utc,
        )
        offset = timedelta(hours=int(off_hour), minutes=int(off_minute))
        if offset >= timedelta(days=1) or int(off_minute) > 59:
            raise ValueError("offset is out of range")
        moment += offset if sign == "-" else -offset
    except (ValueError, OverflowError) as error:
        raise _bad(f"there is no such time: {error}", span) from None
    return Const((moment - EPOCH) // MICROSECOND, Type.TIME, span=span)


def text(token: str, span: Span) -> Const:
    return Const(unquoted(token, span), Type.STRING, span=span)


def unquoted(token: str, span: Span) -> str:
    inner = token[1:-1]
    if "\\" not in inner:
        return inner

    def meaning(match: re.Match[str]) -> str:
        place = Span(span.source, span.start + 1 + match.start(), span.start + 1 + match.end())
        if match[1]:
            code = int(match[1], 16)
            if 0xD800 <= code <= 0xDFFF:
                raise _bad(f"`{match[0]}` is half a character", place, "write the character itself")
            return chr(code)
        if match[2] not in _ESCAPES:
            help = "the escapes are \\n \\t \\\\ \\\" \\' and \\uXXXX; write a backslash as \\\\"
            raise _bad(f"`{match[0]}` means nothing", place, help)
        return _ESCAPES[match[2]]

    return _ESCAPE.sub(meaning, inner)


def _bad(message: str, span: Span, help: str = "") -> Refused:
    return Refused(finding("SL0104", message, span, help=(help,) if help else ()))
