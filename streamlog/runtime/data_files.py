"""Which files an input has: one, those of a folder, or those that a pattern matches; and what kind
of file each is, by its name."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path, PurePath
from typing import BinaryIO

CSV, JSON_LINES, PARQUET = "csv", "jsonl", "parquet"
FORMATS = {
    ".csv": CSV,
    ".tsv": CSV,
    ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES,
    ".parquet": PARQUET,
    ".pq": PARQUET,
}
# Places on the command line that are standard input or output, and the format there.
STDOUT = "-"  # in CSV, unless --format asks for JSON
STANDARD = {"-": CSV, "csv:-": CSV, "jsonl:-": JSON_LINES}
STDIN = Path("<stdin>")  # in messages
_GZIP = ".gz"
_KINDS = ".csv, .jsonl or .parquet"


class SourceError(Exception):
    """A file cannot be used."""


def format_of(path: Path) -> str:
    """What kind of file this is, by its name; a folder without such a name is one of Parquet."""
    kind = FORMATS.get(_suffix(path))
    if kind == PARQUET and is_compressed(path):
        raise SourceError(f"'{path}' cannot be used: Parquet files are compressed by themselves")
    if kind is not None or path.is_dir():
        return kind or PARQUET
    raise SourceError(f"what kind of file is '{path}'? The name should end in {_KINDS}")


def format_of_output(path: Path) -> str:
    """What is written there: a folder that exists becomes one of Parquet."""
    if is_compressed(path):
        raise SourceError(f"'{path}' cannot be written: answers are not compressed")
    return format_of(path) if path.suffix or not path.is_dir() else PARQUET


def _suffix(path: PurePath) -> str:
    return (path.with_suffix("") if is_compressed(path) else path).suffix.lower()


def is_data_file(path: PurePath) -> bool:
    """By its name."""
    return _suffix(path) in FORMATS


def stem(path: PurePath) -> str:
    """The name without what says of which kind the file is."""
    return (path.with_suffix("") if is_compressed(path) else path).stem


def is_compressed(path: PurePath) -> bool:
    return path.suffix.lower() == _GZIP


def delimiter_of(path: Path) -> str:
    return "\t" if _suffix(path) == ".tsv" else ","


# ------------------------------------------------------------------------------ which files


def data_files(path: Path) -> list[Path]:
    """The file, or those of a folder, or of what a pattern matches, that are not hidden, by
    name."""
    if is_pattern(path):
        found = (file for match in matches(path) for file in _files(match))
        return [file for file in found if not is_hidden(file)]
    if not path.exists():
        raise SourceError(f"there is no file '{path}'")
    return _files(path)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(p for p in path.iterdir() if p.is_file() and not is_hidden(p))


def is_hidden(path: PurePath) -> bool:
    return path.name[0] in "._"


def is_pattern(path: Path) -> bool:
    """Whether it stands for all files that match it. A file of that very name comes first."""
    return has_magic(str(path)) and not path.exists()


def matches(pattern: Path) -> list[Path]:
    """Files and folders, by name."""
    # `**` is like `*`, as for Hadoop.
    return [Path(found) for found in sorted(glob(str(pattern)))]  # noqa: PTH207


def fixed_part(pattern: PurePath) -> PurePath:
    """The folder below which all files lie that a pattern matches."""
    return next(p for p in pattern.parents if not has_magic(str(p)))


def can_match(pattern: PurePath, path: PurePath) -> bool:
    """Whether what a pattern matches can lie at a path, above it or below it."""
    pairs = zip(pattern.parts, path.parts, strict=False)
    return all(fnmatchcase(part, wanted) for wanted, part in pairs)


def one_kind(found: Collection[Path], path: Path | str) -> str:
    """The kind of the files of a folder or a pattern, of which there must be some."""
    if not found:
        is_all = not has_magic(str(path)) or Path(path).exists()
        nothing = f"the folder '{path}' has no {_KINDS} files"
        raise SourceError(nothing if is_all else f"no file matches '{path}'")
    kinds = {format_of(file) for file in found}
    if len(kinds) > 1:
        raise SourceError(f"the files in '{path}' are of several kinds: {', '.join(sorted(kinds))}")
    return kinds.pop()


def literal(paths: Iterable[str]) -> list[str]:
    """Paths for Hadoop, which takes each for a pattern."""
    return [re.sub(r"[][*?{}\\^]", r"\\\g<0>", path) for path in paths]


# ------------------------------------------------------------------------------- compressed


class Unzipped(gzip.GzipFile):
    """What a compressed file contains; closed together with the file."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(fileobj=file)
        self._file = file

    def close(self) -> None:
        super().close()
        self._file.close()


def unzipped_head(data: bytes, size: int) -> bytes:
    """How a compressed file begins, from how it begins as it lies there."""
    try:
        return zlib.decompressobj(wbits=31).decompress(data, size)
    except zlib.error as error:
        raise gzip.BadGzipFile(_reason(error)) from None


@contextmanager
def readable(path: Path | str) -> Iterator[None]:
    """Within, what is wrong with a file becomes a `SourceError`."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"'{path}' cannot be read: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "the compressed data end too early"
    if isinstance(error, zlib.error | gzip.BadGzipFile):
        return "it is not a gzip file, or it is damaged"
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return reason.lower()
