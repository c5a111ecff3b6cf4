"""Answers of Spark to files that read as those of the local engine (`runtime.sinks`).

A file of this machine is there whole or not at all. Elsewhere (`hdfs://…`), what Spark's own
writers leave is what there is.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession

from streamlog.runtime.arrow_values import with_none
from streamlog.runtime.data_files import CSV, JSON_LINES, PARQUET, SourceError, format_of_output
from streamlog.runtime.ingest import surface
from streamlog.runtime.sinks import csv_lines, open_sink
from streamlog.spark.files import Files
from streamlog.spark.format_sql import duration, iso
from streamlog.spark.session import is_local
from streamlog.spark.tables import is_table, put
from streamlog.spark.topics import SCHEME, send
from streamlog.spark.values import in_calendar, let, text
from streamlog.syntax.ast import Type

Names = Sequence[str]
Types = Sequence[Type]

_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"


def write(
    rows: DataFrame,
    names: Names,
    types: Types,
    path: str | Path,
    format: str | None = None,
    batch_id: int | None = None,
    by: Sequence[str] = (),
) -> None:
    """A relation's rows (`c0`, `c1`, …), in their order by value, as csv, jsonl or parquet.

    Without a batch, `path` becomes one file if its name says of which kind, and else a folder
    with one. With one, the file is in the folder `batch=<id>` of `path`: written again it is
    replaced, and a batch without rows leaves none. A topic gets the rows as JSON, in that order.
    Partitioned `by` columns, `path` is a folder of Parquet files with a folder for each value.
    """
    names, types = surface(names, types)
    if by:
        _write_partitioned(shown(rows, names, types), str(path), by, batch_id)
        return
    # In one task: a sort over several would first look at the rows, and so compute them twice.
    ordered = rows.repartition(1).sortWithinPartitions(*rows.columns)
    if str(path).startswith(SCHEME):
        send(ordered.selectExpr(f"{_json(names, types)} AS value"), str(path))
        return
    if is_table(str(path)):
        put(as_numbers(rows, names, types), str(path), batch_id)
        return
    target = Path(path)
    kind = format or format_of_output(target)
    if "://" in str(path):
        _write_elsewhere(shown(rows, names, types), str(path), kind, batch_id)
        return
    if batch_id is not None:
        target = target / f"batch={batch_id}" / f"part.{kind}"
    elif not target.suffix:
        target = target / f"part.{kind}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            raise SourceError(f"'{target}' cannot be written: it is a folder")
        with _beside(target) as folder:
            made = _part if is_local(rows.sparkSession) else _collected
            whole, is_empty = made(ordered, names, types, kind, folder)
            if batch_id is None or not is_empty:
                whole.replace(target)
            else:
                target.unlink(missing_ok=True)
                target.parent.rmdir()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SourceError(f"'{target}' cannot be written: {reason}") from None


def check_empty(spark: SparkSession, path: str) -> None:
    """What another run has left in a folder of partitions would be mixed with the new answers."""
    if Files(spark, path).names(""):
        raise SourceError(
            f"'{path}' is not empty, and a partitioned output is written to a new folder"
        )


def _write_partitioned(
    frame: DataFrame, path: str, by: Sequence[str], batch_id: int | None
) -> None:
    """By Spark's own writer: on this machine beside its place first, elsewhere in place."""
    ordered = frame.repartition(1).sortWithinPartitions(*(f"`{c}`" for c in by))
    if batch_id is None:
        check_empty(frame.sparkSession, path)
    with _microseconds(frame):
        if "://" in path:
            place = path if batch_id is None else f"{path.rstrip('/')}/batch={batch_id}"
            ordered.write.mode("overwrite").partitionBy(*by).parquet(place)
            return
        target = Path(path) if batch_id is None else Path(path, f"batch={batch_id}")
        if not is_local(frame.sparkSession):
            raise SourceError(
                f"'{path}' is on this machine, and a partitioned output is written by the workers: "
                "give a place that all of them see as file://… or hdfs://…"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        with _beside(target) as folder:
            ordered.write.partitionBy(*by).parquet(str(folder / "parts"))
            for extra in [*(folder / "parts").rglob(".*"), folder / "parts" / "_SUCCESS"]:
                extra.unlink(missing_ok=True)
            if target.exists():
                shutil.rmtree(target)
            if any((folder / "parts").iterdir()) or batch_id is None:
                (folder / "parts").replace(target)


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A hidden folder on the same disk, so that what is made there can be moved in one step."""
    root = target.parent if target.parent.name[:6] != "batch=" else target.parent.parent
    folder = Path(mkdtemp(prefix=f".{target.name}-", dir=root)).absolute()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _part(
    rows: DataFrame, names: Names, types: Types, kind: str, folder: Path
) -> tuple[Path, bool]:
    """The rows as a file, written by the task that has them, and whether there are none."""
    parts = folder / "parts"
    if kind == PARQUET:
        with _microseconds(rows):
            shown(rows, names, types).write.parquet(str(parts))
        (part,) = parts.glob("part-*.parquet")
        return part, not parquet.read_metadata(part).num_rows
    line = _csv(types) if kind == CSV else _json(names, types)
    rows.selectExpr(f"{line} AS value").write.text(str(parts), lineSep="\n")
    whole = folder / "whole"
    whole.write_text(
        csv_lines([tuple(names)], [None] * len(names)) if kind == CSV else "",
        encoding="utf-8",
        newline="",
    )
    found = [p for p in parts.glob("part-*") if p.stat().st_size]
    with whole.open("ab") as out:
        for part in found:
            with part.open("rb") as lines:
                shutil.copyfileobj(lines, out)
        out.flush()
        os.fsync(out.fileno())
    return whole, not found


def _collected(
    rows: DataFrame, names: Names, types: Types, kind: str, folder: Path
) -> tuple[Path, bool]:
    """Workers have disks of their own: the rows come here, and the local engine's sink has them."""
    table = rows.toArrow()
    values = [column.to_pylist() for column in table.columns]
    found = with_none(zip(*values, strict=True))
    whole = folder / f"whole.{kind}"
    sink = open_sink(whole, names, types)
    sink.write(found)
    sink.commit()
    sink.close()
    return whole, not table.num_rows


@contextmanager
def _microseconds(rows: DataFrame) -> Iterator[None]:
    """Times in Parquet as the format has them, and not as it had them once."""
    conf = rows.sparkSession.conf
    before = conf.get(_TIMESTAMPS)
    conf.set(_TIMESTAMPS, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        conf.set(_TIMESTAMPS, before or "INT96")


def _write_elsewhere(frame: DataFrame, path: str, kind: str, batch_id: int | None) -> None:
    """Folders, by Spark's own writers: a batch is replaced, but not in one step."""
    place = path if batch_id is None else f"{path.rstrip('/')}/batch={batch_id}"
    writer = frame.write.mode("overwrite")
    if kind == PARQUET:
        writer.parquet(place)
    elif kind == JSON_LINES:
        writer.json(place)
    else:
        writer.option("header", True).option("escape", '"').csv(place)


def as_numbers(rows: DataFrame, names: Names, types: Types) -> DataFrame:
    """As `shown`, but durations are numbers of microseconds: few tables know intervals."""
    plain = [Type.INT if type_ is Type.DURATION else type_ for type_ in types]
    return shown(rows, names, plain).repartition(1)


def shown(rows: DataFrame, names: Names, types: Types) -> DataFrame:
    """A relation under its columns' names: times are timestamps, durations intervals."""
    names, types = surface(names, types)
    sql = {Type.TIME: "TIMESTAMP_MICROS({})", Type.DURATION: "{} * INTERVAL '0.000001' SECOND"}
    return rows.selectExpr(
        *(
            sql.get(type_, "{}").format(f"c{i}") + f" AS `{name}`"
            for i, (name, type_) in enumerate(zip(names, types, strict=True))
        )
    )


# ------------------------------------------------------------------------------------ lines


def _csv(types: Types) -> str:
    """A row as Python's writer has it, with quotes where they are needed."""
    plain = [f"COALESCE({_text(f'c{i}', t)}, '')" for i, t in enumerate(types)]
    strings = [f for f, t in zip(plain, types, strict=True) if t is Type.STRING or len(plain) == 1]

    def quoted(field: str) -> str:
        return f"""CONCAT('"', REPLACE({field}, '"', '""'), '"')"""

    alone = " OR {f} = ''" if len(types) == 1 else ""
    needed = [
        f"""IF({f} RLIKE '[,"\\n]'{alone.format(f=f)}, {quoted(f)}, {f})""" if f in strings else f
        for f in plain
    ]
    line = f"CONCAT_WS(',', {', '.join(needed)})"
    if not strings:
        return line
    careful = f"CONCAT_WS(',', {', '.join(map(quoted, plain))})"
    returns = " OR ".join(f"CONTAINS({f}, '\\r')" for f in strings)
    return f"IF({returns}, {careful}, {line})"


def _json(names: Names, types: Types) -> str:
    """A row as Python's `json` has it."""
    pieces = []
    for i, (name, type_) in enumerate(zip(names, types, strict=True)):
        value = _text(f"c{i}", type_)
        if type_ is Type.STRING:
            value = rf"REGEXP_EXTRACT(TO_JSON(ARRAY({value})), r'(?s)\A\[(.*)\]\z', 1)"
        elif type_ is Type.DURATION:
            value = f"""CONCAT('"', {value}, '"')"""
        elif type_ is Type.TIME:
            value = f"""IF({in_calendar(f"c{i}")}, CONCAT('"', {value}, '"'), {value})"""
        key = json.dumps(name, ensure_ascii=False)
        value = f"COALESCE({value}, 'null')"
        pieces += [text(f"{', ' if i else '{'}{key}: "), value]
    return f"CONCAT({', '.join([*pieces, text('}')])})"


def _text(value: str, type_: Type) -> str:
    match type_:
        case Type.TIME:
            return iso(value)
        case Type.DURATION:
            return duration(value)
        case Type.FLOAT:
            return _float(value)
        case Type.STRING:
            return value
        case Type.INT | Type.BOOL:
            return f"CAST({value} AS STRING)"


def _float(value: str) -> str:
    """A float as Python writes it: Java's text, with exponents from other sizes on.

    It reads back as the same float, but Java has other digits than Python for a few, more often
    before Java 19.
    """
    exponent = "CAST(REGEXP_EXTRACT(s, 'E(.*)', 1) AS INT)"
    digits = r"REGEXP_REPLACE(REGEXP_EXTRACT(s, '(.*)E', 1), r'[.]0\z', '')"
    power = f"LPAD(CAST(ABS({exponent}) AS STRING), GREATEST(2, LENGTH(ABS({exponent}))), '0')"
    with_exponent = f"CONCAT({digits}, 'e', IF({exponent} < 0, '-', '+'), {power})"
    size = f"ABS({value})"
    exact = "RTRIM('0', CAST(CAST(s AS DECIMAL(38, 21)) AS STRING))"
    written_out = f"CONCAT({exact}, IF(ENDSWITH({exact}, '.'), '0', ''))"
    return let(
        "s",
        f"CAST({value} AS STRING)",
        f"CASE WHEN NOT CONTAINS(s, 'E') THEN s"
        f" WHEN {size} >= 1e-4D AND {size} < 1e16D THEN {written_out} ELSE {with_exponent} END",
    )
