"""Parquet files in and out. The only part of the runtime's files that needs pyarrow."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from streamlog.runtime.ingest import HOLDING, Checker, Reject
from streamlog.runtime.nested import Listing, Shape, Struct, missing_list, steps
from streamlog.runtime.values import Unfit, shown
from streamlog.syntax.ast import Type, Value
from streamlog.syntax.data_path import DataPath
from streamlog.syntax.nothing import Nothing

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


def rows_at(
    source: Input, checker: Checker, numbers: Sequence[int]
) -> Iterator[tuple[int, Row | Reject]]:
    """Some rows of a file without lists, by their numbers, which count from 1 and ascend."""
    from pyarrow import parquet

    from streamlog.runtime.sources import placed

    with parquet.ParquetFile(source.path) as file:
        places, fields = _picked(file, source.path, source.header, checker)
        check, before = checker.row_of(_units(places, fields)), 0
        for batch in file.iter_batches():
            wanted = numbers[bisect_right(numbers, before) :]
            wanted = wanted[: bisect_right(wanted, before + batch.num_rows)]
            if wanted:
                _, columns, _ = _flat(batch.take([n - before - 1 for n in wanted]), fields)
                for number, raw in zip(
                    wanted, zip(*map(_values, columns), strict=True), strict=True
                ):
                    row = check(checker.numbered(raw, number))
                    yield number, placed(row, source.path, number)
            before += batch.num_rows


def flat_columns(source: Input, checker: Checker) -> list[int] | None:
    """Which column of a file each of a predicate is; None: they are not columns of it, or what
    they count is not said by Parquet itself."""
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetFile(source.path) as file:
        _, fields = _picked(file, source.path, source.header, checker)
    for field in fields:
        if len(field.steps) > 1 or field.in_list is not None or pa.types.is_duration(field.type):
            return None
    return [field.steps[0] for field in fields]


def _picked(
    file: Any, path: Path, header: bool, checker: Checker
) -> tuple[list[int], list[_Field]]:
    """The columns that are in a file, and where."""
    places = [i for i in range(len(checker.paths)) if i != checker.number]
    return places, _fields(file.schema_arrow, path, header, [checker.paths[i] for i in places])


def _units(places: Sequence[int], fields: Sequence[_Field]) -> dict[int, str]:
    typed = zip(places, fields, strict=True)
    return {i: unit for i, field in typed if (unit := _unit(field.type))}


def _rows(file: Any, path: Path, header: bool, checker: Checker) -> Rows:
    from streamlog.runtime.sources import placed

    places, fields = _picked(file, path, header, checker)
    units = _units(places, fields)
    before = 0
    check = checker.row_of(units)
    no_list = missing_list(checker.names, checker.paths)
    for batch in file.iter_batches():
        records, columns, without = _flat(batch, fields)
        rows = zip(*map(_values, columns), strict=True) if columns else [()] * batch.num_rows
        for number, raw in zip(records, rows, strict=True):
            if number in without:
                row: Row | Reject = Reject(checker.pred, raw, no_list)
            else:
                row = check(checker.numbered(raw, before + number + 1))
            yield row if row.__class__ is tuple else placed(row, path, before + number + 1)
        before += batch.num_rows


@frozen
class _Field:
    """Which field of which field has a column; if it is in a list, which one of its elements."""

    steps: tuple[int, ...]
    in_list: tuple[int, ...] | None
    type: Any


def _fields(schema: Any, path: Path, header: bool, wanted: Sequence[DataPath]) -> list[_Field]:
    from streamlog.runtime.sources import SourceError, by_position

    if not header:
        by_position(path, len(schema.names), wanted)
        return [_Field((i,), None, schema.field(i).type) for i in range(len(wanted))]
    shape = Struct(tuple((field.name, _shape(field.type)) for field in schema))
    found = []
    for one in wanted:
        try:
            at = steps(shape, one)
        except Unfit as unfit:
            has = ", ".join(map(shown, shape.names))
            raise SourceError(f"'{path}' has {unfit}; its columns are {has}") from None
        type_ = schema.field(at[0]).type
        for number, step in enumerate(at[1:], 1):
            type_ = type_.value_type if number == one.to_list else type_
            type_ = type_.field(step).type
        type_ = type_.value_type if one.to_list == len(at) else type_
        split = one.to_list or len(at)
        found.append(_Field(at[:split], at[split:] if one.to_list else None, type_))
    return found


def _shape(type_: Any) -> Shape:
    import pyarrow as pa

    if pa.types.is_struct(type_):
        return Struct(tuple((field.name, _shape(field.type)) for field in type_))
    kinds = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
    return Listing(_shape(type_.value_type)) if any(is_it(type_) for is_it in kinds) else None


def _flat(batch: Any, fields: Sequence[_Field]) -> tuple[Sequence[int], list[Any], Collection[int]]:
    """The columns, and of each row which record it comes from; with a list, a row for each of its
    elements. The records that are `without` the list have one row too."""
    import pyarrow as pa
    from pyarrow import compute as pc

    def leaf(array: Any, at: Sequence[int]) -> Any:
        return pc.struct_field(array, list(at)) if at else array

    found = [leaf(batch.column(f.steps[0]), f.steps[1:]) for f in fields]
    place = next((i for i, f in enumerate(fields) if f.in_list is not None), None)
    if place is None:
        return range(batch.num_rows), found, ()
    lengths = pc.list_value_length(found[place]).to_pylist()
    records = [n for n, size in enumerate(lengths) for _ in range(1 if size is None else size)]
    following = count()
    elements = pa.array(
        [None if lengths[n] is None else next(following) for n in records], pa.int64()
    )
    columns = []
    for field, array in zip(fields, found, strict=True):
        if field.in_list is None:
            columns.append(array.take(pa.array(records, pa.int64())))
        else:
            columns.append(leaf(pc.list_flatten(array), field.in_list).take(elements))
    return records, columns, {n for n, size in enumerate(lengths) if size is None}


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
        settled = type_ or _type_of({row[i].__class__ for row in rows} - {Nothing})
        fields.append(pa.field(name, known[settled]))
    return pa.schema(fields)


def _type_of(classes: set[type]) -> Type:
    python = {int: Type.INT, float: Type.FLOAT, bool: Type.BOOL}
    return python.get(next(iter(classes)), Type.STRING) if len(classes) == 1 else Type.STRING


def arrow_table(schema: Any, rows: Sequence[Row]) -> Any:
    """Rows as columns of the schema."""
    import pyarrow as pa

    from streamlog.runtime.arrow_values import array

    columns = []
    for i, column in enumerate(schema):
        values: list[Value] = [(row or HOLDING)[i] for row in rows]
        if pa.types.is_string(column.type):
            values = [v if isinstance(v, str | Nothing) else str(v) for v in values]
        columns.append(array(values, column.type))
    return pa.Table.from_arrays(columns, schema=schema)
