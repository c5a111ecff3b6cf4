"""Parquet files whose times or durations Spark does not know: those of pandas, in nanoseconds.

Spark can read a time in nanoseconds only as a number, and takes every duration for one. What the
number counts is in the files' own description of their columns.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from streamlog.runtime.data_files import SourceError, literal
from streamlog.spark.nested import Keys, numbers_in
from streamlog.syntax.ast import Type
from streamlog.syntax.data_path import path_text

Units: TypeAlias = Mapping[Keys, tuple[Type, str]]

_NANOS_AS_NUMBERS = "spark.sql.legacy.parquet.nanosAsLong"
_ARROW = "ARROW:schema"


def parquet(
    spark: SparkSession, paths: Sequence[str], timed: Collection[Keys]
) -> tuple[DataFrame, Units]:
    """The rows of files, and which of their numbers are times or durations, in which unit.
    `timed`: the columns that should be. All files have to agree."""
    before = spark.conf.get(_NANOS_AS_NUMBERS)
    spark.conf.set(_NANOS_AS_NUMBERS, "true")
    try:
        frame = spark.read.parquet(*literal(paths))
    except AnalysisException as error:
        if error.getCondition() != "COLUMN_ALREADY_EXISTS":
            raise
        name = (error.getMessageParameters() or {}).get("columnName", "").strip("`")
        raise SourceError(
            f"'{paths[0]}' has several columns `{name}` that differ in case alone: "
            "--conf spark.sql.caseSensitive=true tells them apart"
        ) from None
    finally:
        spark.conf.set(_NANOS_AS_NUMBERS, str(before))
    numbers = {*numbers_in(frame.schema)}
    if not numbers:
        return frame, {}
    units = _units(spark, paths[0])
    if units or numbers & {*timed}:
        for path in paths[1:]:
            other = _units(spark, path)
            if differing := [n for n in sorted(numbers) if units.get(n) != other.get(n)]:
                raise SourceError(
                    f"column `{path_text(differing[0])}` is of another type in '{path}' "
                    f"than in '{paths[0]}'"
                )
    return frame, {name: unit for name, unit in units.items() if name in numbers}


def _units(spark: SparkSession, path: str) -> Units:
    java: Any = spark._jvm
    hadoop = java.org.apache.parquet.hadoop
    settings = spark._jsparkSession.sessionState().newHadoopConf()
    place = java.org.apache.hadoop.fs.Path(path)
    file = hadoop.ParquetFileReader.open(hadoop.util.HadoopInputFile.fromPath(place, settings))
    try:
        about = file.getFileMetaData()
    finally:
        file.close()
    found: dict[Keys, tuple[Type, str]] = {}
    found |= dict.fromkeys(_nanos(about.getSchema()), (Type.TIME, "ns"))
    described = about.getKeyValueMetaData().get(_ARROW)
    if described is not None:
        found |= _durations(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(described))))
    return found


def _nanos(group: Any, keys: Keys = ()) -> Iterator[Keys]:
    """The paths of times in nanoseconds, in Parquet's own description."""
    for i in range(group.getFieldCount()):
        column = group.getType(i)
        yield from _nanos_in(column, (*keys, column.getName()))


def _nanos_in(column: Any, keys: Keys) -> Iterator[Keys]:
    said = str(column.getLogicalTypeAnnotation())
    if column.isPrimitive():
        if "NANOS" in said:
            yield keys
    elif said == "LIST":
        # A group that is repeated, with the element in it; in old files, the element itself.
        inner = column.asGroupType().getType(0)
        is_group = not inner.isPrimitive() and inner.asGroupType().getFieldCount() == 1
        yield from _nanos_in(inner.asGroupType().getType(0) if is_group else inner, keys)
    else:
        yield from _nanos(column.asGroupType(), keys)


def _durations(fields: Iterable[Any], keys: Keys = ()) -> dict[Keys, tuple[Type, str]]:
    found: dict[Keys, tuple[Type, str]] = {}
    for field in fields:
        type_ = field.type
        if pa.types.is_list(type_) or pa.types.is_large_list(type_):
            type_ = type_.value_type
        if pa.types.is_struct(type_):
            found |= _durations(type_, (*keys, field.name))
        elif pa.types.is_duration(type_):
            found[(*keys, field.name)] = Type.DURATION, type_.unit
    return found
