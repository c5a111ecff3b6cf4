"""Rows into Spark: each is checked in SQL, and a bad one has its reason.

The meaning is that of `runtime.ingest.Checker`: the same rows are good, with the same values.
Where it differs: a column has one type on Spark, so where the program leaves it open, a text
file's values are all read as what they have in common; and in reasons, a text that is not plain
ASCII is shown with question marks, and a time that does not exist without what is wrong in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DatetimeType,
    DayTimeIntervalType,
    IntegralType,
    NumericType,
    StringType,
    StructField,
    VarcharType,
    VariantType,
)

from streamlog.analysis.time.reach import Assumption
from streamlog.compiler import Program
from streamlog.runtime.ingest import NOT_FALSE, Checker, Range
from streamlog.spark.values import Reading, clock, let, says, typed, whole
from streamlog.spark.values import text as literal
from streamlog.spark.written import as_written
from streamlog.syntax.ast import Const, Type

# What `sources` hands over beside the fields: a row that could not be read, and why.
CORRUPT, WHY = "_corrupt", "_why"
REASON, RAW, GOOD = "reason", "raw", "good"

_SQL = {
    Type.INT: "BIGINT",
    Type.TIME: "BIGINT",
    Type.DURATION: "BIGINT",
    Type.FLOAT: "DOUBLE",
    Type.STRING: "STRING",
    Type.BOOL: "BOOLEAN",
}


class ColumnsError(ValueError):
    """A DataFrame's columns are not those of its predicate."""


_HELD: tuple[tuple[type[DataType] | tuple[type[DataType], ...], Type], ...] = (
    (IntegralType, Type.INT),
    (NumericType, Type.FLOAT),
    ((StringType, CharType, VarcharType, BinaryType), Type.STRING),
    (BooleanType, Type.BOOL),
    (DatetimeType, Type.TIME),
    (DayTimeIntervalType, Type.DURATION),
)


def data_types(
    frame: DataFrame, program: Program, pred: str, text: bool = False
) -> dict[int, Type]:
    """What a DataFrame tells of the columns whose type the program leaves open.

    A typed column tells by its type. The values of a text file, or of JSON, are looked at, which
    is a job, unless they are still to come: ints if all are, else numbers if all are, and else
    strings; a clock is the calendar's if one of its values is no int but a time.
    """
    checker = Checker(program, pred)
    found = _fields(frame)
    order = matched(checker.names, [f.name for f in found], pred)
    temporal = program.schema.is_temporal(pred)
    result: dict[int, Type] = {}
    tests: dict[int, list[tuple[str, Type]]] = {}
    for position, type_ in enumerate(checker.types):
        if type_ is not None:
            continue
        held, field = found[order[position]].dataType, f"x{order[position]}"
        is_text = isinstance(held, StringType) and (text or (temporal and position == 0))
        if is_text or isinstance(held, VariantType):
            if temporal and position == 0:
                time, number = typed(field, held, Type.TIME), typed(field, held, Type.INT)
                is_time = f"{number.value} IS NULL AND {time.value} IS NOT NULL"
                tests[position] = [(f"NOT BOOL_OR({is_time})", Type.INT)]
            else:
                tests[position] = _guesses(field, held)
            continue
        told = next((t for classes, t in _HELD if isinstance(held, classes)), None)
        if told is not None:
            result[position] = told
    if not tests or frame.isStreaming:
        return result
    asked = [f"{test} AS t{p}_{n}" for p, of in tests.items() for n, (test, _) in enumerate(of)]
    row = _plain(frame).selectExpr(*asked).first()
    assert row is not None
    for position, of in tests.items():
        answers = (t for n, (_, t) in enumerate(of) if row[f"t{position}_{n}"])
        otherwise = Type.TIME if temporal and position == 0 else Type.STRING
        result[position] = next(answers, otherwise)
    return result


def _guesses(field: str, held: DataType) -> list[tuple[str, Type]]:
    """SQL that says whether all values of a column are of a type, the narrower type first."""
    if isinstance(held, VariantType):
        kind = f"SCHEMA_OF_VARIANT({field})"
        kinds = [
            (f"{kind} = 'BIGINT'", Type.INT),
            (f"{kind} IN ('BIGINT', 'DOUBLE', 'FLOAT') OR {kind} LIKE 'DECIMAL%'", Type.FLOAT),
            (f"{kind} = 'BOOLEAN'", Type.BOOL),
        ]
        return [(f"BOOL_AND(({test}) OR {kind} = 'VOID')", t) for test, t in kinds]
    kept = f"{field} IS NULL OR {field} = ''"
    return [
        (f"BOOL_AND({kept} OR {typed(field, held, t).value} IS NOT NULL)", t)
        for t in (Type.INT, Type.FLOAT)
    ]


def matched(names: Sequence[str], found: Sequence[str], pred: str) -> list[int]:
    """Where each column stands in a DataFrame: by name, else, if none is known, by position."""
    result: list[int] = []
    missing: list[str] = []
    for name in names:
        same = [i for i, f in enumerate(found) if f == name]
        same = same or [i for i, f in enumerate(found) if f.casefold() == name.casefold()]
        if len(same) > 1:
            raise ColumnsError(f"the rows for `{pred}` have several columns `{name}`")
        result += same
        if not same:
            missing.append(name)
    if not missing:
        return result
    if len(missing) == len(names) == len(found):
        return list(range(len(names)))
    columns = " and ".join(f"`{name}`" for name in missing)
    have = ", ".join(f"`{f}`" for f in found) or "none"
    raise ColumnsError(f"the rows for `{pred}` lack {columns}; their columns are {have}")


def values(
    frame: DataFrame,
    program: Program,
    pred: str,
    types: tuple[Type, ...],
    text: bool = False,
) -> DataFrame:
    """The rows of a predicate: `c0`, `c1`, …, and whether they are `good`.

    `types` are those of the columns on Spark. `text`: the fields are those of a text file, where
    nothing is an empty text. A clock that the program does not declare may hold whole numbers
    and times of the calendar, whichever of the two types it is said to have.
    """
    read = _Read.of(frame, program, pred, types, text)
    return read.rows.selectExpr(*read.columns, f"{read.good} AS {GOOD}")


def checked(
    frame: DataFrame,
    program: Program,
    pred: str,
    types: tuple[Type, ...],
    text: bool = False,
) -> DataFrame:
    """`values` with a `reason` where a row is bad, and the row as it is, `raw`. There are so many
    reasons that to plan for them takes Spark longer than a small file takes."""
    read = _Read.of(frame, program, pred, types, text)
    bad = [f"WHEN {column} IS NULL THEN {why}" for column, why in read.reasons.items()]
    bad += (f"WHEN {condition} THEN {why}" for condition, why in read.broken.items())
    if read.is_corruptible:
        why = WHY if WHY in frame.columns else "'the row cannot be read'"
        bad.insert(0, f"WHEN {CORRUPT} IS NOT NULL THEN {why}")
    raw = _raw([f.name for f in _fields(frame)], read.is_corruptible)
    return read.rows.selectExpr(
        *read.columns,
        (f"CASE {' '.join(bad)} END" if bad else "CAST(NULL AS STRING)") + f" AS {REASON}",
        f"CASE WHEN NOT ({read.good}) THEN {raw} END AS {RAW}",
    )


@frozen
class _Read:
    """Rows with their fields, and a value for each column: NULL where its field is unfit."""

    rows: DataFrame
    reasons: Mapping[str, str]  # by column, why it has none
    broken: Mapping[str, str]  # conditions on the columns that refuse a row, and why
    is_corruptible: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.reasons)

    @property
    def good(self) -> str:
        tests = [f"{column} IS NOT NULL" for column in self.columns]
        tests += (f"NOT ({condition})" for condition in self.broken)
        if self.is_corruptible:
            tests.insert(0, f"{CORRUPT} IS NULL")
        return " AND ".join(tests) or "TRUE"

    @classmethod
    def of(
        cls,
        frame: DataFrame,
        program: Program,
        pred: str,
        types: tuple[Type, ...],
        text: bool,
    ) -> _Read:
        checker = Checker(program, pred)
        found = _fields(frame)
        order = matched(checker.names, [f.name for f in found], pred)
        fast: list[str] = []
        made: list[str] = []
        reasons: dict[str, str] = {}
        for i, type_ in enumerate(types or (Type.BOOL,)):
            held, field = found[order[i]].dataType, f"x{order[i]}"
            if text and type_ is Type.STRING and isinstance(held, StringType):
                field = f"COALESCE({field}, '')"
            is_clock = i == 0 and checker.temporal
            if is_clock and checker.types[0] is None and type_ in (Type.INT, Type.TIME):
                reading = clock(field, held)
            else:
                reading = typed(field, held, type_)
            for wanted in checker.ranges.get(i, ()):
                reading = _ranged(reading, type_, wanted)
            value = f"CAST({reading.value} AS {_SQL[type_]})"
            if reading.fast:
                fast.append(f"CAST({reading.fast} AS {_SQL[type_]}) AS f{i}")
                is_all = reading.fast == reading.value
                value = (
                    f"f{i}" if is_all else f"CASE WHEN f{i} IS NOT NULL THEN f{i} ELSE {value} END"
                )
            made.append(f"{value} AS c{i}")
            column = literal(f"column `{checker.names[i]}`: ")
            reasons[f"c{i}"] = f"CONCAT({column}, {reading.reason})"
        rows = _plain(frame).selectExpr("*", *fast).selectExpr("*", *made)
        broken = {_broken(a, types): literal(checker.refusal(a)) for a in checker.assumed}
        if not types:
            broken["NOT c0"] = literal(NOT_FALSE)
        return cls(rows, reasons, broken, CORRUPT in frame.columns)


def _broken(assumed: Assumption, types: tuple[Type, ...]) -> str:
    """When a row is one that `Assumption.is_broken_by` names."""
    tests = [
        f"c{position} = {_constant(const, types[position])}" for position, const in assumed.where
    ]
    within = f"c{assumed.column} BETWEEN {whole(assumed.low)} AND {whole(assumed.high)}"
    return " AND ".join([*tests, f"NOT ({within})"])


def _constant(const: Const, type_: Type) -> str:
    if isinstance(const.value, str):
        return literal(const.value)
    if isinstance(const.value, bool):
        return str(const.value).upper()
    return f"{float(const.value)!r}D" if type_ is Type.FLOAT else whole(int(const.value))


def _raw(names: Sequence[str], has_corrupt: bool) -> str:
    """A row as JSON; one that could not be read is a text."""
    row = ", ".join(f"{literal(name)}, x{i}" for i, name in enumerate(names))
    raw = f"TO_JSON(NAMED_STRUCT({row}), MAP('ignoreNullFields', 'false'))" if names else "'{}'"
    if has_corrupt:
        line = f"TO_JSON(ARRAY({CORRUPT}))"
        raw = f"IF({CORRUPT} IS NULL, {raw}, SUBSTR({line}, 2, LENGTH({line}) - 2))"
    return f"MAKE_VALID_UTF8({raw})"


def _fields(frame: DataFrame) -> list[StructField]:
    return [f for f in frame.schema.fields if f.name not in (CORRUPT, WHY)]


def _plain(frame: DataFrame) -> DataFrame:
    """With names that SQL takes, whatever the names were."""
    names, number = [], 0
    for name in frame.columns:
        names.append(name if name in (CORRUPT, WHY) else f"x{number}")
        number += name not in (CORRUPT, WHY)
    return frame.toDF(*names)


def _ranged(reading: Reading, type_: Type, wanted: Range) -> Reading:
    """A value, unless its column's range leaves it out."""
    low, high = wanted.low, wanted.high
    ends = [f"{float(e)!r}D" if type_ is Type.FLOAT else whole(int(e)) for e in (low, high)]
    inside = f"IF(r >= {ends[0]} AND r <= {ends[1]}, r, NULL)"
    beyond = says(as_written("r", type_), literal(wanted.refusal))
    fast = reading.fast
    return Reading(
        let("r", reading.value, inside),
        let("r", reading.value, f"IF(r IS NULL, {reading.reason}, {beyond})"),
        fast and f"CASE WHEN {fast} >= {ends[0]} AND {fast} <= {ends[1]} THEN {fast} END",
    )
