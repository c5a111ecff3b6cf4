"""Rows as they come: of files that grow, of files that appear, and of standard input.

A file is read up to its last complete line. What was read must stay as it is: a file that is
truncated, replaced or removed is an error, since rows would be lost or read twice.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from pathlib import Path

from streamlog.runtime.data_files import SourceError, readable
from streamlog.runtime.ingest import Checker
from streamlog.runtime.prefix import Prefix
from streamlog.runtime.sources import ENCODING, ERRORS, Arriving, Input, read_file, rows_of

_BLOCK = 1 << 20
_KNOWN_AGAIN = 256  # bytes at the end of what was read, compared before more is read


def follow(source: Input, checker: Checker, skip: int, prefix: Prefix) -> Arriving:
    """The rows of an input after the first `skip`, for as long as there may be more; None where
    there are no more at present. `prefix` becomes what has been read of it."""
    rows: Arriving
    if source.form is not None:
        rows = rows_of(_lines(_standard_input), source, checker)
    elif source.is_whole:
        rows = _whole(source, checker, prefix)
    else:
        prefix.reset()
        rows = rows_of(_lines(_Growing(source.path, prefix).more), source, checker)
    for skipped in range(skip):
        if next(rows, None) is None:
            raise SourceError(
                f"'{source.path}' has only {skipped} rows, and {skip} were read from it before"
            )
    yield from rows


def _lines(more: Callable[[], bytes | None]) -> Iterator[str]:
    """Complete lines; "" where there are no more at present. At the end the last line counts as
    complete."""
    rest, encoding = b"", ENCODING
    while (data := more()) is not None:
        if not data:
            yield ""
            continue
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield (line + b"\n").decode(encoding, ERRORS)
            encoding = "utf-8"
    if rest:
        yield rest.decode(encoding, ERRORS)


def _standard_input() -> bytes | None:
    """What has come; b"": nothing has; None: nothing will."""
    ready, _, _ = select.select([0], [], [], 0)
    return (os.read(0, _BLOCK) or None) if ready else b""


class _Growing:
    """A file that only its end is added to."""

    def __init__(self, path: Path, prefix: Prefix) -> None:
        self._path, self._prefix = path, prefix
        self._identity: tuple[int, int] | None = None
        self._last = b""

    def more(self) -> bytes:
        path, size = self._path, self._prefix.size
        with readable(path):
            try:
                about = path.stat()
            except FileNotFoundError:
                raise SourceError(f"'{path}' is gone, and is still being followed") from None
            identity = about.st_dev, about.st_ino
            self._identity = self._identity or identity
            if identity != self._identity:
                raise SourceError(f"'{path}' was replaced by another file while it was followed")
            if about.st_size < size:
                raise SourceError(
                    f"'{path}' was truncated: it has {about.st_size:,} bytes, and {size:,} were "
                    "read from it"
                )
            if about.st_size == size:
                return b""
            with path.open("rb") as file:
                file.seek(size - len(self._last))
                if file.read(len(self._last)) != self._last:
                    raise SourceError(f"'{path}' has changed before its byte {size:,}")
                data = file.read(_BLOCK)
        self._prefix.add(data)
        self._last = (self._last + data)[-_KNOWN_AGAIN:]
        return data


def _whole(source: Input, checker: Checker, prefix: Prefix) -> Arriving:
    """A file that is complete when it appears: Parquet, or compressed."""
    path = source.path
    with readable(path):
        before = _state(path)
        yield from read_file(source, checker, prefix=prefix)
        while True:
            if _state(path) != before:
                raise SourceError(
                    f"'{path}' has changed since it was read: such files do not grow, so new rows "
                    "belong into a new file"
                )
            yield None


def _state(path: Path) -> tuple[int, int, int]:
    about = path.stat()
    return about.st_ino, about.st_size, about.st_mtime_ns
