"""What sources hand over: DataFrames of records, and how a record is read.

A record is a line of CSV or JSON (`lines`), or a row of a DataFrame. A form says in SQL which of
its fields are a predicate's, and reads in Python the records that SQL leaves open.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
from attrs import evolve, frozen
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, VariantType

from streamlog.runtime.executor import Row
from streamlog.runtime.ingest import Checker, Reject
from streamlog.spark.values import is_text, plain, type_of
from streamlog.syntax.ast import Type

# Beside what a DataFrame of records has, `split` adds its fields, x0, x1, …; whether these are
# certain to be the fields; and the record as Python is to read it.
SOUND, RECORD = "sound", "record"

_NO_UNITS: Mapping[str, tuple[Type, str]] = MappingProxyType({})

Checked: TypeAlias = Iterator[Row | Reject | None]  # None: the record is not a row


class ColumnsError(ValueError):
    """A DataFrame's columns are not those of its predicate."""


class Form(Protocol):
    @property
    def held(self) -> tuple[DataType, ...]:
        """The types of the fields."""

    @property
    def units(self) -> Mapping[int, str]:
        """What the fields that are known to be times or durations count."""

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

    @staticmethod
    def of(frame: DataFrame, names: Sequence[str], pred: str) -> Records:
        return Records((Columns.of(frame, matched(names, frame.columns, pred)),))

    @property
    def frame(self) -> DataFrame:
        return reduce(DataFrame.unionAll, (part.frame for part in self.parts))

    def map(self, change: Callable[[DataFrame], DataFrame]) -> Records:
        parts = (evolve(part, frame=change(part.frame)) for part in self.parts)
        return evolve(self, parts=tuple(parts))


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


# ------------------------------------------------------------------------- rows of DataFrames


@frozen
class Columns:
    """The fields of a row are columns of a DataFrame: x0, x1, …"""

    held: tuple[DataType, ...]
    told: tuple[Type | None, ...]  # the types that these were told to be; None: it may be any
    units: Mapping[int, str]  # of the times and durations

    @staticmethod
    def of(
        frame: DataFrame,
        picked: Sequence[int],
        place: str = "''",
        *more: str,
        units: Mapping[str, tuple[Type, str]] = _NO_UNITS,
    ) -> Part:
        """Some columns of a DataFrame, and more by which the place of a row can be said. `units`:
        the names of columns of numbers that are times or durations, and what they count."""
        types = [frame.schema.fields[i].dataType for i in picked]
        rows = frame.selectExpr("*", *more)
        also = rows.columns[len(frame.columns) :]
        # Names that SQL takes, whatever the names were.
        rows = rows.toDF(*(f"y{i}" for i in range(len(frame.columns))), *also)
        fields = (plain(f"y{c}", t) for c, t in zip(picked, types, strict=True))
        rows = rows.selectExpr(*(f"{field} AS x{i}" for i, field in enumerate(fields)), *also)
        held = tuple(field.dataType for field in rows.schema.fields[: len(types)])
        told = [type_of(type_) for type_ in types]
        counted = {i: "us" for i, t in enumerate(told) if t in (Type.TIME, Type.DURATION)}
        for i, column in enumerate(picked):
            if (name := frame.columns[column]) in units:
                told[i], counted[i] = units[name]
        return Part(rows, Columns(held, tuple(told), counted), place)

    def split(self, records: DataFrame) -> DataFrame:
        sent = (f"'f{i}', {_sent(f'x{i}', held)}" for i, held in enumerate(self.held))
        return records.selectExpr(
            "*", f"TRUE AS {SOUND}", f"NAMED_STRUCT({', '.join(sent)}) AS {RECORD}"
        )

    def read(self, records: pa.Array, checker: Checker) -> Checked:
        columns = map(_received, records.flatten(), self.held)
        return map(checker.row_of(self.units), zip(*columns, strict=True))


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
