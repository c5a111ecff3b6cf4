"""Fields to values in Spark SQL, where there is no doubt.

Each function takes the SQL of a field and returns SQL that is a value or NULL. It is a value only
if the field is written as fields of its type usually are; what else `runtime.values` can read is
for that to say. Nothing here raises, nor depends on the session's time zone.
"""

from __future__ import annotations

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    CalendarIntervalType,
    CharType,
    DataType,
    DatetimeType,
    DateType,
    DayTimeIntervalType,
    IntegralType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VarcharType,
    VariantType,
    YearMonthIntervalType,
)

from streamlog.runtime.values import FIRST_TIME, LAST_TIME, USUAL_FIRST, USUAL_LAST
from streamlog.syntax.ast import INT64_MAX, Type
from streamlog.syntax.time_form import TIME_UNITS

DAY = 86_400_000_000
NOTHING = "NULL"

_DIGITS = "-?[0-9]{1,18}"
_FLOAT = r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?"
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z"


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


def says(*parts: str) -> str:
    return f"CONCAT({', '.join(parts)})"


def in_calendar(time: str) -> str:
    return f"({time} >= {whole(FIRST_TIME)} AND {time} <= {whole(LAST_TIME)})"


def is_text(held: DataType) -> bool:
    return isinstance(held, StringType | CharType | VarcharType)


def is_read(held: DataType, wanted: Type) -> bool:
    """Whether values are read from something, so that there may be more than SQL finds."""
    return isinstance(held, VariantType) or (is_text(held) and wanted is not Type.STRING)


def is_odd(field: str, held: DataType, time: str) -> str:
    """Whether a time was a number that hardly counts microseconds; see `runtime.time_forms`."""
    unusual = f"({time} < {whole(USUAL_FIRST)} OR {time} >= {whole(USUAL_LAST)})"
    if is_text(held):
        return rf"{unusual} AND TRIM({field}) RLIKE r'\A[+-]?[0-9]+\z'"
    if isinstance(held, VariantType):
        return rf"{unusual} AND TRIM(CAST({field} AS STRING)) RLIKE r'\A[+-]?[0-9]+\z'"
    return unusual


def counted(field: str, held: DataType, wanted: Type, unit: str) -> str:
    """Of a column whose numbers count a unit."""
    number = value(field, held, Type.INT)
    per = TIME_UNITS[unit]
    if per < 1:
        found = _if(f"{number} % {per.denominator} = 0", f"{number} DIV {per.denominator}")
    else:
        most = INT64_MAX // per.numerator
        fits = f"{number} BETWEEN {whole(-most)} AND {whole(most)}"
        found = _if(fits, f"{number} * {per.numerator}L")
    return _if(in_calendar(found), found) if wanted is Type.TIME else found


def value(field: str, held: DataType, wanted: Type) -> str:
    """Of a column with a type of its own, as `runtime.values.FROM_PYTHON` has it."""
    if is_text(held):
        return _of_text(field, wanted)
    if isinstance(held, VariantType):
        return _of_variant(field, wanted)
    match wanted:
        case Type.INT | Type.DURATION if isinstance(held, IntegralType):
            return f"CAST({field} AS BIGINT)"
        case Type.TIME if isinstance(held, IntegralType):
            return _if(in_calendar(field), f"CAST({field} AS BIGINT)")
        case Type.FLOAT if isinstance(held, NumericType):
            return _finite(f"CAST({field} AS DOUBLE)")
        case Type.STRING if isinstance(held, BinaryType):
            return _of_text(f"CAST({field} AS STRING)", Type.STRING)
        case Type.BOOL if isinstance(held, BooleanType):
            return field
    return NOTHING


def clock(field: str, held: DataType) -> str:
    """A timestamp of which the program does not say whether it is the calendar's."""
    number = value(field, held, Type.INT)
    is_open = is_read(held, Type.INT)
    return f"COALESCE({number}, {value(field, held, Type.TIME)})" if is_open else number


_TYPES: tuple[tuple[type[DataType] | tuple[type[DataType], ...], Type], ...] = (
    (IntegralType, Type.INT),
    (NumericType, Type.FLOAT),
    ((StringType, CharType, VarcharType, BinaryType), Type.STRING),
    (BooleanType, Type.BOOL),
    (DatetimeType, Type.TIME),
    (DayTimeIntervalType, Type.DURATION),
)


def type_of(held: DataType) -> Type | None:
    """What a column's type says of its values."""
    return next((type_ for classes, type_ in _TYPES if isinstance(held, classes)), None)


def plain(field: str, held: DataType) -> str:
    """A field whose value is its microseconds, if it is a time or a duration, as the local engine
    has those of Parquet files; and its text, if it is something that Arrow does not know."""
    match held:
        case TimestampType():
            return f"UNIX_MICROS({field})"
        case DateType():
            return f"UNIX_DATE({field}) * {DAY}L"
        case TimestampNTZType():
            clock = f"(HOUR({field}) * 60 + MINUTE({field})) * 60000000L"
            second = f"CAST(EXTRACT(SECOND FROM {field}) * 1000000 AS BIGINT)"
            return f"UNIX_DATE(CAST({field} AS DATE)) * {DAY}L + {clock} + {second}"
        case DayTimeIntervalType():
            whole = f"CAST({field} AS INTERVAL DAY TO SECOND)"
            parts = f"EXTRACT(DAY FROM {whole}) * {DAY}L + EXTRACT(HOUR FROM {whole}) * 3600000000L"
            parts += f" + EXTRACT(MINUTE FROM {whole}) * 60000000L"
            return f"{parts} + CAST(EXTRACT(SECOND FROM {whole}) * 1000000 AS BIGINT)"
        case CalendarIntervalType() | YearMonthIntervalType() | TimeType():
            return f"CAST({field} AS STRING)"
        case _:
            return field


def _if(test: str, then: str) -> str:
    return f"CASE WHEN {test} THEN {then} END"


def _finite(number: str) -> str:
    return _if(f"ABS({number}) < double('Infinity')", number)


def _of_text(field: str, wanted: Type) -> str:
    # A cast that fails is slow, so what it is given is looked at before.
    def written(pattern: str) -> str:
        return rf"{field} RLIKE r'\A(?:{pattern})\z'"

    number = f"CAST({field} AS BIGINT)"
    match wanted:
        case Type.STRING:
            return _if(f"IS_VALID_UTF8({field})", field)
        case Type.BOOL:
            return f"CASE {field} WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END"
        case Type.FLOAT:
            return _if(written(_FLOAT), _finite(f"CAST({field} AS DOUBLE)"))
        case Type.TIME:
            # For this form Spark's own parser says the same, in whatever time zone.
            stamp = f"UNIX_MICROS(TRY_CAST({field} AS TIMESTAMP))"
            digits = _if(in_calendar(number), number)
            return (
                f"CASE WHEN {written(_TIME)} AND NOT STARTSWITH({field}, '0000') THEN {stamp}"
                f" WHEN {written(_DIGITS)} THEN {digits} END"
            )
        case Type.INT | Type.DURATION:
            return _if(written(_DIGITS), number)


def _of_variant(field: str, wanted: Type) -> str:
    """A value of JSON keeps the kind that it has there: 5 is not a string, nor 5.0 an int."""

    def got(kind: str) -> str:
        return f"TRY_VARIANT_GET({field}, '$', '{kind}')"

    kind = f"SCHEMA_OF_VARIANT({field})"
    match wanted:
        case Type.STRING:
            return _if(f"{kind} = 'STRING'", got("string"))
        case Type.BOOL:
            return _if(f"{kind} = 'BOOLEAN'", got("boolean"))
        case Type.FLOAT:
            numeric = f"{kind} IN ('BIGINT', 'DOUBLE', 'FLOAT') OR {kind} LIKE 'DECIMAL%'"
            return _if(numeric, _finite(got("double")))
        case Type.TIME:
            number = _if(in_calendar(got("bigint")), got("bigint"))
            stamp = _of_text(got("string"), Type.TIME)
            return f"CASE {kind} WHEN 'BIGINT' THEN {number} WHEN 'STRING' THEN {stamp} END"
        case Type.INT | Type.DURATION:
            return _if(f"{kind} = 'BIGINT'", got("bigint"))
