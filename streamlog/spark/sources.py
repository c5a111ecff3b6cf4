"""Files, folders and topics to records, for `ingest`.

`read` is for what is there, `read_stream` for what is still coming. No row is lost.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePath
from urllib.parse import unquote, urlsplit

from attrs import evolve, frozen
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as spark_types

from streamlog.compiler import Program
from streamlog.runtime.data_files import (
    JSON_LINES,
    PARQUET,
    SourceError,
    data_files,
    delimiter_of,
    fixed_part,
    is_compressed,
    is_pattern,
    literal,
    one_kind,
    readable,
    unzipped_head,
)
from streamlog.runtime.ingest import paths_of, positions_of
from streamlog.runtime.sources import Layout, by_position, records
from streamlog.runtime.values import Unfit, shown
from streamlog.spark import nested
from streamlog.spark.files import Files
from streamlog.spark.nested import Field, Keys
from streamlog.spark.numbering import FILE
from streamlog.spark.parquet import Units, parquet
from streamlog.spark.records import Columns, Part, Records
from streamlog.spark.tables import is_table, rows_of
from streamlog.spark.text_lines import LINE, CsvLines, JsonLines
from streamlog.spark.topics import PLACE, SCHEME, messages
from streamlog.spark.values import text
from streamlog.syntax.ast import Type
from streamlog.syntax.data_path import DataPath

_HELD: dict[Type, spark_types.DataType] = {
    Type.INT: spark_types.LongType(),
    Type.FLOAT: spark_types.DoubleType(),
    Type.STRING: spark_types.StringType(),
    Type.BOOL: spark_types.BooleanType(),
    Type.TIME: spark_types.TimestampType(),
    Type.DURATION: spark_types.LongType(),
}


def refuse_row_numbers(program: Program, pred: str) -> None:
    """Spark does not number the rows of files."""
    for column in program.schema[pred].columns:
        if column.is_row:
            raise SourceError(
                f"column `{column.name}` of `{pred}` is the number of a row in its file, which "
                "Spark does not know: use --engine local, or have the number in the data"
            )


def read(
    spark: SparkSession,
    path: str | Path,
    pred: str,
    program: Program,
    *,
    header: bool = True,
    called: Path | None = None,
) -> Records:
    """The rows of a file, or of all the files of one kind in a folder, on this machine or
    wherever Spark can read (`hdfs://…`); or what a topic has by now (`topics`).

    The columns of each file are found by the names in it: files with other columns, or the same
    in another order, may lie in one folder. Without a `header`, columns count by position. A file
    may be `called` otherwise in messages.
    """
    refuse_row_numbers(program, pred)
    if str(path).startswith(SCHEME):
        return _messages(messages(spark, str(path), stream=False), paths_of(program, pred))
    if is_table(str(path)):
        return Records.of(rows_of(spark, str(path), stream=False), paths_of(program, pred), pred)
    files = _files(spark, str(path))
    folder = _Folder(str(path), _kind(files, path), pred, program, header, called)
    return folder.read(spark, files)


def _messages(frame: DataFrame, paths: Sequence[DataPath]) -> Records:
    return Records((Part(frame, JsonLines(paths), PLACE),))


@frozen
class _Folder:
    """Files of one kind, and what for. A single file is a folder of itself."""

    place: str
    kind: str
    pred: str
    program: Program
    header: bool
    called: Path | None = None  # in messages
    arriving: bool = False  # rows have no times of arrival yet

    @property
    def paths(self) -> tuple[DataPath, ...]:
        return paths_of(self.program, self.pred, arriving=self.arriving)

    @property
    def timed(self) -> list[Keys]:
        """The columns of times and durations."""
        types = self.program.types
        held = positions_of(self.program.schema[self.pred], self.arriving)
        found = zip(held, self.paths, strict=False)  # without columns, data have one
        timed = (Type.TIME, Type.DURATION)
        return [path.keys for i, path in found if types.column(self.pred, i) in timed]

    def shown(self) -> str:
        """The path of a file in SQL, from Spark's name for it, as the local engine has it."""
        if self.called is not None:
            return text(str(self.called))
        file, folder = FILE, ""
        if "://" not in self.place:
            path = Path(self.place)
            if is_pattern(path):
                return _below(fixed_part(path), file)
            folder = str((path if path.is_dir() else path.parent) / "_").removesuffix("_")
            file = f"SUBSTRING_INDEX({file}, '/', -1)"
        return f"CONCAT({text(folder)}, {_decoded(file)})"

    def read(self, spark: SparkSession, files: Sequence[_File]) -> Records:
        paths = tuple(f.place for f in files)
        if self.kind == PARQUET:
            return self.parquet(*parquet(spark, paths, self.timed))
        if self.kind == JSON_LINES:
            lines = spark.read.text(literal(paths), lineSep="\n")
            return Records((Part(lines, JsonLines(self.paths), self.shown(), paths),))
        # Files whose first lines are the same are read together.
        alike: dict[tuple[int, str, str], list[_File]] = {}
        for file in files:
            number, line = _first_line(file) if self.header else (0, "")
            if line or not self.header:
                key = number, line, delimiter_of(Path(file.place))
                alike.setdefault(key, []).append(file)
        if not alike:  # nothing but empty files
            alike[0, _header(self.paths), ","] = list(files)
        return Records(tuple(self._csv(spark, *key, group) for key, group in alike.items()))

    def _csv(
        self, spark: SparkSession, number: int, line: str, delimiter: str, files: Sequence[_File]
    ) -> Part:
        """The first line of a stream's file is never a row, wherever it stands: a name is not a
        time. So it can be left out by what it says, and Spark's own CSV reader, which is five times
        as slow, is not needed."""
        form = self.csv_form(line, delimiter, files[0].place)
        paths = tuple(f.place for f in files)
        if self.header and not self.program.schema.is_temporal(self.pred):
            reader = spark.read.schema(_one_column(LINE)).options(**_one_field(self.header))
            lines = _lines(reader.csv(literal(paths)))
            return Part(lines, form, self.shown(), paths, number)
        lines = spark.read.text(literal(paths), lineSep="\n")
        if self.header:
            first = line.encode(errors="surrogateescape")
            forms = (
                start + first + end for start in (b"", codecs.BOM_UTF8) for end in (b"", b"\r")
            )
            texts = ", ".join(f"CAST(X'{form.hex()}' AS STRING)" for form in forms)
            lines = lines.where(f"{LINE} NOT IN ({texts})")
        return Part(lines, form, self.shown(), paths, number)

    def csv_form(self, line: str, delimiter: str, path: str) -> CsvLines:
        fields = None
        if self.header:
            _, fields = next(records([line], delimiter))
        return CsvLines(Layout.of(fields, self.paths, self.called or path), delimiter)

    def parquet(self, frame: DataFrame, units: Units) -> Records:
        if self.header:
            picked = [self._field(frame, path) for path in self.paths]
        else:
            by_position(self.place, len(frame.columns), self.paths)
            picked = [nested.column(frame.schema, i) for i in range(len(self.paths))]
        place = f"CONCAT({self.shown()}, ':', row_index + 1)"
        more = f"_metadata.file_path AS {FILE}", "_metadata.row_index"
        return Records((Columns.of(frame, picked, place, *more, units=units),))

    def _field(self, frame: DataFrame, path: DataPath) -> Field:
        try:
            return nested.field(frame.schema, path)
        except Unfit as unfit:
            has = ", ".join(map(shown, frame.columns))
            raise SourceError(f"'{self.place}' has {unfit}; its columns are {has}") from None

    def anew(self, spark: SparkSession, files: Sequence[str]) -> Records:
        """Of a stream's files, some by Spark's names for them."""
        paths = (unquote(urlsplit(f).path) if f.startswith("file:") else unquote(f) for f in files)
        found = self.read(spark, [file for path in paths for file in _files(spark, path)])
        return evolve(found, arriving=self.arriving)


def _decoded(file: str) -> str:
    return f"URL_DECODE(REPLACE({file}, '+', '%2B'))"


def _below(folder: PurePath, file: str) -> str:
    """The path of a file below a folder, which is named as it was given."""
    before = len(str(Path(folder).absolute() / "_")) - 1
    given = str(folder / "_").removesuffix("_")
    path = f"REGEXP_REPLACE({_decoded(file)}, '^file:/+', '/')"
    return f"CONCAT({text(given)}, SUBSTRING({path}, {before + 1}))"


def read_stream(
    spark: SparkSession,
    path: str | Path,
    pred: str,
    program: Program,
    *,
    header: bool = True,
    kind: str | None = None,
    most_files: int | None = None,
) -> Records:
    """The rows of files as they come into a folder; of a topic (`topics`); or of Spark's own
    source for tests, `rate://rows-a-second`.

    `kind` (csv, jsonl, parquet) is for a folder that is empty yet; `most_files` is how many are
    read at a time. All CSV files of a folder need the same first line: Spark fails at another.
    """
    refuse_row_numbers(program, pred)
    paths = paths_of(program, pred, arriving=True)
    place = str(path)
    if place.startswith(SCHEME):
        return _arriving(_messages(messages(spark, place, stream=True), paths))
    if is_table(place):
        return Records.of(rows_of(spark, place, stream=True), paths, pred)
    if place.startswith("rate://"):
        rate = spark.readStream.format("rate").option("rowsPerSecond", place[7:]).load()
        return Records.of(rate, paths, pred)
    if "://" not in place:
        if not (Path(place).is_dir() or is_pattern(Path(place))):
            raise SourceError(
                f"'{path}' is not a folder, and a stream is read from one, or by a pattern"
            )
        place = str(Path(place).absolute())
        if literal([place]) != [place] and (not is_pattern(Path(place)) or _BRACES & {*place}):
            raise SourceError(
                f"'{path}' cannot be read as a stream: Spark takes the special characters in its "
                "name for a pattern of its own"
            )
    files = _files(spark, place)
    kind = kind or (_kind(files, path) if files else None)
    if kind is None:
        raise SourceError(
            f"'{path}' is empty: say what kind of files will come, csv, jsonl or parquet (--kind)"
        )
    folder = _Folder(str(path), kind, pred, program, header, arriving=True)
    reader = spark.readStream
    if most_files is not None:
        reader = reader.option("maxFilesPerTrigger", most_files)
    if kind == PARQUET:
        if not files:
            declared = _declared(program, pred, paths)
            return _arriving(folder.parquet(reader.schema(declared).parquet(place), {}))
        found, units = parquet(spark, [file.place for file in files], folder.timed)
        return _arriving(folder.parquet(reader.schema(found.schema).parquet(place), units))
    if kind == JSON_LINES:
        lines = _with_file(reader.text(place, lineSep="\n"))
        return _arriving(Records((Part(lines, JsonLines(paths), FILE),), folder.anew))
    first = _first_line(files[0])[1] if files and header else ""
    line = first or _header(paths)
    form = folder.csv_form(line, delimiter_of(Path(files[0].place)) if files else ",", place)
    # Named like the whole first line, which Spark compares.
    as_bytes = line.encode(errors="surrogateescape").decode(_BYTES)
    schema, options = _one_column(as_bytes if header else LINE), _one_field(header)
    options["enforceSchema"] = "false"
    del options["lineSep"]  # else the end of a line would be part of the name
    lines = _lines(_with_file(reader.schema(schema).options(**options).csv(place)))
    return _arriving(Records((Part(lines, form, FILE),), folder.anew))


def _arriving(records: Records) -> Records:
    return evolve(records, arriving=True)


def _with_file(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("*", f"_metadata.file_path AS {FILE}")


# -------------------------------------------------------------------------------------- CSV

_BRACES = {*"{}\\^"}  # which mean nothing in patterns elsewhere
_BYTES, _CORRUPT = "ISO-8859-1", "_corrupt"


def _one_field(header: bool) -> dict[str, str]:
    """Options of Spark's own reader: each line is one field."""
    return {
        "header": "true" if header else "false",
        "sep": "\u0001",
        "quote": "",
        "encoding": _BYTES,
        "lineSep": "\n",
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _CORRUPT,
        "maxColumns": "1000000",
    }


def _one_column(name: str) -> spark_types.StructType:
    field = spark_types.StringType()
    return spark_types.StructType().add(name, field).add(_CORRUPT, field)


def _lines(split: DataFrame) -> DataFrame:
    """Lines that were read as CSV of one column, with the bytes that they have; most are ASCII.
    Spark passes over those with nothing but white space."""
    rows = split.toDF(LINE, _CORRUPT, *split.columns[2:])
    rows = rows.withColumn(LINE, F.coalesce(_CORRUPT, LINE, F.lit("")))
    is_ascii = f"OCTET_LENGTH({LINE}) = LENGTH({LINE})"
    encoded = f"CAST(ENCODE({LINE}, '{_BYTES}') AS STRING)"
    return rows.withColumn(LINE, F.expr(f"IF({is_ascii}, {LINE}, {encoded})")).drop(_CORRUPT)


def _first_line(file: _File) -> tuple[int, str]:
    """Of those with anything in it, and its number."""
    with readable(file.place):
        head = file.head()
        if is_compressed(Path(file.place)):
            head = unzipped_head(head, _HEAD)
    begin = head.decode("utf-8-sig", errors="surrogateescape")
    lines = enumerate((line.rstrip("\r\n") for line in begin.split("\n")), 1)
    return next(((number, line) for number, line in lines if line.strip()), (0, ""))


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
    return one_kind([Path(file.place) for file in found], path)


def _header(paths: Sequence[DataPath]) -> str:
    return ",".join(path.flat for path in paths)


def _declared(program: Program, pred: str, paths: Sequence[DataPath]) -> spark_types.StructType:
    types = program.types
    columns = positions_of(program.schema[pred], arriving=True)
    held = [_HELD[types.column(pred, i) or Type.STRING] for i in columns] or [_HELD[Type.BOOL]]
    return nested.nested_schema(list(zip(paths, held, strict=True)))
