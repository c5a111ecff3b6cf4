"""Values that are in a field beyond doubt, in SQL; of the others, NULL.

What a field means is for `runtime.ingest.Checker` to say. Here are only those that are written as
fields of their type usually are.
"""

from __future__ import annotations

from streamlog.duck.database import literal
from streamlog.runtime.values import FIRST_TIME, LAST_TIME, USUAL_FIRST, USUAL_LAST
from streamlog.syntax.ast import Type

_TIME = r"\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?Z"
_FLOAT = r"-?\d+(\.\d+)?([eE][+-]?\d{1,3})?"


def of_text(field: str, type_: Type) -> str:
    """Of a field of a text file."""
    match type_:
        case Type.STRING:
            return field
        case Type.BOOL:
            return f"CASE {field} WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END"
        case Type.FLOAT:
            return _float(field)
        case Type.TIME:
            return f"COALESCE({_time(field)}, {_usual(field)})"
        case Type.INT | Type.DURATION:
            return _whole(field)


def of_json(field: str, type_: Type) -> str:
    """Of a value of JSON, which keeps the kind that it has there: 5 is not a string."""
    written = f"CAST({field} AS VARCHAR)"
    is_string = f"starts_with({written}, '\"')"
    string = (
        f"CASE WHEN {is_string} AND NOT contains({written}, '\\u0000') THEN {field} ->> '$' END"
    )
    match type_:
        case Type.STRING:
            return string
        case Type.TIME:
            return f"CASE WHEN {is_string} THEN {_time(string)} ELSE {_usual(written)} END"
        case Type.FLOAT:
            return f"COALESCE(CAST({_whole(written)} AS DOUBLE), {_float(written)})"
        case _:
            return of_text(written, type_)


# What DuckDB calls the types of columns that hold values of a type.
_WHOLE_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_HELD: dict[Type, tuple[str, ...]] = {
    Type.INT: _WHOLE_NUMBERS,
    Type.DURATION: _WHOLE_NUMBERS,
    Type.TIME: _WHOLE_NUMBERS,
    Type.FLOAT: ("DOUBLE", "FLOAT", *_WHOLE_NUMBERS),
    Type.STRING: ("VARCHAR",),
    Type.BOOL: ("BOOLEAN",),
}
_STAMPS = ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_MS", "TIMESTAMP_S")


def of_typed(field: str, held: str, type_: Type) -> str | None:
    """Of a column of this type of DuckDB's; None: nothing of it is beyond doubt."""
    if type_ is Type.TIME and held in _STAMPS:
        stamp = f"epoch_us({field})"
        return f"CASE WHEN isfinite({field}) AND {_in_calendar(stamp)} THEN {stamp} END"
    if held not in _HELD[type_]:
        return None
    match type_:
        case Type.INT | Type.DURATION:
            return f"CAST({field} AS BIGINT)"
        case Type.TIME:
            return f"CASE WHEN {_is_usual(field)} THEN CAST({field} AS BIGINT) END"
        case Type.FLOAT:
            double = f"CAST({field} AS DOUBLE)"
            return f"CASE WHEN isfinite({double}) THEN {double} END"
        case Type.STRING | Type.BOOL:
            return field


def _whole(field: str) -> str:
    # DuckDB reads 5.0 and 1e3 as whole numbers.
    number = f"TRY_CAST({field} AS BIGINT)"
    return f"CASE WHEN CAST({number} AS VARCHAR) = {field} THEN {number} END"


def _float(field: str) -> str:
    double = f"TRY_CAST({field} AS DOUBLE)"
    is_written = f"regexp_full_match({field}, {literal(_FLOAT)}) AND isfinite({double})"
    return f"CASE WHEN {is_written} THEN {double} END"


def _time(field: str) -> str:
    stamp = f"epoch_us(TRY_CAST({field} AS TIMESTAMP))"
    seconds = f"epoch_us(try_strptime({field}, '%Y-%m-%dT%H:%M:%SZ'))"
    # What strptime reads, with as many characters and no spaces around them, has the full number
    # of digits everywhere. That is quicker to see than a pattern.
    is_full = (
        f"length({field}) = 20 AND {field} > '1' AND {field} < ':' AND ends_with({field}, 'Z')"
    )
    return (
        f"CASE WHEN {is_full} THEN {seconds}"
        f" WHEN regexp_full_match({field}, {literal(_TIME)}) AND {_in_calendar(stamp)}"
        f" THEN {stamp} END"
    )


def _usual(field: str) -> str:
    """Microseconds; of a number that is hardly of these the checker warns."""
    number = _whole(field)
    return f"CASE WHEN {_is_usual(number)} THEN {number} END"


def _is_usual(number: str) -> str:
    return f"{number} >= {USUAL_FIRST} AND {number} < {USUAL_LAST}"


def _in_calendar(stamp: str) -> str:
    return f"{stamp} BETWEEN {FIRST_TIME} AND {LAST_TIME}"
