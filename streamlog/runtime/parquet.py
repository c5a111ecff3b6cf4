"""Parquet files in and out. The only part of the runtime's files that needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlog.runtime.ingest import HOLDING, Checker, Unreadable
from streamlog.syntax.ast import Type, Value

if TYPE_CHECKING:
    from streamlog.runtime.executor import Row
    from streamlog.runtime.sources import Input, Rows

_PER_MICROSECOND = {"s": 1_000_000, "ms": 1_000, "us": 1}


def read_parquet(source: Input, checker: Checker) -> Rows:
    """The rows of a file."""
    import pyarrow as pa
    from pyarrow import parquet

    from streamlog.runtime.sources import SourceError

    path = source.path
    try:
        with parquet.ParquetFile(path) as file:
            yield from _rows(file, path, source.header, checker)
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"'{path}' is not a Parquet file that can be read: {reason}") from None


def _rows(file: Any, path: Path, header: bool, checker: Checker) -> Rows:
    from streamlog.runtime.sources import SourceError, placed, positions

    names = file.schema_arrow.names
    if header:
        wanted = positions(checker.names, names, path)
    else:
        wanted = list(range(len(checker.names)))
        if len(names) != len(wanted):
            raise SourceError(f"'{path}' has {len(names)} columns where {len(wanted)} are wanted")
    number = 0
    check = checker.row
    for batch in file.iter_batches():
        columns = [list(_values(batch.column(i))) for i in wanted]
        for raw in zip(*columns, strict=True) if columns else [()] * batch.num_rows:
            number += 1
            bad = next((v for v in raw if v.__class__ is Unreadable), None)
            row = check(raw if bad is None else Unreadable(raw, bad.reason))
            yield row if row.__class__ is tuple else placed(row, path, number)


def _values(column: Any) -> Iterator[Any]:
    """A column's values; times and durations as microseconds, which is what rows hold."""
    import pyarrow as pa

    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    if not (pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)):
        return iter(column.to_pylist())
    unit = column.type.unit
    whole = column.cast(pa.int64()).to_pylist()
    if unit == "ns":
        return (_from_nanoseconds(v) for v in whole)
    factor = _PER_MICROSECOND[unit]
    return (None if v is None else v * factor for v in whole)


def _from_nanoseconds(value: int | None) -> Any:
    if value is None or value % 1000 == 0:
        return None if value is None else value // 1000
    return Unreadable(value, f"the time {value} ns is finer than a microsecond")


# ---------------------------------------------------------------------------------- writing


def arrow_schema(names: Sequence[str], types: Sequence[Type | None], rows: Sequence[Row]) -> Any:
    """The columns of a file; a type that the program leaves open is that of the first rows."""
    import pyarrow as pa

    known = {
        Type.INT: pa.int64(),
        Type.FLOAT: pa.float64(),
        Type.STRING: pa.string(),
        Type.BOOL: pa.bool_(),
        Type.TIME: pa.timestamp("us", tz="UTC"),
        Type.DURATION: pa.duration("us"),
    }
    fields = []
    for i, (name, type_) in enumerate(zip(names, types, strict=True)):
        settled = type_ or _type_of({row[i].__class__ for row in rows})
        fields.append(pa.field(name, known[settled]))
    return pa.schema(fields)


def _type_of(classes: set[type]) -> Type:
    python = {int: Type.INT, float: Type.FLOAT, bool: Type.BOOL}
    return python.get(next(iter(classes)), Type.STRING) if len(classes) == 1 else Type.STRING


def arrow_table(schema: Any, rows: Sequence[Row]) -> Any:
    """Rows as columns of the schema."""
    import pyarrow as pa

    columns = []
    for i, column in enumerate(schema):
        values: list[Value] = [(row or HOLDING)[i] for row in rows]
        if pa.types.is_string(column.type):
            values = [v if isinstance(v, str) else str(v) for v in values]
        columns.append(pa.array(values, type=column.type))
    return pa.Table.from_arrays(columns, schema=schema)
