"""Between which numbers the value of a term lies, and whether computing it may fail.

A term fails where it has no value of its type: a division by zero, a whole number beyond 64 bits,
a float that is not finite, a text that is not a number. Ranges are safe: what lies outside of one
cannot be, but not everything inside can.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from fractions import Fraction
from typing import TypeAlias

from attrs import evolve, frozen

from streamlog.analysis.builtins import FAILURE, FUNCTIONS, VALUES, WHOLE
from streamlog.analysis.calendar import TRUNCATIONS, zone_of
from streamlog.analysis.patterns import PatternError, compiled
from streamlog.syntax.ast import (
    COMPARISONS,
    INT64_MAX,
    INT64_MIN,
    Agg,
    Atom,
    BinOp,
    Call,
    Comparison,
    Const,
    Neg,
    Term,
    Type,
    Value,
    Var,
)
from streamlog.syntax.literals import EPOCH, MICROSECOND
from streamlog.syntax.nothing import Nothing

Number: TypeAlias = int | Fraction

_MOST = Fraction(sys.float_info.max)
# More rows, or characters, than there can be.
_COUNTED = 2**53
_FIRST_TIME = (datetime.min.replace(tzinfo=timezone.utc) - EPOCH) // MICROSECOND
_LAST_TIME = (datetime.max.replace(tzinfo=timezone.utc) - EPOCH) // MICROSECOND


@frozen
class Range:
    low: Number
    high: Number
    is_whole: bool = True
    has_zero: bool = True  # False: not zero, though that lies between the ends

    @property
    def may_be_zero(self) -> bool:
        return self.has_zero and self.low <= 0 <= self.high

    @property
    def ends(self) -> tuple[Number, Number]:
        return self.low, self.high

    def within(self, other: Range) -> Range:
        """What is in both; the same if nothing is, since nothing comes of such a rule."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        if low > high:
            return self
        return Range(low, high, self.is_whole, self.has_zero and other.has_zero)

    def also(self, other: Range) -> Range:
        whole = self.is_whole and other.is_whole
        zero = self.may_be_zero or other.may_be_zero
        return Range(min(self.low, other.low), max(self.high, other.high), whole, zero)


INTEGERS = Range(INT64_MIN, INT64_MAX)
FLOATS = Range(-_MOST, _MOST, is_whole=False)
CALENDAR = Range(_FIRST_TIME, _LAST_TIME)
COUNTS = Range(0, _COUNTED)

_PARTS = frozenset(
    {"year", "month", "day", "hour", "minute", "weekday", "date", "format", "date_trunc"}
)

# By variable; None: its values are not numbers.
Ranges: TypeAlias = Mapping[str, Range | None]


@frozen
class Computed:
    range: Range | None  # of the value, where there is one
    may_fail: bool = False


def of_types(types: frozenset[Type]) -> Range | None:
    """The numbers of one of several types."""
    if types <= WHOLE:
        return INTEGERS
    return FLOATS if types & {*WHOLE, Type.FLOAT} else None


def may_fail(literal: Comparison | Atom, ranges: Ranges) -> bool:
    """Whether a test may have no answer. Values of different types are not compared here."""
    if isinstance(literal, Comparison):
        sides = (literal.left, literal.right)
        return any(computed(side, ranges).may_fail for side in sides)
    is_wrong = literal.pred == "matches" and not _is_pattern(literal.args[1])
    return is_wrong or any(computed(arg, ranges).may_fail for arg in literal.args)


def computed(term: Term, ranges: Ranges) -> Computed:
    match term:
        case Var(name):
            return Computed(ranges.get(name, FLOATS))
        case Const(value):
            return Computed(_constant(value))
        case Neg(operand):
            inner = computed(operand, ranges)
            own = inner.range or FLOATS
            return _result(-own.high, -own.low, own.is_whole, inner.may_fail)
        case BinOp(op, left, right):
            one, other = computed(left, ranges), computed(right, ranges)
            fails = one.may_fail or other.may_fail
            if op in COMPARISONS or op == "++":
                return Computed(None, fails)
            return _operation(op, one.range or FLOATS, other.range or FLOATS, fails)
        case Call(name, args):
            return _call(name, args, ranges)
        case Agg():
            raise ValueError("an aggregate is not a value")


def _constant(value: Value) -> Range | None:
    if isinstance(value, bool | str | Nothing):
        return None
    number = value if isinstance(value, int) else Fraction(value)
    return Range(number, number, isinstance(value, int))


def _result(low: Number, high: Number, is_whole: bool, fails: bool) -> Computed:
    limit = INTEGERS if is_whole else FLOATS
    beyond = low < limit.low or high > limit.high
    found = Range(max(low, limit.low), min(high, limit.high), is_whole)
    return Computed(found if found.low <= found.high else limit, fails or beyond)


def _size(number: Number) -> Number:
    return number if number >= 0 else -number


def _operation(op: str, one: Range, other: Range, fails: bool) -> Computed:
    whole = one.is_whole and other.is_whole
    match op:
        case "+":
            return _result(one.low + other.low, one.high + other.high, whole, fails)
        case "-":
            return _result(one.low - other.high, one.high - other.low, whole, fails)
        case "*":
            products = [a * b for a in one.ends for b in other.ends]
            return _result(min(products), max(products), whole, fails)
        case "/":
            return _quotient(one, other, False, fails, lambda a, b: Fraction(a) / b)
        case "//":
            return _quotient(one, other, whole, fails, lambda a, b: a // b)
        case _:  # %
            most = max(map(_size, other.ends))
            return _result(-most, most, whole, fails or other.may_be_zero)


def _quotient(
    one: Range,
    other: Range,
    is_whole: bool,
    fails: bool,
    divided: Callable[[Number, Number], Number],
) -> Computed:
    """The divisors next to zero give the largest results: of floats, beyond all limits."""
    limit = INTEGERS if is_whole else FLOATS
    if other.may_be_zero or (not other.is_whole and other.low <= 0 <= other.high):
        return Computed(limit, True)
    near = [n for n in (-1, 1) if other.low <= n <= other.high] if other.is_whole else []
    found = [divided(a, b) for a in one.ends for b in (*other.ends, *near) if b]
    return _result(min(found), max(found), is_whole, fails) if found else Computed(limit, True)


def _call(name: str, args: tuple[Term, ...], ranges: Ranges) -> Computed:
    if name in (FAILURE, VALUES):
        return Computed(None)
    if name not in FUNCTIONS:  # of Python
        return Computed(None, True)
    inner = [computed(arg, ranges) for arg in args]
    fails = any(i.may_fail for i in inner)
    numbers = [i.range or FLOATS for i in inner]
    first = numbers[0]
    match name:
        case "max" | "min" if all(i.range for i in inner):
            choose = max if name == "max" else min
            lows, highs = [n.low for n in numbers], [n.high for n in numbers]
            low, high = choose(lows), choose(highs)
            return Computed(Range(low, high, all(n.is_whole for n in numbers)), fails)
        case "max" | "min" | "in" | "lower" | "upper" | "trim" | "substr" | "string":
            return Computed(None, fails)
        case "abs":
            high = max(map(_size, first.ends))
            return _result(0, high, first.is_whole, fails)
        case "floor" | "ceil":
            step = numbers[1]
            low, high = first.low - _size(step.high), first.high + _size(step.high)
            return _result(low, high, first.is_whole and step.is_whole, fails or step.low <= 0)
        case "if":
            then, other = inner[1].range, inner[2].range
            return Computed(then.also(other) if then and other else None, fails)
        case "default":
            value, instead = inner[0].range, inner[1].range
            return Computed(value.also(instead) if value and instead else None, fails)
        case "length":
            return Computed(COUNTS, fails)
        case "hash":
            return Computed(INTEGERS, fails)
        case "split" | "replace":
            return Computed(None, fails or not _is_text(args[1]))
        case "regex_extract":
            return Computed(None, fails or not _is_pattern(args[1], *args[2:]))
        case _:
            return _conversion(name, args, inner, fails)


def _conversion(name: str, args: tuple[Term, ...], inner: list[Computed], fails: bool) -> Computed:
    given = inner[0].range
    match name:
        case "int" | "float" if given is not None:
            if name == "float" or given.is_whole:
                return Computed(evolve(given, is_whole=name == "int"), fails)
            return _result(math.trunc(given.low), math.trunc(given.high), True, fails)
        case "round" if given is not None and len(args) == 1:
            return _result(math.floor(given.low), math.ceil(given.high), True, fails)
        case "duration" if given is not None and given.is_whole:
            return Computed(given, fails)
        case "sqrt" if given is not None:
            return Computed(Range(0, max(given.high, 1), is_whole=False), fails or given.low < 0)
        case _ if name in _PARTS:
            return _of_calendar(name, args, inner, fails)
        case "int" | "time" | "duration" | "round" if name != "round" or len(args) == 1:
            return Computed(INTEGERS, True)
        case "float" | "round" | "exp" | "log" | "pow":
            return Computed(FLOATS, True)
        case _:
            return Computed(None, True)


def _of_calendar(name: str, args: tuple[Term, ...], inner: list[Computed], fails: bool) -> Computed:
    """A time of the calendar has all its parts; on the first and the last day of all, a zone may
    move it out."""
    at = 1 if name == "date_trunc" else 0
    time = inner[at].range or INTEGERS
    fails = fails or time.low < CALENDAR.low or time.high > CALENDAR.high
    if name in ("date_trunc", "format"):
        fails = fails or not isinstance(args[1 - at], Const)
    if name == "date_trunc":
        fails = fails or not _is_one(args[0], lambda unit: unit in TRUNCATIONS)
    zones = args[2:] if name in ("date_trunc", "format") else args[1:]
    fails = fails or not all(_is_one(zone, lambda z: zone_of(z) is not None) for zone in zones)
    match name:
        case "date" | "format":
            return Computed(None, fails)
        case "date_trunc":
            return Computed(CALENDAR, fails)
        case _:
            return Computed(Range(0, 9999), fails)


def _is_one(term: Term, test: Callable[[str], bool]) -> bool:
    return isinstance(term, Const) and isinstance(term.value, str) and test(term.value)


def _is_text(term: Term) -> bool:
    return isinstance(term, Const) and term.value != ""


def _is_pattern(pattern: Term, group: Term | None = None) -> bool:
    """Whether these are constants, and right ones."""
    if not isinstance(pattern, Const) or not isinstance(group, Const | None):
        return False
    try:
        groups = compiled(str(pattern.value), groups=True).groups
    except PatternError:
        return False
    return group is None or 0 <= int(group.value) <= groups
