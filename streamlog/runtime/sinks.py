"""Answers to files, exactly once: what was written after the last commit can be undone.

CSV and JSON Lines are appended to, and their length and checksum are what a checkpoint remembers. A
Parquet file cannot be appended to, so with checkpoints it is a folder with one part a commit. While
a file or folder with checkpoints is open, no other run can write to it.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias

from streamlog.runtime.data_files import CSV, PARQUET, SourceError, format_of_output
from streamlog.runtime.executor import Row
from streamlog.runtime.ingest import HOLDING
from streamlog.runtime.lock import hold
from streamlog.runtime.prefix import Prefix, problem
from streamlog.runtime.values import written
from streamlog.syntax.ast import Type
from streamlog.syntax.nothing import NONE

Types = Sequence[Type | None]
Mark: TypeAlias = Any  # JSON: how far a sink had got
BEGINNING: Mark = 0


class Sink(Protocol):
    """Where rows go."""

    def write(self, rows: Iterable[Row]) -> None:
        """Add rows."""

    def flush(self) -> None:
        """Let others see what was written, as far as that is possible before `commit`."""

    def commit(self) -> Mark:
        """Make what was written durable; returns the mark to resume at."""

    def close(self) -> None:
        """Finish the file; a resumable one has what was committed."""


def open_sink(path: Path, names: Sequence[str], types: Types) -> Sink:
    """A sink for rows with these columns: a new file."""
    kind = format_of_output(path)
    try:
        if kind == PARQUET:
            return _Parquet(path, names, types)
        return TextSink(path.open("wb"), names, types, kind)
    except OSError as error:
        raise _unwritable(path, error) from None


def resumable_sink(
    path: Path, names: Sequence[str], types: Types, mark: Mark | None = None
) -> Sink:
    """A sink that can go on at a `mark`, without what was written behind it; None for one that is
    new, where nothing may be yet."""
    kind = format_of_output(path)
    try:
        if kind == PARQUET:
            return _Parts(path, names, types, mark)
        return _resumed(path, names, types, kind, mark)
    except OSError as error:
        raise _unwritable(path, error) from None


def missing_output(path: Path, mark: Mark) -> str | None:
    """What of a finished sink is not there any more."""
    if format_of_output(path) == PARQUET:
        lost = next((p for p in _parts(path, mark) if not p.exists()), None)
        return None if lost is None else f"'{lost}' is missing, and was written before"
    return problem(path, mark, "written to") if mark else None


def _unwritable(path: Path, error: OSError) -> SourceError:
    reason = (error.strerror or str(error)).lower()
    return SourceError(f"'{path}' cannot be written: {reason}")


def _not_empty(path: Path) -> SourceError:
    return SourceError(
        f"'{path}' is not empty, and was not written by this run: write somewhere else, or remove "
        "it first"
    )


_WRITTEN_AS_THEY_ARE = frozenset({Type.INT, Type.FLOAT, Type.STRING})


def csv_lines(rows: Iterable[Row], types: Types) -> str:
    """Rows as lines of a CSV file."""
    rows = list(rows)
    if _WRITTEN_AS_THEY_ARE.issuperset(types):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        if "\r" not in (lines := text.getvalue()):
            return lines
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    careful = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        fields = [_plain(v, t) for v, t in zip(row or HOLDING, types, strict=True)]
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
    return {
        n: None if v is NONE else written(v, t)
        for n, v, t in zip(names, row or HOLDING, types, strict=True)
    }


class TextSink:
    def __init__(
        self,
        file: BinaryIO,
        names: Sequence[str],
        types: Types,
        kind: str,
        written: Prefix | None = None,
    ) -> None:
        self.file, self.names, self.types, self.kind = file, names, types, kind
        self.written = written or Prefix()

    def write(self, rows: Iterable[Row]) -> None:
        self._head()
        if self.kind == CSV:
            self._add(csv_lines(rows, self.types))
            return
        objects = (json_object(row, self.names, self.types) for row in rows)
        self._add("".join(f"{json.dumps(o, ensure_ascii=False)}\n" for o in objects))

    def write_lines(self, lines: memoryview) -> None:
        """Rows as `csv_lines` would write them, in UTF-8."""
        self._head()
        self._put(lines)

    def _head(self) -> None:
        if self.kind == CSV and not self.written.size:
            self._add(csv_lines([tuple(self.names)], [None] * len(self.names)))

    def _add(self, text: str) -> None:
        self._put(text.encode())

    def _put(self, data: bytes | memoryview) -> None:
        self.file.write(data)
        self.written.add(data)

    def flush(self) -> None:
        self._head()
        self.file.flush()

    def commit(self) -> Mark:
        self.flush()
        if stat.S_ISREG(os.fstat(self.file.fileno()).st_mode):  # not a pipe
            os.fsync(self.file.fileno())
        return self.written.record()

    def close(self) -> None:
        self.file.close()


def _resumed(
    path: Path, names: Sequence[str], types: Types, kind: str, mark: Mark | None
) -> TextSink:
    if mark and (reason := problem(path, mark, "written to")):
        raise SourceError(reason)
    size = mark["bytes"] if mark else 0
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
    try:
        hold(file.fileno(), path)
        if mark is None and file.seek(0, os.SEEK_END):
            raise _not_empty(path)
        file.truncate(size)
        file.seek(size)
    except BaseException:
        file.close()
        raise
    return TextSink(file, names, types, kind, Prefix.of(path, size))


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

    def flush(self) -> None:
        pass

    def commit(self) -> Mark:
        return BEGINNING  # nothing of it can be read before the end

    def close(self) -> None:
        self._start(()).close()


def _parts(path: Path, count: int) -> list[Path]:
    return [path / f"part-{number:06}.parquet" for number in range(1, count + 1)]


class _Parts:
    """A folder of files, one a commit. An unfinished part has another name."""

    def __init__(self, path: Path, names: Sequence[str], types: Types, mark: int | None) -> None:
        self.path, self.names, self.types = path, names, types
        self.rows: list[Row] = []
        self.schema: Any = None
        self.count = mark or 0
        if self.count and (reason := missing_output(path, mark)):
            raise SourceError(reason)
        path.mkdir(parents=True, exist_ok=True)
        self.folder = os.open(path, os.O_RDONLY)
        try:
            hold(self.folder, path)
            for part in path.iterdir():
                match = re.fullmatch(r"part-([0-9]{6})\.parquet(\.new)?", part.name)
                if mark is None and not (match and match[2]):
                    raise _not_empty(path)
                if match and (match[2] or int(match[1]) > self.count):
                    part.unlink()
        except BaseException:
            os.close(self.folder)
            raise

    def write(self, rows: Iterable[Row]) -> None:
        self.rows += rows

    def flush(self) -> None:
        pass  # a part is complete or not there

    def commit(self) -> Mark:
        if self.rows:
            from pyarrow import parquet

            from streamlog.runtime.parquet import arrow_schema, arrow_table

            self.schema = self.schema or arrow_schema(self.names, self.types, self.rows)
            part = _parts(self.path, self.count + 1)[-1]
            unfinished = part.with_name(f"{part.name}.new")
            with unfinished.open("wb") as file:
                parquet.write_table(arrow_table(self.schema, self.rows), file)
                file.flush()
                os.fsync(file.fileno())
            unfinished.rename(part)
            os.fsync(self.folder)
            self.count, self.rows = self.count + 1, []
        return self.count

    def close(self) -> None:
        os.close(self.folder)
