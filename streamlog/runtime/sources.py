"""Files to rows: CSV, JSON Lines and Parquet, each row checked, each bad one with its place.

A row that cannot be read is a `Reject` in its place among the others; only a file that cannot be
read at all, or lacks a column, raises `SourceError`.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from attrs import frozen

from streamlog.compiler import Program
from streamlog.runtime.data_files import (
    CSV,
    PARQUET,
    STANDARD,
    STDIN,
    Unzipped,
    data_files,
    delimiter_of,
    format_of,
    is_compressed,
    is_pattern,
    matches,
    one_kind,
    readable,
)
from streamlog.runtime.data_files import SourceError as SourceError  # for all who read files
from streamlog.runtime.executor import Row
from streamlog.runtime.ingest import Check, Checker, Reject, Unreadable
from streamlog.runtime.nested import same_named
from streamlog.runtime.prefix import Prefix, Recorded
from streamlog.runtime.values import shown
from streamlog.syntax.data_path import DataPath, path_text

Rows: TypeAlias = Generator[Row | Reject, None, None]
Arriving: TypeAlias = Generator[Row | Reject | None, None, None]  # None: no more at present

# A quoted field may span lines; a quote that is never closed must not swallow the file.
MOST_LINES = 50
# Python's own limit, 128 KiB, is one for the whole process.
csv.field_size_limit(2**31 - 1)
# Of more files than these, one whose first row is not due is closed until it is.
_OPEN_FILES = 64
# Bytes that are not UTF-8 become lone surrogates, which the check of their row refuses.
ENCODING, ERRORS = "utf-8-sig", "surrogateescape"


@frozen
class Input:
    """A file with rows of an input, a folder of such files, or a pattern; or standard input."""

    pred: str
    path: Path
    header: bool = True  # CSV only: the first line names the columns
    form: str | None = None  # of standard input

    @staticmethod
    def at(pred: str, place: str, header: bool) -> Input:
        """A place on the command line."""
        form = STANDARD.get(place)
        return Input(pred, Path(place) if form is None else STDIN, header, form)

    @property
    def kind(self) -> str:
        return self.form or format_of(self.path)

    @property
    def is_whole(self) -> bool:
        """Whether the file is written once, and does not grow."""
        return self.kind == PARQUET or is_compressed(self.path)

    def parts(self) -> list[Input]:
        """An input for each of the files."""
        if self.form is not None:
            return [self]
        found = data_files(self.path)
        one_kind(found, self.path)
        return [Input(self.pred, path, self.header) for path in found]


def read(source: Input, checker: Checker) -> Rows:
    """The rows of a file in its order; of a folder, file by file."""
    for part in source.parts():
        yield from read_file(part, checker)


def read_file(source: Input, checker: Checker, skip: int = 0, prefix: Prefix | None = None) -> Rows:
    """The rows of a file after the first `skip`; `prefix` becomes what has been read of it."""
    if prefix is not None:
        prefix.reset()
        if source.is_whole:
            prefix.take(source.path)
    with readable(source.path):
        rows: Any  # of a file that is complete, there is always a next one or none
        if source.kind == PARQUET:
            from streamlog.runtime.parquet import read_parquet

            rows = read_parquet(source, checker)
        else:
            rows = _in_lines(source, checker, None if source.is_whole else prefix)
        skipped = sum(1 for _ in islice(rows, skip))
        if skipped < skip:
            raise SourceError(
                f"'{source.path}' has only {skipped} rows, and {skip} were read from it before"
            )
        yield from rows


def _in_lines(source: Input, checker: Checker, prefix: Prefix | None) -> Arriving:
    with _open(source, prefix) as lines:
        yield from rows_of(lines, source, checker)


def rows_of(lines: Iterable[str], source: Input, checker: Checker) -> Arriving:
    """The rows in the lines of CSV or JSON; None where a line is "", which is none: there are no
    more at present."""
    read = _csv_rows if source.kind == CSV else _json_rows
    return read(lines, source, checker)


def read_files(
    sources: Sequence[Input],
    checkers: Mapping[str, Checker],
    skips: Sequence[int],
    prefixes: Sequence[Prefix | None],
) -> list[Rows]:
    """The rows of each of many files, for `merging.merged`."""

    def when_due(source: Input, skip: int, prefix: Prefix | None) -> Rows:
        checker = checkers[source.pred]
        rows = read_file(source, checker, skip, prefix)
        if skip == 0 and source.form is None and len(sources) > _OPEN_FILES:
            first = next(rows, None)
            if first is None:
                return
            rows.close()
            yield first
            rows = read_file(source, checker, 1, prefix)
        yield from rows

    return [when_due(*each) for each in zip(sources, skips, prefixes, strict=True)]


def placed(checked: Row | Reject, path: Path, line: int) -> Row | Reject:
    """A reject with the place of its row."""
    return checked.at(f"{path}:{line}") if isinstance(checked, Reject) else checked


def positions(names: Sequence[str], found: Sequence[str], path: Path | str) -> list[int]:
    """Where each column stands in a file, by name; case matters only where it has to."""
    result = []
    for name in names:
        same = same_named(name, found)
        if len(same) != 1:
            has = f"its columns are {', '.join(map(shown, found))}"
            what = "no column" if not same else "several columns"
            raise SourceError(f"'{path}' has {what} `{name}`; {has}")
        result.append(same[0])
    return result


def by_position(path: Path | str, columns: int, wanted: Sequence[DataPath]) -> None:
    """Check that the columns of a file can be taken in their order."""
    if columns != len(wanted):
        raise SourceError(f"'{path}' has {columns} columns where {len(wanted)} are wanted")
    if nested := [p for p in wanted if len(p.keys) > 1 or p.to_list]:
        raise SourceError(f"'{path}' is read without the names in it, so it has no `{nested[0]}`")


def _open(source: Input, prefix: Prefix | None) -> TextIO:
    buffer: Any = sys.stdin.buffer
    if source.form is None:
        file = source.path.open("rb", buffering=0)
        buffer = io.BufferedReader(file if prefix is None else Recorded(file, prefix), 1 << 16)
    if is_compressed(source.path):
        buffer = Unzipped(buffer)
    return io.TextIOWrapper(buffer, encoding=ENCODING, errors=ERRORS, newline="\n")


# -------------------------------------------------------------------------------------- CSV


@frozen
class Layout:
    """Where the records of a CSV file have the columns of its predicate."""

    header: list[str] | None  # None: they count by position
    picked: tuple[int, ...]
    width: int

    @classmethod
    def of(
        cls, header: list[str] | Unreadable | None, paths: Sequence[DataPath], path: Path | str
    ) -> Layout:
        if lists := [p for p in paths if p.to_list]:
            raise SourceError(
                f"'{path}' is CSV, which has no lists such as `{path_text(lists[0].list_keys)}`: "
                "rows with lists are read from JSON Lines and from Parquet"
            )
        if header is None:
            return cls(None, tuple(range(len(paths))), len(paths))
        if isinstance(header, Unreadable):
            raise SourceError(f"the first line of '{path}' names no columns: {header.reason}")
        picked = positions([p.flat for p in paths], [h.strip() for h in header], path)
        return cls(header, tuple(picked), len(header))

    def check(self, checker: Checker) -> Check:
        """For records: `checker.text`, if all their fields are wanted, in this order."""
        picked, width, text = self.picked, self.width, checker.text
        if picked == tuple(range(width)):
            return text

        def check(fields: Any) -> Row | Reject:
            if fields.__class__ is not list:
                return text(fields)
            if len(fields) != width:
                reason = f"{len(fields)} values where {width} are wanted"
                return Reject(checker.pred, fields, reason)
            return text([fields[i] for i in picked])

        return check

    def rows(
        self,
        found: Iterable[tuple[int, list[str] | Unreadable | None]],
        checker: Checker,
        path: Path,
    ) -> Arriving:
        """The rows of records."""
        check, is_numbered = self.check(checker), checker.number is not None
        for line, fields in found:
            if fields is None:
                yield None
                continue
            row = check(self.numbered(fields, line, checker) if is_numbered else fields)
            if row.__class__ is tuple:
                yield row
            elif not self.is_repeated(fields, checker):
                yield placed(row, path, line)

    def numbered(
        self, fields: list[str] | Unreadable, line: int, checker: Checker
    ) -> list[str] | Unreadable:
        """A record with the number of its line: behind all others, if columns have names."""
        if not isinstance(fields, list):
            return fields
        if len(fields) != self.width - 1:
            reason = f"{len(fields)} values where {self.width - 1} are wanted"
            return Unreadable(fields, reason)
        number = str(line)
        if self.header:
            return [*fields, number]
        records: list[str] = checker.numbered(fields, number)
        return records

    def is_repeated(self, fields: list[str] | Unreadable | None, checker: Checker) -> bool:
        """Whether a record that was rejected is the first line once more, in files that were put
        together: names are no times."""
        return checker.temporal and _numbered(fields, checker) == self.header


def _numbered(
    header: list[str] | Unreadable | None, checker: Checker
) -> list[str] | Unreadable | None:
    """The names of a file's columns, with that of the number of its rows if there is one."""
    if checker.number is None or not isinstance(header, list):
        return header
    name = checker.names[checker.number]
    return [*("" if same_named(name, [h.strip()]) else h for h in header), name]


def _csv_rows(lines: Iterable[str], source: Input, checker: Checker) -> Arriving:
    path = source.path
    found = records(lines, delimiter_of(path))
    header: list[str] | Unreadable | None = None
    if source.header:
        for _, header in found:
            if header is not None:
                break
            yield None
        if header is None:
            return
    layout = Layout.of(_numbered(header, checker), checker.paths, path)
    yield from layout.rows(found, checker, path)


def records(
    lines: Iterable[str], delimiter: str
) -> Iterator[tuple[int, list[str] | Unreadable | None]]:
    """The records of CSV lines, each with the number of its first line; None where a line is "":
    there are no more at present."""
    source = iter(lines)
    ahead: deque[str] = deque()  # read for a quoted field that may go on
    number = 0
    while True:
        line = ahead.popleft() if ahead else next(source, None)
        if line is None:
            return
        if not line:
            yield number, None
            continue
        number += 1
        if '"' not in line:
            line = line.rstrip("\r\n")
            if line:
                yield number, line.split(delimiter)
            continue
        while (found := quoted(line, source, ahead, delimiter)) is None:
            yield number, None
        record, more = found
        for _ in range(more):
            ahead.popleft()
        yield number, record
        number += more


def quoted(
    line: str, source: Iterator[str], ahead: deque[str], delimiter: str
) -> tuple[list[str] | Unreadable, int] | None:
    """A record with quotes, and how many of the lines that follow belong to it; None: perhaps
    one that is still to come."""
    parts = [line]
    for more in range(MOST_LINES):
        try:
            return next(csv.reader(parts, delimiter=delimiter, strict=True)), more
        except csv.Error as error:
            if str(error) != "unexpected end of data":
                break
        if len(ahead) <= more:
            following = next(source, None)
            if following is None:
                break
            if not following:
                return None
            ahead.append(following)
        parts.append(ahead[more])
    return Unreadable(
        line.rstrip("\r\n"), "a quote is not closed, or not at the end of its field"
    ), 0


# ------------------------------------------------------------------------------- JSON Lines


_decode = json.JSONDecoder().decode


def json_rows(line: str, checker: Checker, number: int = 0) -> Iterable[Row | Reject]:
    """The row in a line, or in a message; several if it has a list of them."""
    if not line or line.isspace():
        return ()
    try:
        raw = _decode(line)
    except (ValueError, RecursionError) as error:
        reason = str(error).split(":")[0].lower() if isinstance(error, ValueError) else ""
        reason = f"malformed JSON: {reason or 'nested too deeply'}"
        return (Reject(checker.pred, line.rstrip("\r\n"), reason),)
    return checker.rows(checker.numbered(raw, number))


def _json_rows(lines: Iterable[str], source: Input, checker: Checker) -> Arriving:
    number = 0
    for line in lines:
        if not line:
            yield None
            continue
        number += 1
        for row in json_rows(line, checker, number):
            yield row if row.__class__ is tuple else placed(row, source.path, number)


# ------------------------------------------------------------------------------------ `from`


def declared_inputs(program: Program, *, header: bool = True) -> list[Input]:
    """The files that the program's own declarations name, by predicate."""
    found = []
    for name, predicate in program.schema.predicates.items():
        option = predicate.option("from")
        if option is not None:
            path = inside(program, str(option.value.value), option.span.source.path)
            found.append(Input(name, path, header))
    return found


def inside(program: Program, path: str, declared_in: str) -> Path:
    """A path that a program names: beside the file that names it, below the program's folder."""
    if program.root is None:
        raise SourceError(f"'{path}' cannot be read: a program without a folder has no files")
    root = program.root.resolve()
    try:
        home = Path(declared_in).resolve().parent
        home = home if home.is_relative_to(root) else root
        found = (home / path).resolve()
    except (OSError, ValueError, RuntimeError):  # the last for links that go round
        raise SourceError(f"{shown(path)} is not a path") from None
    named = matches(found) if is_pattern(found) else [found]
    links = [found, *named, *(p for n in named for p in n.rglob("*") if p.is_symlink())]
    if out := [p for p in links if not p.resolve().is_relative_to(root)]:
        link = out[0].is_relative_to(root)
        what = f"the link '{out[0].relative_to(root)}'" if link else f"'{path}'"
        raise SourceError(f"{what} lies outside the folder of this program")
    try:
        return found.relative_to(Path.cwd())
    except ValueError:
        return found
