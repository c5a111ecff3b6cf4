"""Files, folders and topics to DataFrames, for `ingest.checked`.

`read` is for what is there, `read_stream` for what is still coming. Both return a DataFrame and
whether its fields are text. No row is lost: what cannot be read is in the column `_corrupt`.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from attrs import frozen
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from streamlog.compiler import Program
from streamlog.runtime.ingest import surface
from streamlog.runtime.sources import (
    CSV,
    JSON_LINES,
    PARQUET,
    SourceError,
    data_files,
    one_kind,
    positions,
)
from streamlog.spark.files import Files
from streamlog.spark.ingest import CORRUPT
from streamlog.spark.lines import BYTES, LINE, as_bytes, fields, objects
from streamlog.spark.topics import SCHEME, messages
from streamlog.syntax.ast import Type

_HELD: dict[Type, spark_types.DataType] = {
    Type.INT: spark_types.LongType(),
    Type.FLOAT: spark_types.DoubleType(),
    Type.STRING: spark_types.StringType(),
    Type.BOOL: spark_types.BooleanType(),
    Type.TIME: spark_types.TimestampType(),
    Type.DURATION: spark_types.LongType(),
}


def read(
    spark: SparkSession, path: str | Path, pred: str, program: Program, *, header: bool = True
) -> tuple[DataFrame, bool]:
    """The rows of a file, or of all the files of one kind in a folder, on this machine or
    wherever Spark can read (`hdfs://…`); or what a topic has by now (`topics`).

    The columns of each file are found by the names in it: files with other columns, or the same
    in another order, may lie in one folder. Without a `header`, columns count by position.
    """
    names, _ = surface(program.schema.column_names[pred], ())
    if str(path).startswith(SCHEME):
        return objects(messages(spark, str(path), stream=False), names), False
    files = _files(spark, str(path))
    if not files:
        raise SourceError(f"the folder '{path}' has no .csv, .jsonl or .parquet files")
    kind = _kind(files, path)
    paths = [f.place for f in files]
    if kind == JSON_LINES:
        return objects(spark.read.text(paths, lineSep="\n"), names), False
    if kind == PARQUET:
        frame = spark.read.parquet(*paths)
        if not header:
            return _by_position(frame, names, path), False
        places = positions(names, frame.columns, Path(path))
        plain = frame.toDF(*(f"x{i}" for i in range(len(frame.columns))))
        return plain.selectExpr(
            *(f"x{i} AS `{n}`" for i, n in zip(places, names, strict=True))
        ), False
    temporal = program.schema.is_temporal(pred)
    # Files whose first lines are the same are read together.
    alike: dict[tuple[str, str], list[_File]] = {}
    for file in files:
        line = _first_line(file) if header else ""
        if line or not header:
            alike.setdefault((line, _delimiter(file)), []).append(file)
    found = [
        _Columns.of(line, delimiter, names, group[0].place, header).read(spark, group, temporal)
        for (line, delimiter), group in alike.items()
    ]
    if not found:  # nothing but empty files
        schema = spark_types.StructType(
            [spark_types.StructField(n, spark_types.StringType()) for n in names]
        )
        return spark.createDataFrame([], schema), True
    rows = found[0]
    for more in found[1:]:
        rows = rows.unionAll(more)
    return rows, True


def read_stream(
    spark: SparkSession,
    path: str | Path,
    pred: str,
    program: Program,
    *,
    header: bool = True,
    kind: str | None = None,
    most_files: int | None = None,
) -> tuple[DataFrame, bool]:
    """The rows of files as they come into a folder; of a topic (`topics`); or of Spark's own
    source for tests, `rate://rows-a-second`.

    `kind` (csv, jsonl, parquet) is for a folder that is empty yet; `most_files` is how many are
    read at a time. All CSV files of a folder need the same first line: Spark fails at another.
    """
    names = program.schema.column_names[pred]
    place = str(path)
    if place.startswith(SCHEME):
        return objects(messages(spark, place, stream=True), names), False
    if place.startswith("rate://"):
        rate = spark.readStream.format("rate").option("rowsPerSecond", place[7:]).load()
        return rate, False
    if "://" not in place:
        if not Path(place).is_dir():
            raise SourceError(f"'{path}' is no folder: a stream's files are looked for in one")
        place = str(Path(place).absolute())
    files = _files(spark, place)
    kind = kind or (_kind(files, path) if files else None)
    reader = spark.readStream
    if most_files is not None:
        reader = reader.option("maxFilesPerTrigger", most_files)
    if kind == JSON_LINES:
        return objects(reader.text(place, lineSep="\n"), names), False
    if kind == PARQUET:
        schema = spark.read.parquet(place).schema if files else _declared(program, pred, names)
        frame = reader.schema(schema).parquet(place)
        return (frame if header else _by_position(frame, names, path)), False
    if kind != CSV:
        raise SourceError(
            f"'{path}' is empty: say what kind of files will come, csv, jsonl or parquet (--kind)"
        )
    line = _first_line(files[0]) if files and header else ""
    columns = _Columns.of(line or ",".join(names), _delimiter(*files[:1]), names, place, header)
    # Named like the whole first line, which Spark compares.
    schema, options = _one_column(columns.line if header else LINE), columns.options
    options["enforceSchema"] = "false"
    del options["lineSep"]  # else the end of a line would be part of the name
    return columns.fields(_lines(reader.schema(schema).options(**options).csv(place))), True


# -------------------------------------------------------------------------------------- CSV


@frozen
class _Columns:
    """What a CSV file's first line says."""

    names: Sequence[str]  # of the predicate's columns
    line: str  # the first line, its bytes as characters
    picked: tuple[int, ...]  # where the predicate's columns are
    width: int
    delimiter: str
    header: bool

    @classmethod
    def of(
        cls, line: str, delimiter: str, names: Sequence[str], path: str, header: bool
    ) -> _Columns:
        if not header:
            return cls(names, "", tuple(range(len(names))), len(names), delimiter, header)
        try:
            reader = csv.reader([line], delimiter=delimiter, strict=True)
            found = [f.strip() for f in next(reader)]
        except csv.Error as error:
            raise SourceError(f"the first line of '{path}' names no columns: {error}") from None
        picked = tuple(positions(names, found, Path(path)))
        as_bytes = line.encode(errors="surrogateescape").decode(BYTES)
        return cls(names, as_bytes, picked, len(found), delimiter, header)

    @property
    def options(self) -> dict[str, str]:
        """Each line is one field."""
        return {
            "header": "true" if self.header else "false",
            "sep": "\u0001",
            "quote": "",
            "encoding": BYTES,
            "lineSep": "\n",
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": CORRUPT,
            "maxColumns": "1000000",
        }

    def read(self, spark: SparkSession, files: Sequence[_File], temporal: bool) -> DataFrame:
        """The first line of a stream's file is no row, wherever it stands: names are no times. So
        it can be left out by what it says, and what splits CSV, five times as slow, is not needed.
        """
        paths = [f.place for f in files]
        if self.header and not temporal:
            reader = spark.read.schema(_one_column(LINE)).options(**self.options)
            return self.fields(_lines(reader.csv(paths)))
        lines = spark.read.text(paths, lineSep="\n")
        if self.header:
            first = self.line.encode(BYTES)
            forms = (
                start + first + end for start in (b"", codecs.BOM_UTF8) for end in (b"", b"\r")
            )
            texts = ", ".join(f"CAST(X'{form.hex()}' AS STRING)" for form in forms)
            lines = lines.where(f"value NOT IN ({texts})")
        return self.fields(lines)

    def fields(self, lines: DataFrame) -> DataFrame:
        return fields(lines, self.names, self.picked, self.width, self.delimiter)


def _one_column(name: str) -> spark_types.StructType:
    text = spark_types.StringType()
    return spark_types.StructType().add(name, text).add(CORRUPT, text)


def _lines(split: DataFrame) -> DataFrame:
    """Lines that were read as CSV of one column."""
    whole = split.toDF(LINE, CORRUPT).selectExpr(f"COALESCE({CORRUPT}, {LINE}, '') AS {LINE}")
    return whole.selectExpr(f"{as_bytes(LINE)} AS value")


def _delimiter(*files: _File) -> str:
    return "\t" if files and files[0].place.lower().endswith(".tsv") else ","


def _first_line(file: _File) -> str:
    """Of those with anything in it."""
    try:
        text = file.head().decode("utf-8-sig", errors="surrogateescape")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SourceError(f"'{file.place}' cannot be read: {reason}") from None
    lines = (line.rstrip("\r\n") for line in text.split("\n"))
    return next((line for line in lines if line.strip()), "")


# -------------------------------------------------------------------------------- the others


# No first line is longer.
_HEAD = 1 << 20


@frozen
class _File:
    place: str
    head: Callable[[], bytes]  # how it begins


def _files(spark: SparkSession, place: str) -> list[_File]:
    """The file, or those of a folder that are not hidden, by name."""
    if "://" in place:
        elsewhere = Files(spark, place)
        return [_File(p, partial(elsewhere.head, p, _HEAD)) for p in elsewhere.below()]
    # Java's working folder stays where it was started.
    found = [path.absolute() for path in data_files(Path(place))]
    return [_File(str(path), partial(_head, path)) for path in found]


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


def _kind(found: Sequence[_File], path: str | Path) -> str:
    return one_kind((Path(file.place) for file in found), path)


def _by_position(frame: DataFrame, names: Sequence[str], path: str | Path) -> DataFrame:
    if len(frame.columns) != len(names):
        raise SourceError(
            f"'{path}' has {len(frame.columns)} columns where {len(names)} are wanted"
        )
    return frame.toDF(*names)


def _declared(program: Program, pred: str, names: Sequence[str]) -> spark_types.StructType:
    types = program.types
    held = [_HELD[types.column(pred, i) or Type.STRING] for i in range(len(names))]
    return spark_types.StructType(
        [spark_types.StructField(n, t) for n, t in zip(names, held, strict=True)]
    )
