"""Answers to files, exactly once: what was written after the last commit can be undone.

CSV and JSON Lines are appended to, and their length is what a checkpoint remembers. A Parquet
file cannot be appended to, so with checkpoints it is a folder with one part a commit.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from streamlog.runtime.executor import Row
from streamlog.runtime.sources import CSV, PARQUET, SourceError, format_of
from streamlog.runtime.values import written
from streamlog.syntax.ast import Type

Types = Sequence[Type | None]


class Sink(Protocol):
    """Where rows go."""

    def write(self, rows: Iterable[Row]) -> None:
        """Add rows."""

    def commit(self) -> int:
        """Make what was written durable; returns the mark to resume at."""

    def close(self) -> None:
        """Finish the file."""


def open_sink(
    path: Path, names: Sequence[str], types: Types, *, parts: bool = False, mark: int | None = None
) -> Sink:
    """A sink for rows with these columns. `parts`: the file must be able to resume; `mark`: go
    on there, without what was written behind it."""
    kind = format_of(path) if path.suffix or not path.is_dir() else PARQUET
    try:
        if kind == PARQUET:
            return _Parts(path, names, types, mark) if parts else _Parquet(path, names, types)
        return _Text(path, names, types, kind, mark)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SourceError(f"'{path}' cannot be written: {reason}") from None


def csv_lines(rows: Iterable[Row], types: Types) -> str:
    """Rows as lines of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    careful = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        fields = [_plain(v, t) for v, t in zip(row, types, strict=True)]
        # Not every version of Python quotes a carriage return by itself.
        lone = any(v.__class__ is str and "\r" in v for v in fields)
        (careful if lone else writer).writerow(fields)
    return text.getvalue()


def _plain(value: Any, type_: Type | None) -> Any:
    if value.__class__ is bool:
        return "true" if value else "false"
    return written(value, type_)


def json_object(row: Row, names: Sequence[str], types: Types) -> dict[str, Any]:
    """A row as JSON has it."""
    return {n: written(v, t) for n, v, t in zip(names, row, types, strict=True)}


class _Text:
    def __init__(
        self, path: Path, names: Sequence[str], types: Types, kind: str, mark: int | None
    ) -> None:
        self.names, self.types, self.kind = names, types, kind
        if mark is None:
            self.file: BinaryIO = path.open("wb")
            if kind == CSV:
                self.file.write(csv_lines([tuple(names)], [None] * len(names)).encode())
            return
        self.file = path.open("r+b")
        size = self.file.seek(0, os.SEEK_END)
        if size < mark:
            self.file.close()
            raise SourceError(f"'{path}' has {size} bytes, and {mark} were written to it before")
        self.file.truncate(mark)
        self.file.seek(mark)

    def write(self, rows: Iterable[Row]) -> None:
        if self.kind == CSV:
            self.file.write(csv_lines(rows, self.types).encode())
            return
        for row in rows:
            text = json.dumps(json_object(row, self.names, self.types), ensure_ascii=False)
            self.file.write(f"{text}\n".encode())

    def commit(self) -> int:
        self.file.flush()
        os.fsync(self.file.fileno())
        return self.file.tell()

    def close(self) -> None:
        self.file.close()


class _Parquet:
    """One file, complete when it is closed."""

    def __init__(self, path: Path, names: Sequence[str], types: Types) -> None:
        self.path, self.names, self.types = path, names, types
        self.writer: Any = None
        path.open("wb").close()  # so that one cannot write there is known before the work is done

    def write(self, rows: Iterable[Row]) -> None:
        rows = list(rows)
        if rows:
            self._start(rows).write_table(self._table(rows))

    def _table(self, rows: Sequence[Row]) -> Any:
        from streamlog.runtime.parquet import arrow_table

        return arrow_table(self.writer.schema, rows)

    def _start(self, rows: Sequence[Row]) -> Any:
        if self.writer is None:
            from pyarrow import parquet

            from streamlog.runtime.parquet import arrow_schema

            schema = arrow_schema(self.names, self.types, rows)
            self.writer = parquet.ParquetWriter(self.path, schema)
        return self.writer

    def commit(self) -> int:
        return 0  # nothing of it can be read before the end

    def close(self) -> None:
        self._start(()).close()


class _Parts:
    """A folder of files, one a commit. An unfinished part has another name."""

    def __init__(self, path: Path, names: Sequence[str], types: Types, mark: int | None) -> None:
        self.path, self.names, self.types = path, names, types
        self.rows: list[Row] = []
        self.schema: Any = None
        path.mkdir(parents=True, exist_ok=True)
        self.count = mark or 0
        for part in path.iterdir():
            match = re.fullmatch(r"part-([0-9]{6})\.parquet(\.new)?", part.name)
            if mark is None and not (match and match[2]):
                raise SourceError(f"the folder '{path}' is not empty")
            if match and (match[2] or int(match[1]) > self.count):
                part.unlink()

    def write(self, rows: Iterable[Row]) -> None:
        self.rows += rows

    def commit(self) -> int:
        if self.rows:
            from pyarrow import parquet

            from streamlog.runtime.parquet import arrow_schema, arrow_table

            self.schema = self.schema or arrow_schema(self.names, self.types, self.rows)
            part = self.path / f"part-{self.count + 1:06}.parquet"
            unfinished = part.with_name(f"{part.name}.new")
            with unfinished.open("wb") as file:
                parquet.write_table(arrow_table(self.schema, self.rows), file)
                file.flush()
                os.fsync(file.fileno())
            unfinished.rename(part)
            self.count, self.rows = self.count + 1, []
        return self.count

    def close(self) -> None:
        self.commit()
