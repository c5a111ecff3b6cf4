"""Parquet files whose times or durations Spark does not know: those of pandas, in nanoseconds.

Spark can read a time in nanoseconds only as a number, and takes every duration for one. What the
number counts is in the files' own description of their columns.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType

from streamlog.runtime.data_files import SourceError, literal
from streamlog.syntax.ast import Type

Units: TypeAlias = Mapping[str, tuple[Type, str]]

_NANOS_AS_NUMBERS = "spark.sql.legacy.parquet.nanosAsLong"
_ARROW = "ARROW:schema"


def parquet(
    spark: SparkSession, paths: Sequence[str], timed: Collection[str]
) -> tuple[DataFrame, Units]:
    """The rows of files, and which of their numbers are times or durations, in which unit.
    `timed`: the columns that should be. All files have to agree."""
    before = spark.conf.get(_NANOS_AS_NUMBERS)
    spark.conf.set(_NANOS_AS_NUMBERS, "true")
    try:
        frame = spark.read.parquet(*literal(paths))
    finally:
        spark.conf.set(_NANOS_AS_NUMBERS, str(before))
    numbers = {f.name for f in frame.schema.fields if isinstance(f.dataType, LongType)}
    if not numbers:
        return frame, {}
    units = _units(spark, paths[0])
    if units or numbers & {*timed}:
        for path in paths[1:]:
            other = _units(spark, path)
            if differing := [n for n in sorted(numbers) if units.get(n) != other.get(n)]:
                raise SourceError(
                    f"column `{differing[0]}` is of another type in '{path}' than in '{paths[0]}'"
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
    found: dict[str, tuple[Type, str]] = {}
    columns = about.getSchema()
    for i in range(columns.getFieldCount()):
        column = columns.getType(i)
        if "NANOS" in str(column.getLogicalTypeAnnotation()):
            found[column.getName()] = Type.TIME, "ns"
    described = about.getKeyValueMetaData().get(_ARROW)
    if described is not None:
        for field in pa.ipc.read_schema(pa.py_buffer(base64.b64decode(described))):
            if pa.types.is_duration(field.type):
                found[field.name] = Type.DURATION, field.type.unit
    return found
