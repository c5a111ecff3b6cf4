"""Fields in fields of a DataFrame, and the elements of its lists, in SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen
from pyspark.sql.types import ArrayType, DataType, LongType, StructField, StructType

from streamlog.runtime.nested import Listing, Shape, Struct, steps
from streamlog.runtime.values import Unfit
from streamlog.syntax.data_path import DataPath

ELEMENT = "element"

Keys = tuple[str, ...]


@frozen
class Field:
    """`sql`: of a DataFrame whose columns are y0, y1, …, and in which an `element` is one of the
    list."""

    keys: Keys  # the names on the way to it, as the data write them
    sql: str
    list_sql: str = ""  # of the list that has it in its elements


def shape_of(type_: DataType) -> Shape:
    if isinstance(type_, StructType):
        return Struct(tuple((f.name, shape_of(f.dataType)) for f in type_.fields))
    return Listing(shape_of(type_.elementType)) if isinstance(type_, ArrayType) else None


def field(schema: StructType, path: DataPath) -> Field:
    """Where a path leads to."""
    shape = shape_of(schema)
    assert isinstance(shape, Struct)
    return _field(schema, steps(shape, path), path.to_list)


def column(schema: StructType, position: int) -> Field:
    return _field(schema, (position,), 0)


def _field(schema: StructType, at: Sequence[int], to_list: int) -> Field:
    keys: list[str] = []
    sql = list_sql = ""
    here: DataType = schema
    for number, step in enumerate(at, 1):
        assert isinstance(here, StructType)
        name = here.fields[step].name
        keys.append(name)
        if number > 1 and [n.casefold() for n in here.names].count(name.casefold()) > 1:
            raise Unfit(f"several columns `{name}` where `{'.'.join(keys)}` is")
        quoted = f"`{name.replace('`', '``')}`"
        sql = f"{sql}.{quoted}" if sql else f"y{step}"
        here = here.fields[step].dataType
        if number == to_list:
            assert isinstance(here, ArrayType)
            sql, list_sql, here = ELEMENT, sql, here.elementType
    return Field(tuple(keys), sql, list_sql)


def numbers_in(type_: DataType, keys: Keys = ()) -> Iterator[Keys]:
    """The paths of all numbers of 64 bits; lists have no name of their own."""
    if isinstance(type_, StructType):
        for one in type_.fields:
            yield from numbers_in(one.dataType, (*keys, one.name))
    elif isinstance(type_, ArrayType):
        yield from numbers_in(type_.elementType, keys)
    elif isinstance(type_, LongType):
        yield keys


def nested_schema(columns: Sequence[tuple[DataPath, DataType]]) -> StructType:
    """Of data in which these paths lead to values of these types."""
    fields: dict[str, list[tuple[DataPath, DataType]]] = {}
    for path, type_ in columns:
        fields.setdefault(path.keys[0], []).append((path, type_))
    found = StructType()
    for name, here in fields.items():
        inner = [
            (DataPath(path.keys[1:], max(path.to_list - 1, 0)), type_)
            for path, type_ in here
            if len(path.keys) > 1
        ]
        type_ = nested_schema(inner) if inner else here[0][1]
        if here[0][0].to_list == 1:
            type_ = ArrayType(type_)
        found = found.add(StructField(name, type_))
    return found
