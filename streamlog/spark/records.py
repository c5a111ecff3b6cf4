"""What sources hand over: DataFrames of records, and how a record is read.

A record is a line of CSV or JSON (`lines`), or a row of a DataFrame. A form says in SQL which of
its fields are a predicate's, and reads in Python the records that SQL leaves open.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
from attrs import evolve, frozen
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType, VariantType

from streamlog.runtime.executor import Row
from streamlog.runtime.ingest import Checker, Reject
from streamlog.runtime.nested import Absent, missing_list
from streamlog.runtime.values import Unfit
from streamlog.spark import nested
from streamlog.spark.nested import ELEMENT, Field, Keys
from streamlog.spark.values import is_text, plain, type_of
from streamlog.syntax.ast import Type
from streamlog.syntax.data_path import DataPath

# Beside what a DataFrame of records has, `split` adds its fields, x0, x1, …; whether these are
# certain to be the fields; and the record as Python is to read it.
SOUND, RECORD = "sound", "record"
_NO_LIST = "no_list"

_NO_UNITS: Mapping[Keys, tuple[Type, str]] = MappingProxyType({})

Checked: TypeAlias = Iterator[Iterable[Row | Reject]]  # the rows of each record, often one


class ColumnsError(ValueError):
    """A DataFrame's columns are not those of its predicate."""


class Form(Protocol):
    @property
    def held(self) -> tuple[DataType, ...]:
        """The types of the fields."""

    @property
    def units(self) -> Mapping[int, str]:
        """What the fields that are known to be times or durations count."""

    def is_missing(self, field: str) -> str:
        """SQL of whether a field of an optional column certainly has no value."""

    @property
    def has_list(self) -> bool:
        """Whether a record may have several rows, for which only Python can tell."""

    def split(self, records: DataFrame) -> DataFrame:
        """In SQL."""

    def read(self, records: pa.Array, checker: Checker) -> Checked:
        """In a task."""


@frozen
class Part:
    """Records of one form."""

    frame: DataFrame
    form: Form
    place: str = "''"  # SQL: where a record is, as far as that can be said at once
    files: tuple[str, ...] = ()  # those of lines, which must be numbered to be found again
    header: int = 0  # up to which line these have no rows


@frozen
class Records:
    """All that an input has."""

    parts: tuple[Part, ...]
    # For lines of a stream: those of some of its files, where these are named at once.
    anew: Callable[[SparkSession, Sequence[str]], Records] | None = None
    arriving: bool = False  # rows that have no times of arrival yet

    @staticmethod
    def of(frame: DataFrame, paths: Sequence[DataPath], pred: str) -> Records:
        part = Columns.of(frame, matched(paths, frame.schema, pred))
        return Records((part,), arriving=frame.isStreaming)

    @property
    def frame(self) -> DataFrame:
        return reduce(DataFrame.unionAll, (part.frame for part in self.parts))

    def map(self, change: Callable[[DataFrame], DataFrame]) -> Records:
        parts = (evolve(part, frame=change(part.frame)) for part in self.parts)
        return evolve(self, parts=tuple(parts))


def matched(paths: Sequence[DataPath], schema: StructType, pred: str) -> list[Field]:
    """Where each column stands in a DataFrame: by name, else, if none is known, by position."""
    result: list[Field] = []
    missing: list[DataPath] = []
    for path in paths:
        try:
            result.append(nested.field(schema, path))
        except Absent:
            missing.append(path)
        except Unfit as unfit:
            raise ColumnsError(f"the rows for `{pred}` have {unfit}") from None
    if not missing:
        return result
    is_flat = all(len(path.keys) == 1 and not path.to_list for path in paths)
    if is_flat and len(missing) == len(paths) == len(schema):
        return [nested.column(schema, i) for i in range(len(paths))]
    columns = " and ".join(f"`{path}`" for path in missing)
    have = ", ".join(f"`{f}`" for f in schema.names) or "none"
    raise ColumnsError(f"the rows for `{pred}` lack {columns}; their columns are {have}")


# ------------------------------------------------------------------------- rows of DataFrames


@frozen
class Columns:
    """The fields of a row are columns of a DataFrame: x0, x1, …"""

    held: tuple[DataType, ...]
    told: tuple[Type | None, ...]  # the types that these were told to be; None: it may be any
    units: Mapping[int, str]  # of the times and durations
    has_elements: bool = False  # rows are elements; where there is no list, one says so

    @staticmethod
    def of(
        frame: DataFrame,
        picked: Sequence[Field],
        place: str = "''",
        *more: str,
        units: Mapping[Keys, tuple[Type, str]] = _NO_UNITS,
    ) -> Part:
        """Some columns of a DataFrame, and more by which the place of a row can be said. `units`:
        of numbers that are times or durations, and what they count."""
        rows = frame.selectExpr("*", *more)
        also = rows.columns[len(frame.columns) :]
        # Names that SQL takes, whatever the names were.
        rows = rows.toDF(*(f"y{i}" for i in range(len(frame.columns))), *also)
        if list_sql := next((field.list_sql for field in picked if field.list_sql), ""):
            rows = _elements(rows, list_sql)
            also.append(_NO_LIST)
        found = rows.selectExpr(*(f"{field.sql} AS x{i}" for i, field in enumerate(picked)), *also)
        types = [field.dataType for field in found.schema.fields[: len(picked)]]
        fields = (plain(f"x{i}", type_) for i, type_ in enumerate(types))
        rows = found.selectExpr(*(f"{field} AS x{i}" for i, field in enumerate(fields)), *also)
        held = tuple(field.dataType for field in rows.schema.fields[: len(types)])
        told = [type_of(type_) for type_ in types]
        counted = {i: "us" for i, t in enumerate(told) if t in (Type.TIME, Type.DURATION)}
        for i, field in enumerate(picked):
            if field.keys in units:
                told[i], counted[i] = units[field.keys]
        return Part(rows, Columns(held, tuple(told), counted, bool(list_sql)), place)

    def is_missing(self, field: str) -> str:
        return f"{field} IS NULL"

    @property
    def has_list(self) -> bool:
        return False  # rows are elements already

    def split(self, records: DataFrame) -> DataFrame:
        sent = [f"'f{i}', {_sent(f'x{i}', held)}" for i, held in enumerate(self.held)]
        sent += [f"'{_NO_LIST}', {_NO_LIST}"] if self.has_elements else []
        sound = f"NOT {_NO_LIST}" if self.has_elements else "TRUE"
        return records.selectExpr(
            "*", f"{sound} AS {SOUND}", f"NAMED_STRUCT({', '.join(sent)}) AS {RECORD}"
        )

    def read(self, records: pa.Array, checker: Checker) -> Checked:
        fields = records.flatten()
        columns = map(_received, fields[: len(self.held)], self.held)
        check = checker.row_of(self.units)
        rows = zip(*columns, strict=True)
        if not self.has_elements:
            return ((check(row),) for row in rows)
        reason = missing_list(checker.names, checker.paths)
        return (
            (Reject(checker.pred, row, reason) if is_without else check(row),)
            for row, is_without in zip(rows, fields[-1].to_pylist(), strict=True)
        )


def _elements(rows: DataFrame, list_sql: str) -> DataFrame:
    """A row for each element of a list; one without it where the list is missing."""
    some = rows.where(f"{list_sql} IS NULL OR SIZE({list_sql}) > 0")
    is_missing = f"{list_sql} IS NULL AS {_NO_LIST}"
    return some.selectExpr("*", is_missing, f"EXPLODE_OUTER({list_sql}) AS {ELEMENT}")


def _sent(field: str, held: DataType) -> str:
    """A field as Arrow can take it; texts as bytes, since they need not be UTF-8."""
    if isinstance(held, VariantType):
        field = f"TO_JSON({field})"
    return f"CAST({field} AS BINARY)" if is_text(held) or isinstance(held, VariantType) else field


def _received(column: pa.Array, held: DataType) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if not (is_text(held) or isinstance(held, VariantType)):
        return values
    texts = (v if v is None else v.decode(errors="surrogateescape") for v in values)
    return list(texts) if is_text(held) else [t if t is None else json.loads(t) for t in texts]
