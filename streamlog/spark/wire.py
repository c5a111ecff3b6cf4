"""Rows of many tables in one DataFrame, so that one job can carry all of them.

A row of `table` has each of its values in the column for its position and kind: `i0` for a whole
number, a time or a duration in the first place, `s1` for a string in the second. So rows of any
arity and type fit, mixed too, and Arrow keeps the many empty columns for almost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from streamlog.analysis.timelines import View
from streamlog.runtime.arrow_values import array
from streamlog.runtime.executor import Row
from streamlog.syntax.ast import Type
from streamlog.syntax.nothing import NONE, Nothing

TABLE = "table"
PART = "part"  # which kernel a row is for, where there are several

_NONE = "n"  # true where a value is missing
_KINDS: Mapping[str, tuple[type, T.AtomicType, pa.DataType]] = {
    "i": (int, T.LongType(), pa.int64()),
    "f": (float, T.DoubleType(), pa.float64()),
    "s": (str, T.StringType(), pa.string()),
    "b": (bool, T.BooleanType(), pa.bool_()),
    _NONE: (Nothing, T.BooleanType(), pa.bool_()),
}
_KIND_OF = {python: kind for kind, (python, _, _) in _KINDS.items()}
KIND: Mapping[Type, str] = {
    Type.INT: "i",
    Type.TIME: "i",
    Type.DURATION: "i",
    Type.FLOAT: "f",
    Type.STRING: "s",
    Type.BOOL: "b",
}
Types = Sequence[Type]
NO_COLUMNS = "TRUE AS c0"


def _slots(width: int) -> Iterable[tuple[str, T.AtomicType, pa.DataType]]:
    for position in range(width):
        for kind, (_, spark, arrow) in _KINDS.items():
            yield f"{kind}{position}", spark, arrow


def schema(width: int) -> T.StructType:
    fields = [T.StructField(PART, T.IntegerType()), T.StructField(TABLE, T.StringType())]
    return T.StructType([*fields, *(T.StructField(n, t) for n, t, _ in _slots(width))])


def columns(types: Types) -> T.StructType:
    """What a relation of these types looks like: `c0`, `c1`, … Spark takes rows without columns
    for one and the same, so where there are none `c0` is true."""
    kinds = [_KINDS[KIND[t]][1] for t in types] or [T.BooleanType()]
    return T.StructType([T.StructField(f"c{i}", kind) for i, kind in enumerate(kinds)])


# --------------------------------------------------------------------- on the driver


def packed(
    rows: DataFrame, table: str, types: Types, width: int, also: Sequence[str] = ()
) -> DataFrame:
    """A relation's rows (`c0`, `c1`, …, and perhaps the kernel they are for) as a table's.
    Columns in `also` stay as they are."""
    have = {f"{KIND[t]}{i}": f"c{i}" for i, t in enumerate(types)}
    have |= {f"{_NONE}{i}": f"IF(c{i} IS NULL, TRUE, NULL)" for i in range(len(types))}
    values = [
        f"{have[n]} AS {n}" if n in have else f"CAST(NULL AS {t.simpleString()}) AS {n}"
        for n, t, _ in _slots(width)
    ]
    number = f"CAST({PART if PART in rows.columns else 0} AS INT) AS {PART}"
    # One expression each for Spark to read: a call for every column would take longer.
    return rows.selectExpr(number, f"'{table}' AS `{TABLE}`", *values, *also)


def unpacked(wire: DataFrame, table: str | None, types: Types) -> DataFrame:
    """The relation of a table's rows; None: of all rows, which are of one table."""
    rows = wire if table is None else wire.where(F.col(TABLE) == table)
    return rows.selectExpr(*[f"{KIND[t]}{i} AS c{i}" for i, t in enumerate(types)] or [NO_COLUMNS])


def viewed(rows: DataFrame, view: View) -> DataFrame:
    """A stream's rows on another of its timelines."""
    return rows.selectExpr(*(f"c{p} AS c{at}" for at, p in enumerate(view.order)))


def cast(rows: DataFrame, types: Types) -> DataFrame:
    """A query's rows as a relation of these types."""
    fields = columns(types).fields
    return rows.selectExpr(*(f"CAST({f.name} AS {f.dataType.simpleString()})" for f in fields))


def relation(rows: Sequence[Row], types: Types) -> pa.Table:
    """Rows as Arrow, with a relation's columns."""
    arrays = [array([row[i] for row in rows], _KINDS[KIND[t]][2]) for i, t in enumerate(types)]
    arrays = arrays or [pa.array([True] * len(rows), pa.bool_())]
    return pa.table(arrays, names=columns(types).names)


# ---------------------------------------------------------------------- in the tasks


def decode(wire: pa.Table) -> dict[str, list[Row]]:
    """The rows of each table."""
    width = max(int(n[1:]) for n in wire.column_names if n not in (PART, TABLE)) + 1
    names = wire.column(TABLE)
    result: dict[str, list[Row]] = {}
    for name in pc.unique(names).to_pylist():
        rows = wire.filter(pc.equal(names, name))
        found: list[list[Any]] = []
        for position in range(width):
            columns = {kind: rows.column(f"{kind}{position}") for kind in _KINDS}
            present = {k: c for k, c in columns.items() if c.null_count < rows.num_rows}
            if not present:
                break
            is_missing = present.pop(_NONE, None) is not None
            values = [column.to_pylist() for column in present.values()]
            if is_missing or len(values) > 1:
                found.append(_mixed(values, rows.num_rows))
            else:
                found += values
        result[name] = list(zip(*found, strict=True)) if found else [()] * rows.num_rows
    return result


def _mixed(columns: list[list[Any]], rows: int) -> list[Any]:
    """Of each row the one value that is there."""
    if not columns:
        return [NONE] * rows
    return [
        next((v for v in values if v is not None), NONE) for values in zip(*columns, strict=True)
    ]


def encode(tables: Mapping[str, Sequence[Row]], part: int, width: int) -> pa.Table:
    return pa.concat_tables(
        [_encoded(name, rows, part, width) for name, rows in tables.items() if rows]
        or [_encoded("", [], part, width)]
    )


def _encoded(name: str, rows: Sequence[Row], part: int, width: int) -> pa.Table:
    arity = len(rows[0]) if rows else 0
    assert arity <= width, f"{name} has {arity} values a row, where {width} fit"
    arrays: dict[str, pa.Array] = {}
    for position in range(arity):
        values = [row[position] for row in rows]
        kinds = set(map(type, values))
        for python in kinds:
            kind = _KIND_OF[python]
            mine = values if len(kinds) == 1 else [v if type(v) is python else None for v in values]
            held: list[Any] = mine
            if kind == _NONE:
                held = [None if v is None else True for v in mine]
            arrays[f"{kind}{position}"] = pa.array(held, _KINDS[kind][2])
    slots = list(_slots(width))
    empty = {t: pa.nulls(len(rows), t) for t in {t for _, _, t in slots}}
    return pa.table(
        {
            PART: pa.repeat(pa.scalar(part, pa.int32()), len(rows)),
            TABLE: pa.repeat(pa.scalar(name, pa.string()), len(rows)),
            **{n: arrays.get(n, empty[t]) for n, _, t in slots},
        }
    )
