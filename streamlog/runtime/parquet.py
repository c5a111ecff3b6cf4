"""Parquet files in and out. The only part of the runtime's files that needs pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlog.runtime.ingest import HOLDING, Checker
from streamlog.syntax.ast import Type, Value

if TYPE_CHECKING:
    from streamlog.runtime.executor import Row
    from streamlog.runtime.sources import Input, Rows


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
    types = [file.schema_arrow.field(i).type for i in wanted]
    units = {i: unit for i, type_ in enumerate(types) if (unit := _unit(type_))}
    number = 0
    check = checker.row_of(units)
    for batch in file.iter_batches():
        columns = [_values(batch.column(i)) for i in wanted]
        for raw in zip(*columns, strict=True) if columns else [()] * batch.num_rows:
            number += 1
            row = check(raw)
            yield row if row.__class__ is tuple else placed(row, path, number)


def _unit(type_: Any) -> str | None:
    """In which the values of a column count, if they are times or durations."""
    import pyarrow as pa

    if pa.types.is_date(type_):
        return "ms"
    is_counted = pa.types.is_timestamp(type_) or pa.types.is_duration(type_)
    return str(type_.unit) if is_counted else None


def _values(column: Any) -> list[Any]:
    """Times and durations as numbers of their unit."""
    import pyarrow as pa

    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    if _unit(column.type):
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


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
