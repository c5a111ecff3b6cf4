"""`runtime.values` in Spark SQL: what a field's value is, and why it has none.

Each function takes the SQL of a field and returns SQL: a value that is NULL where the field is
unfit, and the reason, which is only worked out there. Nothing here raises for a bad value, nor
depends on the session's time zone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DatetimeType,
    DateType,
    DayTimeIntervalType,
    IntegralType,
    MapType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
    VariantType,
)

from streamlog.runtime.values import FIRST_TIME, LAST_TIME
from streamlog.syntax.ast import Type
from streamlog.syntax.literals import UNITS

MISSING = "'a value is missing'"
DAY = 86_400_000_000

_TIME = (
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6})0*)?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_INTEGER = r"[+-]?[0-9]{1,25}"
_FLOAT = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,6})?"
_DURATION = r"(-?)([0-9]{1,19})(?:\.([0-9]{1,19}))? ?([a-z]+)"
# What Python strips.
SPACES = "".join(chr(c) for c in range(0x3001) if chr(c).isspace())
_INFINITY = "double('Infinity')"


@frozen
class Reading:
    """A field as a value of its column's type, in SQL."""

    value: str  # NULL if unfit
    reason: str  # for those
    # Right or NULL, and cheap: for fields that are written as fields of their type usually are.
    # It is compiled into the loop over the rows, where there is no room for all the rest.
    fast: str = ""


def text(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def whole(value: int) -> str:
    return f"CAST('{value}' AS BIGINT)"


def let(name: str, value: str, body: str) -> str:
    """The body, where a name stands for a value that is worked out once.

    Spark 4 does not compile ZIP_WITH into the loop over the rows, which is wanted here: with all
    that is only for rare values in it, the loop would be too long for the JVM to compile.
    """
    return f"ELEMENT_AT(ZIP_WITH(ARRAY({value}), ARRAY(0), ({name}, _) -> {body}), 1)"


def _is(field: str, pattern: str) -> str:
    return rf"{field} RLIKE r'\A(?:{pattern})\z'"


def _clean(field: str, body: str) -> str:
    """The body, where `t` is the field without white space around it."""
    # TRIM looks at bytes: of what is no UTF-8 it would take away parts of characters.
    return let("t", f"TRIM(BOTH {text(SPACES)} FROM MAKE_VALID_UTF8({field}))", body)


def shown(field: str) -> str:
    """A text in a reason: short and quoted; what is not printable ASCII is a question mark."""
    plain = f"REPLACE(REPLACE({field}, '\\\\', '\\\\\\\\'), '\\'', '\\\\\\'')"
    for character, letter in ("\n", "n"), ("\r", "r"), ("\t", "t"):
        plain = f"REPLACE({plain}, {text(character)}, '\\\\{letter}')"
    plain = f"REGEXP_REPLACE({plain}, '[^ -~]', '?')"
    return short(f"CONCAT('\\'', {plain}, '\\'')")


def short(shown: str) -> str:
    return rf"REGEXP_REPLACE({shown}, r'\A(.{{37}}).{{4,}}\z', r'$1...')"


def says(*parts: str) -> str:
    return f"CONCAT({', '.join(parts)})"


# --------------------------------------------------------------------------------- texts


def int_of(field: str) -> Reading:
    number = f"TRY_CAST({field} AS BIGINT)"
    digits = r"REGEXP_REPLACE(t, r'^\+?(-?)0*', r'$1')"
    return Reading(
        _clean(field, f"CASE WHEN {_is('t', _INTEGER)} THEN TRY_CAST(t AS BIGINT) END"),
        _clean(
            field,
            f"CASE WHEN t IS NULL OR t = '' THEN {MISSING} WHEN {_is('t', _INTEGER)}"
            f" THEN {says(short(digits), text(' does not fit into 64 bits'))}"
            f" WHEN {_is('t', '[+-]*[0-9]+')}"
            f" THEN {says(shown('t'), text(' does not fit into 64 bits'))}"
            f" ELSE {says(shown('t'), text(' is no int'))} END",
        ),
        f"CASE WHEN CAST({number} AS STRING) = {field} THEN {number} END",
    )


def float_of(field: str) -> Reading:
    def exact(of: str) -> str:
        number = f"TRY_CAST({of} AS DOUBLE)"
        return f"CASE WHEN {_is(of, _FLOAT)} AND ABS({number}) < {_INFINITY} THEN {number} END"

    return Reading(
        _clean(field, exact("t")),
        _clean(
            field,
            f"CASE WHEN t IS NULL OR t = '' THEN {MISSING} WHEN {_is('t', _FLOAT)}"
            f" THEN CONCAT(IF(STARTSWITH(t, '-'), '-inf', 'inf'), ' is not a finite number')"
            f" WHEN {_is('LOWER(t)', '[+-]*(nan|inf|infinity)')}"
            f" THEN {says(shown('t'), text(' is not a finite number'))}"
            f" ELSE {says(shown('t'), text(' is no float'))} END",
        ),
        exact(field),
    )


def string_of(field: str) -> Reading:
    valid = f"CASE WHEN IS_VALID_UTF8({field}) THEN {field} END"
    reason = says(shown(f"MAKE_VALID_UTF8({field})"), text(" is not UTF-8"))
    return Reading(valid, _or_missing(field, reason), valid)


def bool_of(field: str) -> Reading:
    words = "WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE"
    more = (
        f"{words} WHEN 'yes' THEN TRUE WHEN 'no' THEN FALSE WHEN '1' THEN TRUE WHEN '0' THEN FALSE"
    )
    return Reading(
        _clean(field, f"CASE LOWER(t) {more} END"),
        f"CASE WHEN {field} IS NULL OR {field} = '' THEN {MISSING}"
        f" ELSE {says(shown(field), text(' is no bool'))} END",
        f"CASE {field} {words} END",
    )


def in_calendar(time: str) -> str:
    return f"({time} >= {whole(FIRST_TIME)} AND {time} <= {whole(LAST_TIME)})"


_checked = f"IF({in_calendar('v')}, v, NULL)"


def _outside(shown: str) -> str:
    return says(text("the time "), shown, text(" lies outside the years 1 to 9999"))


def time_of(field: str) -> Reading:
    # For this form Spark's own parser says the same, in whatever time zone.
    usual = _is(field, "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
    usual = f"{usual} AND NOT STARTSWITH({field}, '0000')"
    number = f"TRY_CAST({field} AS BIGINT)"
    plain = f"CAST({number} AS STRING) = {field} AND {in_calendar(number)}"

    def group(number: int) -> str:
        return rf"REGEXP_EXTRACT(t, r'\A(?:{_TIME})\z', {number})"

    def count(digits: str) -> str:
        return f"COALESCE(TRY_CAST({digits} AS BIGINT), 0L)"

    # The fields of `p`: what the parts of the text say. A zone is in minutes.
    parts = {
        "day": f"IF(STARTSWITH(t, '0000'), NULL, UNIX_DATE(TRY_CAST({group(1)} AS DATE)))",
        "h": count(group(2)),
        "m": count(group(3)),
        "s": count(group(4)),
        "us": count(f"RPAD({group(5)}, 6, '0')"),
        "sign": f"CASE SUBSTR({group(6)}, 1, 1) WHEN '+' THEN 1L WHEN '-' THEN -1L ELSE 0L END",
        "zh": count(f"SUBSTR({group(6)}, 2, 2)"),
        "zm": count(f"RIGHT({group(6)}, 2)"),
    }
    split = f"NAMED_STRUCT({', '.join(f'{text(name)}, {part}' for name, part in parts.items())})"
    real = "p.day IS NOT NULL AND p.h < 24 AND p.m < 60 AND p.s < 60"
    zoned = "(p.sign = 0 OR p.zh < 24 AND p.zm < 60)"
    moment = (
        f"p.day * {DAY}L + ((p.h * 60 + p.m) * 60 + p.s) * 1000000L + p.us"
        " - p.sign * (p.zh * 60 + p.zm) * 60000000L"
    )
    found = f"IF({real} AND {zoned}, {let('v', moment, _checked)}, NULL)"
    digits = let("v", "TRY_CAST(t AS BIGINT)", _checked)
    no_time = says(text("there is no such time as "), shown("t"))
    no_offset = says(text("there is no such offset as in "), shown("t"))
    why = f"CASE WHEN NOT ({real}) THEN {no_time} WHEN NOT {zoned} THEN {no_offset}"
    why = f"{why} ELSE {_outside(shown('t'))} END"
    finer = r"[0-9T :.-]+[.][0-9]{7,}(Z|[+-][0-9:]+)?"
    return Reading(
        _clean(
            field,
            f"CASE WHEN {_is('t', _TIME)} THEN {let('p', split, found)}"
            f" WHEN {_is('t', _INTEGER)} THEN {digits} END",
        ),
        _clean(
            field,
            f"CASE WHEN t IS NULL OR t = '' THEN {MISSING}"
            f" WHEN {_is('t', _INTEGER)} THEN {_outside(shown('t'))}"
            f" WHEN {_is('t', _TIME)} THEN {let('p', split, why)}"
            f" WHEN {_is('t', finer)}"
            f" THEN {says(text('the time '), shown('t'), text(' is finer than a microsecond'))}"
            f" ELSE {says(shown('t'), text(' is no time'))} END",
        ),
        f"CASE WHEN {usual} THEN UNIX_MICROS(TRY_CAST({field} AS TIMESTAMP))"
        f" WHEN {plain} THEN {number} END",
    )


def duration_of(field: str) -> Reading:
    def group(number: int) -> str:
        return rf"REGEXP_EXTRACT(t, r'\A(?:{_DURATION})\z', {number})"

    known = " ".join(f"WHEN '{unit}' THEN {size}L" for unit, size in UNITS.items())
    # Before and after the point apart: together they have more digits than a decimal takes.
    parts = {
        "sign": group(1),
        "number": f"CAST({group(2)} AS DECIMAL(19, 0))",
        "part": f"CAST(CONCAT('0.', {group(3)}, '0') AS DECIMAL(20, 20))",
        "unit": f"CAST(CASE {group(4)} {known} END AS DECIMAL(12, 0))",
    }
    split = f"NAMED_STRUCT({', '.join(f'{text(name)}, {part}' for name, part in parts.items())})"
    is_whole = "p.part * p.unit = FLOOR(p.part * p.unit)"
    size = "p.number * p.unit + CAST(FLOOR(p.part * p.unit) AS DECIMAL(12, 0))"
    size = f"IF(p.sign = '-', -({size}), {size})"
    number = int_of(field)
    units = text(f" is no unit of time: they are {', '.join(UNITS)}")
    big = says(short(f"CAST({size} AS STRING)"), text(" does not fit into 64 bits"))
    broken = says(shown(field), text(" is not a whole number of microseconds"))
    unknown = says(shown(group(4)), units)
    why = (
        f"CASE WHEN p.unit IS NULL THEN {unknown} WHEN NOT {is_whole} THEN {broken} ELSE {big} END"
    )
    found = f"IF({is_whole}, TRY_CAST({size} AS BIGINT), NULL)"
    return Reading(
        _clean(
            field,
            f"CASE WHEN {_is('t', _DURATION)} THEN {let('p', split, found)}"
            f" ELSE {number.value} END",
        ),
        _clean(
            field,
            f"CASE WHEN t IS NOT NULL AND {_is('t', _DURATION)} THEN {let('p', split, why)}"
            f" ELSE REPLACE({number.reason}, 'is no int', 'is no duration') END",
        ),
        number.fast,
    )


OF_TEXT: Mapping[Type, Callable[[str], Reading]] = {
    Type.INT: int_of,
    Type.FLOAT: float_of,
    Type.STRING: string_of,
    Type.BOOL: bool_of,
    Type.TIME: time_of,
    Type.DURATION: duration_of,
}

# -------------------------------------------------------------------------- typed columns


def typed(field: str, held: DataType, wanted: Type) -> Reading:
    """A field of a column with a type of its own, as `runtime.values.FROM_PYTHON` reads it."""
    if isinstance(held, StringType | CharType | VarcharType):
        return OF_TEXT[wanted](field)
    if isinstance(held, VariantType):
        return _of_variant(field, wanted)
    value = _value(field, held, wanted)
    reason = says(_python(field, held), text(f" is no {wanted.value}"))
    match wanted:
        case _ if value is None:
            value = "NULL"
        case Type.STRING:
            return string_of(value)
        case Type.TIME:
            value = f"IF({in_calendar(value)}, {value}, NULL)"
            reason = _outside(f"CAST({field} AS STRING)")
        case Type.FLOAT:
            value = f"IF(ABS({value}) < {_INFINITY}, {value}, NULL)"
            reason = says(_python(field, held), text(" is not a finite number"))
        case Type.INT | Type.BOOL | Type.DURATION:
            pass
    return Reading(value, _or_missing(field, reason), value)


def _value(field: str, held: DataType, wanted: Type) -> str | None:
    """The value without a check of its size; None where no value of this kind will do."""
    match wanted:
        case Type.INT | Type.TIME | Type.DURATION if isinstance(held, IntegralType):
            return f"CAST({field} AS BIGINT)"
        case Type.FLOAT if isinstance(held, NumericType):
            return f"CAST({field} AS DOUBLE)"
        case Type.STRING if isinstance(held, BinaryType):
            return f"CAST({field} AS STRING)"
        case Type.BOOL if isinstance(held, BooleanType):
            return field
        case Type.TIME if isinstance(held, TimestampType):
            return f"UNIX_MICROS({field})"
        case Type.TIME if isinstance(held, DateType):
            return f"UNIX_DATE({field}) * {DAY}L"
        case Type.TIME if isinstance(held, TimestampNTZType):
            clock = f"(HOUR({field}) * 60 + MINUTE({field})) * 60000000L"
            second = f"CAST(EXTRACT(SECOND FROM {field}) * 1000000 AS BIGINT)"
            return f"UNIX_DATE(CAST({field} AS DATE)) * {DAY}L + {clock} + {second}"
        case Type.DURATION if isinstance(held, DayTimeIntervalType):
            return microseconds(field)
    return None


def microseconds(interval: str) -> str:
    """Of an interval of days and seconds."""
    whole = f"CAST({interval} AS INTERVAL DAY TO SECOND)"
    parts = f"EXTRACT(DAY FROM {whole}) * {DAY}L + EXTRACT(HOUR FROM {whole}) * 3600000000L"
    parts += f" + EXTRACT(MINUTE FROM {whole}) * 60000000L"
    return f"({parts} + CAST(EXTRACT(SECOND FROM {whole}) * 1000000 AS BIGINT))"


def _or_missing(field: str, reason: str) -> str:
    return f"IF({field} IS NULL, {MISSING}, {reason})"


def _python(field: str, held: DataType) -> str:
    """How a reason shows a value that is no text."""
    if isinstance(held, BooleanType):
        return f"IF({field}, 'True', 'False')"
    if isinstance(held, ArrayType | MapType | StructType):
        return short(f"TO_JSON({field})")
    if isinstance(held, BinaryType):
        return short(f"HEX({field})")
    return short(f"CAST({field} AS STRING)")


def _of_variant(field: str, wanted: Type) -> Reading:
    """A value of JSON: the kind that it has there counts, so 5 is no string and 5.0 no int."""
    read = OF_TEXT[wanted]("s")
    number, real = (f"TRY_VARIANT_GET({field}, '$', '{kind}')" for kind in ("bigint", "double"))
    long = f"(k LIKE 'DECIMAL%' AND {_is('s', '-?[0-9]{19,}')})"
    refused = says(short("s"), text(f" is no {wanted.value}"))
    match wanted:
        case Type.INT | Type.DURATION:
            found = f"IF(k = 'BIGINT', {number}, NULL)"
            big = says(short("s"), text(" does not fit into 64 bits"))
            refused = f"IF({long}, {big}, {refused})"
        case Type.TIME:
            found = f"IF(k = 'BIGINT', {let('v', number, _checked)}, NULL)"
            refused = f"IF(k = 'BIGINT' OR {long}, {_outside(short('s'))}, {refused})"
        case Type.FLOAT:
            numeric = "(k IN ('BIGINT', 'DOUBLE', 'FLOAT') OR k LIKE 'DECIMAL%')"
            found = f"IF({numeric} AND ABS({real}) < {_INFINITY}, {real}, NULL)"
            infinite = says(short("s"), text(" is not a finite number"))
            refused = f"IF({numeric}, {infinite}, {refused})"
        case Type.BOOL:
            found = f"IF(k = 'BOOLEAN', TRY_VARIANT_GET({field}, '$', 'boolean'), NULL)"
        case Type.STRING:
            found = "NULL"
    truth = says("IF(s = 'true', 'True', 'False')", text(f" is no {wanted.value}"))

    def seen(body: str) -> str:
        """The body, where `k` is the kind of the value, and `s` the value as a text."""
        body = let("s", f"TRY_VARIANT_GET({field}, '$', 'string')", body)
        return let("k", f"SCHEMA_OF_VARIANT({field})", body)

    return Reading(
        seen(f"IF(k = 'STRING', {read.value}, {found})"),
        seen(
            f"CASE WHEN k IS NULL OR k = 'VOID' THEN {MISSING} WHEN k = 'STRING' THEN {read.reason}"
            f" WHEN k = 'BOOLEAN' THEN {truth} ELSE {refused} END"
        ),
    )


def clock(field: str, held: DataType) -> Reading:
    """A timestamp of which the program does not say whether it is the calendar's."""
    number, time = typed(field, held, Type.INT), typed(field, held, Type.TIME)
    value = f"COALESCE({number.value}, {time.value})"
    if isinstance(held, StringType | CharType | VarcharType):
        return Reading(value, time.reason, f"COALESCE({number.fast}, {time.fast})")
    if isinstance(held, VariantType):
        is_text = f"SCHEMA_OF_VARIANT({field}) = 'STRING'"
        return Reading(value, f"IF({is_text}, {time.reason}, {number.reason})")
    return time if isinstance(held, DatetimeType) else number
