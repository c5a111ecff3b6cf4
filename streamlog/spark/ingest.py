"""Rows into Spark: each is checked, and a bad one has its place and its reason.

What a row means is for `runtime.ingest.Checker` to say. SQL takes the rows of which it is certain,
which are most; the others go, as they are, to the checker in a task, so that the same rows are
good here as in the local engine, and bad ones have the same reasons. A row that SQL takes costs
Python nothing but an empty field in an Arrow batch, and no row is read twice.

Where it differs: a column has one type on Spark, so where the program leaves it open, a text
file's values are all read as what they have in common.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, StringType, StructType

from streamlog.compiler import Program
from streamlog.runtime.executor import Row
from streamlog.runtime.ingest import HOLDING, Checker, Reject, positions_of
from streamlog.runtime.time_forms import doubt
from streamlog.spark import wire
from streamlog.spark.numbering import NUMBER, located, numbered
from streamlog.spark.records import RECORD, SOUND, Columns, Form, Records
from streamlog.spark.values import NOTHING, clock, counted, is_odd, is_read, value, whole
from streamlog.syntax.ast import Type
from streamlog.syntax.nothing import NONE

PLACE, REASON, TEXT, GOOD, ODD = "place", "reason", "text", "good", "odd"
_CERTAIN, _FOUND = "certain", "found"
# In place of a reason: the record is not a row, such as a blank line.
_NO_ROW = ""

Types = tuple[Type, ...]


def certain(records: Records, program: Program, pred: str, types: Types) -> DataFrame:
    """The rows of a predicate, `c0`, `c1`, …, whether SQL is certain of them (`good`), and what
    is `odd` about them.

    No row goes to Python. `types` are those of the columns on Spark.
    """
    frames = []
    for part in records.parts:
        check = _Check.of(part.form, program, pred, types, records.arriving)
        rows = check.fast(part.frame)
        frames.append(rows.selectExpr(*check.columns, f"{_CERTAIN} AS {GOOD}", check.odd))
    return _union(frames)


def values(records: Records, program: Program, pred: str, types: Types) -> DataFrame:
    """The rows of a predicate, `c0`, `c1`, …, whether they are `good`, and what is `odd` about
    them."""
    frames = []
    for part in records.parts:
        check = _Check.of(part.form, program, pred, types, records.arriving)
        rows, good = check.fast(part.frame), _CERTAIN
        if check.is_reading:
            rows, good = check.slow(rows), f"{REASON} IS NULL"
        frames.append(rows.selectExpr(*check.columns, f"{good} AS {GOOD}", check.odd))
    return _union(frames)


def checked(records: Records, program: Program, pred: str, types: Types) -> DataFrame:
    """`c0`, `c1`, …, and of a bad row its `place`, the `reason`, and the row as a `text`; of a
    good one what is `odd` about it.

    The place of a line is its file alone.
    """
    found = []
    for part in records.parts:
        check = _Check.of(part.form, program, pred, types, records.arriving)
        place = f"IF({REASON} IS NULL, NULL, {part.place}) AS {PLACE}"
        rows = check.slow(check.fast(part.frame))
        columns = check.all_columns(len(types))
        found.append(rows.selectExpr(*columns, place, REASON, TEXT, check.odd))
    return _union(found)


def uncertain(
    spark: SparkSession, records: Records, program: Program, pred: str, types: Types
) -> DataFrame:
    """The rows of complete data of which SQL is not certain, as the checker reads them: `c0`,
    `c1`, …, and of a bad row its `place`, the `reason`, and the row as a `text`.

    Files of lines are read twice for this: for these rows, and to count the lines before them.
    """
    frames = []
    for part in records.parts:
        check = _Check.of(part.form, program, pred, types, records.arriving)
        place = part.place
        if part.files:
            lines = located(spark, part.files)
            rows = numbered(check.fast(lines).where(f"NOT {_CERTAIN}"), lines)
            rows = rows.where(f"{NUMBER} > {part.header}")
            place = f"CONCAT({place}, ':', {NUMBER})"
        else:
            rows = check.fast(part.frame).where(f"NOT {_CERTAIN}")
        rows = check.slow(rows)
        frames.append(
            rows.selectExpr(*check.columns, f"{place} AS {PLACE}", REASON, TEXT, check.odd)
        )
    return _union(frames)


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionAll, frames)


@frozen
class _Check:
    """How the records of a form become rows of a predicate."""

    form: Form
    checker: Checker
    types: Types
    held: Sequence[int]  # which of the predicate's columns these are

    @staticmethod
    def of(form: Form, program: Program, pred: str, types: Types, arriving: bool) -> _Check:
        held = positions_of(program.schema[pred], arriving)
        types = tuple(types[i] for i in held)
        return _Check(form, Checker(program, pred, types, arriving=arriving), types, held)

    def all_columns(self, arity: int) -> list[str]:
        """With something in place of the time of arrival, for now."""
        at = {position: i for i, position in enumerate(self.held)}
        columns = [f"c{at[i]}" if i in at else "CAST(0 AS BIGINT)" for i in range(arity)]
        return [f"{column} AS c{i}" for i, column in enumerate(columns)] or self.columns

    @property
    def columns(self) -> list[str]:
        return wire.columns(self.types).names

    @property
    def is_reading(self) -> bool:
        """Whether there may be good rows of which SQL is not certain."""
        if self.checker.assumed or not isinstance(self.form, Columns):
            return True
        if any(i not in self.form.units for i in self.checker.forms):
            return True
        return any(map(is_read, self.form.held, self.types))

    def fast(self, records: DataFrame) -> DataFrame:
        """With `c0`, `c1`, …, and whether these are `certain`."""
        rows = self.form.split(records)
        made = []
        tests = [SOUND]
        types = self.types or (Type.BOOL,)
        for i, (field, type_) in enumerate(zip(wire.columns(self.types), types, strict=True)):
            value, otherwise = self._value(i, type_), ""
            if i in self.checker.optional:
                is_missing = self.form.is_missing(f"x{i}")
                value = f"IF({is_missing}, NULL, {value})"
                otherwise = f"{is_missing} OR "
            made.append(f"CAST({value} AS {field.dataType.simpleString()}) AS c{i}")
            tests.append(f"({otherwise}c{i} IS NOT NULL)")
            for wanted in self.checker.ranges.get(i, ()):
                low, high = (_number(end, type_) for end in (wanted.low, wanted.high))
                tests.append(f"({otherwise}c{i} BETWEEN {low} AND {high})")
        for relation in self.checker.relations:
            for left, right, most in relation.differences:
                # Two ints may lie further apart than 64 bits reach.
                tests.append(f"CAST(c{left} AS DECIMAL(20)) - c{right} <= {whole(most)}")
        if self.checker.assumed:  # by tables, which are short
            tests.append("FALSE")
        if not self.types:
            tests.append("c0")
        is_certain = f"COALESCE({' AND '.join(tests)}, FALSE) AS {_CERTAIN}"
        return rows.selectExpr("*", *made).selectExpr("*", is_certain)

    def _value(self, i: int, type_: Type) -> str:
        held, field = self.form.held[i], f"x{i}"
        unit = self.form.units.get(i, "us")
        if i not in self.form.units and i in self.checker.forms:
            unit = self.checker.forms[i].unit
            if not unit:  # a format, of which Python alone is certain
                return NOTHING
        if unit != "us":
            return counted(field, held, type_, unit)
        is_open = i == 0 and self.checker.temporal and self.checker.types[0] is None
        return clock(field, held) if is_open else value(field, held, type_)

    @property
    def odd(self) -> str:
        """Of a row with a number that is hardly a time: the position of its column, and itself."""
        known = {*self.form.units, *self.checker.forms}
        times = (i for i, t in enumerate(self.checker.types) if t is Type.TIME and i not in known)
        found = (
            f"WHEN {is_odd(f'x{i}', self.form.held[i], f'c{i}')} "
            f"THEN CONCAT('{self.held[i]} ', c{i})"
            for i in times
        )
        cases = " ".join(found)
        return f"CASE {cases} END AS {ODD}" if cases else f"CAST(NULL AS STRING) AS {ODD}"

    def slow(self, rows: DataFrame) -> DataFrame:
        """With those that the checker takes, and a reason for the others."""
        check = arrow_udf(self._task(), self._result)  # type: ignore[call-overload]
        asked = check(F.expr(f"IF({_CERTAIN}, NULL, {RECORD})"))
        rows = rows.withColumn(_FOUND, F.explode(asked) if self.form.has_list else asked)
        rows = rows.where(f"NOT ({_FOUND}.{REASON} <=> '{_NO_ROW}')")
        found = {c: F.expr(f"IF({_CERTAIN}, {c}, {_FOUND}.{c})") for c in self.columns}
        told = {c: F.expr(f"{_FOUND}.{c}") for c in (REASON, TEXT)}
        return rows.withColumns({**found, **told})

    @property
    def _result(self) -> StructType | ArrayType:
        fields = wire.columns(self.types)
        row = fields.add(REASON, StringType()).add(TEXT, StringType())
        return ArrayType(row) if self.form.has_list else row

    def _task(self) -> Callable[[pa.Array], pa.Array]:
        """What is sent needs nothing of streamlog before there is something to check."""
        type_ = to_arrow_type(self._result)
        task = _Task(self.form, self.checker, type_)
        sent = cloudpickle.dumps(task)  # type: ignore[no-untyped-call]
        made: list[_Task] = []

        def check(records: pa.Array) -> pa.Array:
            if records.null_count == len(records):
                return pa.nulls(len(records), type_)
            if not made:
                made.append(pickle.loads(sent))
            return made[0].checked(records)

        return check


@frozen
class _Task:
    form: Form
    checker: Checker
    type: pa.DataType

    def checked(self, records: pa.Array) -> pa.Array:
        """A value or a reason for each record, or a list of these; nothing where there is none."""
        is_asked = records.is_valid()
        rows = self.form.read(records.drop_null(), self.checker)
        result = self._results if self.form.has_list else self._result
        found = pa.array(list(map(result, rows)), self.type)
        number = pc.cumulative_sum(is_asked.cast(pa.int64()))
        return found.take(pc.if_else(is_asked, pc.subtract(number, 1), None))

    def _results(self, rows: Iterable[Row | Reject]) -> list[tuple[object, ...]]:
        return [self._result((row,)) for row in rows]

    def _result(self, rows: Iterable[Row | Reject]) -> tuple[object, ...]:
        nothing = (None,) * len(self.checker.types)
        row = next(iter(rows), None)
        if row is None:
            return (*nothing, _NO_ROW, None)
        if isinstance(row, Reject):
            return (*nothing, row.reason, row.text)
        return (*(None if v is NONE else v for v in row or HOLDING), None, None)


def _number(value: int | float, type_: Type) -> str:
    return f"{float(value)!r}D" if type_ is Type.FLOAT else whole(int(value))


def doubt_of(program: Program, pred: str, odd: str) -> str:
    """What to warn of, by what was `odd` about a row."""
    position, number = map(int, odd.split())
    return doubt(pred, program.schema.column_names[pred][position], number)


# ------------------------------------------------------------------------ what the data tell


def data_types(records: Records, program: Program, pred: str) -> dict[int, Type]:
    """What an input tells of the columns whose type the program leaves open.

    A typed column tells by its type. The values of text files, of JSON and of a clock are read,
    all of them in Python, which is a job, unless they are still to come: ints if all are, else
    numbers if all are, and else strings; a clock is the calendar's if one of its values is a time.
    """
    checker = Checker(program, pred, arriving=records.arriving)
    held = positions_of(program.schema[pred], records.arriving)
    result: dict[int, Type] = {}
    asked: list[int] = []
    form = records.parts[0].form
    known = form.told if isinstance(form, Columns) else [None] * len(form.held)
    for position, told in enumerate(known):
        if checker.types[position] is None:
            if told is None or (told is Type.STRING and checker.temporal and position == 0):
                asked.append(position)
            else:
                result[held[position]] = told
    if not asked or records.frame.isStreaming:
        return result
    found = _union(
        part.form.split(part.frame)
        .select(RECORD)
        .mapInArrow(_kinds(part.form, checker, asked), "position int, kind string")
        for part in records.parts
    )
    kinds = {(row.position, row.kind) for row in found.collect()}
    for position in asked:
        result[position] = _type_of({kind for p, kind in kinds if p == position})
        if checker.temporal and position == 0:
            result[position] = Type.TIME if (0, Type.TIME.value) in kinds else Type.INT
    return result


def _kinds(
    form: Form, checker: Checker, asked: Sequence[int]
) -> Callable[..., Iterator[pa.RecordBatch]]:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: set[tuple[int, str]] = set()
        for batch in batches:
            for row in chain.from_iterable(form.read(batch.column(0), checker)):
                if isinstance(row, tuple):
                    found |= {(i, type(row[i]).__name__) for i in asked if row[i] not in ("", NONE)}
        if checker.saw_time:
            found.add((0, Type.TIME.value))
        rows = [{"position": p, "kind": k} for p, k in sorted(found)]
        schema = pa.schema([("position", pa.int32()), ("kind", pa.string())])
        yield pa.RecordBatch.from_pylist(rows, schema)

    return task


def _type_of(kinds: set[str]) -> Type:
    if kinds == {"bool"}:
        return Type.BOOL
    if kinds and kinds <= {"int", "float"}:
        return Type.INT if kinds == {"int"} else Type.FLOAT
    return Type.STRING
