"""Records of files: DuckDB takes those of which it is certain, and says which the others are. For
them the checker has the word, as in `runtime.sources`.

A record is a line, or a row of a Parquet file. The first of a file has number 1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from glob import has_magic
from itertools import islice
from typing import Protocol, TypeAlias

from attrs import frozen

from streamlog.duck import lines
from streamlog.duck.certain import of_json, of_text, of_typed
from streamlog.duck.database import Database, literal
from streamlog.runtime.data_files import CSV, PARQUET, delimiter_of
from streamlog.runtime.executor import Row
from streamlog.runtime.ingest import Checker, Reject, Unreadable
from streamlog.runtime.parquet import flat_columns, rows_at
from streamlog.runtime.sources import (
    MOST_LINES,
    Input,
    Layout,
    SourceError,
    json_rows,
    placed,
    quoted,
    records,
)

_AT_ONCE = 10_000
RECORD = "record"  # beside the values: of a record that is not certain, what it is


# A record's number, that of the last line of it, and its row; None: it is not a row. The lines
# after the first, if there are several, are not records.
Read: TypeAlias = tuple[int, int, Row | Reject | None]


class Records(Protocol):
    def query(self, db: Database) -> str:
        """`c0`, `c1`, … and `record`, in the order of the file."""

    def read(self, uncertain: Iterable[tuple[int, str]]) -> Iterator[Read]:
        """What the checker says of records, in their order."""


def of(source: Input, checker: Checker, db: Database) -> Records | None:
    """None: all are for the checker."""
    if source.form or not source.path.is_file():
        return None
    if checker.assumed or not checker.types or checker.forms or checker.optional:
        return None
    if checker.number is not None or checker.has_list or None in checker.types:
        return None
    if source.kind == CSV:
        return _Csv.of(source, checker)
    if source.kind == PARQUET:
        return _Parquet.of(source, checker, db)
    return _Json(source, checker)


def _certain(values: Sequence[str], checker: Checker, tests: Iterable[str], source: str) -> str:
    """The values in records, or, unless all of these are beyond doubt, the record."""
    found = [*tests, *(f"v{i} IS NOT NULL" for i in range(len(values)))]
    for i, ranges in checker.ranges.items():
        found += (f"v{i} BETWEEN {r.low!r} AND {r.high!r}" for r in ranges)
    for relation in checker.relations:
        # Two ints may lie further apart than 64 bits reach.
        pairs = relation.differences
        found += (f"v{x}::HUGEINT - v{y}::HUGEINT <= {most}" for x, y, most in pairs)
    made = ", ".join(f"{value} AS v{i}" for i, value in enumerate(values))
    columns = ", ".join(f"v{i} AS c{i}" for i in range(len(values)))
    return (
        f"SELECT {columns}, CASE WHEN {' AND '.join(found)} THEN NULL ELSE {RECORD} END "
        f"AS {RECORD} FROM (SELECT *, {made} FROM ({source}))"
    )


# -------------------------------------------------------------------------------------- CSV


@frozen
class _Csv:
    """Records are lines. What is said to be certain may still be a part of one that began before:
    `read` says so."""

    source: Input
    checker: Checker
    layout: Layout
    before: int  # so many lines have no rows: the header, and blank ones

    @staticmethod
    def of(source: Input, checker: Checker) -> _Csv | None:
        header: list[str] | Unreadable | None = None
        before = 0
        if source.header:
            first = [lines.as_read(line) for line in lines.first(source, 2 * MOST_LINES)]
            opening = iter(first)
            before, header = next(records(opening, delimiter_of(source.path)), (0, None))
            used = len(first) - len(list(opening))
            if header is None or used > before:
                return None  # there is none, or it has several lines
        try:
            layout = Layout.of(header, checker.paths, source.path)
        except SourceError:
            return None  # which the reader of rows raises
        return _Csv(source, checker, layout, before)

    def query(self, db: Database) -> str:
        delimiter = delimiter_of(self.source.path)
        field = f'"[^"]*"|[^"{delimiter}]*'
        plain = f"string_split(trimmed, {literal(delimiter)})"
        # With a delimiter in front, no field is found where nothing is.
        pattern = literal(f"{delimiter}({field})")
        fields = f"regexp_extract_all({literal(delimiter)} || trimmed, {pattern}, 1)"
        fields = f"list_transform({fields}, lambda f: trim(f, '\"'))"
        is_whole = literal(f"({field})({delimiter}({field}))*")
        # A quote that is open at the end of a line is closed in another.
        split = (
            f"CASE WHEN is_plain OR NOT contains(trimmed, '\"') THEN {plain} "
            f"WHEN regexp_full_match(trimmed, {is_whole}, 's') THEN {fields} END"
        )
        scan = db.scan(lines.batches(self.source), lines.SCHEMA)
        trimmed = "CASE WHEN is_plain THEN line ELSE rtrim(line, chr(13)) END"
        source = f"SELECT line AS {RECORD}, is_plain, {trimmed} AS trimmed FROM {scan}"
        values = [
            of_text(f"fields[{place + 1}]", type_)
            for place, type_ in zip(self.layout.picked, self.checker.types, strict=True)
            if type_ is not None
        ]
        tests = [
            f"len(fields) = {self.layout.width}",
            "trimmed <> ''",
            "(is_plain OR NOT (contains(trimmed, chr(13)) OR contains(trimmed, chr(0))))",
        ]
        source = f"SELECT *, {split} AS fields FROM ({source})"
        return _certain(values, self.checker, tests, source)

    def read(self, uncertain: Iterable[tuple[int, str]]) -> Iterator[Read]:
        delimiter, done = delimiter_of(self.source.path), self.before
        yield 0, done, None
        rest = iter(uncertain)
        while some := list(islice(rest, _AT_ONCE)):
            given = [(number, lines.as_read(record)) for number, record in some]
            opened = [number for number, line in given if _is_open(line, delimiter)]
            more = lines.following(self.source, opened, MOST_LINES) if opened else {}
            for number, line in given:
                if number <= done:
                    continue  # of a record that began before
                if '"' not in line:
                    _, fields = next(records([line], delimiter), (0, None))
                    done = number
                else:
                    ahead = iter(more.get(number, ()))
                    found = quoted(line, ahead, deque(), delimiter)
                    assert found is not None  # for these lines there is nothing to wait for
                    fields = found[0]
                    done = number + found[1]
                rows = self.layout.rows([(number, fields)], self.checker, self.source.path)
                yield number, done, next(rows, None)


def _is_open(line: str, delimiter: str) -> bool:
    """Whether a record may go on in the lines that follow."""
    if '"' not in line:
        return False
    found = quoted(line, iter(()), deque(), delimiter)
    return found is not None and isinstance(found[0], Unreadable)


# ------------------------------------------------------------------------------- JSON Lines

# What DuckDB takes for JSON, and Python does not, or may not.
_DOUBTFUL = r"(?i)[:,\[]\s*-?(nan|inf)|,\s*[\]}]"
# Python's limits for nesting and for digits are beyond such a length.
_LONG = 2_000


@frozen
class _Json:
    source: Input
    checker: Checker

    def query(self, db: Database) -> str:
        paths = self.checker.paths
        fields = ", ".join(literal(_pointer(path.keys)) for path in paths)
        scan = db.scan(lines.batches(self.source), lines.SCHEMA)
        is_plain = (
            f"json_valid(line) AND NOT regexp_matches(line, {literal(_DOUBTFUL)}) "
            f"AND length(line) < {_LONG}"
        )
        source = f"SELECT line AS {RECORD}, CASE WHEN {is_plain} THEN line END AS plain FROM {scan}"
        split = f"json_extract(plain, [{fields}])"
        values = [
            of_json(f"fields[{i}]", type_)
            for i, type_ in enumerate(self.checker.types, 1)
            if type_ is not None
        ]
        # Of a name that is there twice, Python has the last.
        tests = []
        for keys in sorted({path.keys[:n] for path in paths for n in range(len(path.keys))}):
            names = f"json_keys(plain, {literal(_pointer(keys))})" if keys else "json_keys(plain)"
            tests.append(f"len({names}) > 0 AND list_unique({names}) = len({names})")
        source = f"SELECT *, {split} AS fields FROM ({source})"
        return _certain(values, self.checker, tests, source)

    def read(self, uncertain: Iterable[tuple[int, str]]) -> Iterator[Read]:
        for number, record in uncertain:
            line = lines.as_read(record)
            row = next(iter(json_rows(line, self.checker, number)), None)
            yield number, number, None if row is None else placed(row, self.source.path, number)


def _pointer(keys: Sequence[str]) -> str:
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)


# ---------------------------------------------------------------------------------- Parquet


@frozen
class _Parquet:
    source: Input
    checker: Checker
    width: int
    values: Sequence[str]

    @staticmethod
    def of(source: Input, checker: Checker, db: Database) -> _Parquet | None:
        if has_magic(str(source.path)):
            return None  # which DuckDB would take for a pattern
        held = db.types(_scan(source))
        picked = None if held is None else flat_columns(source, checker)
        if held is None or picked is None:
            return None
        values = [
            of_typed(f"y{place}", held[place], type_)
            for place, type_ in zip(picked, checker.types, strict=True)
            if type_ is not None
        ]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        return _Parquet(source, checker, len(held), known)

    def query(self, db: Database) -> str:
        # Names that SQL takes, whatever the names are.
        names = ", ".join(f"y{i}" for i in range(self.width))
        source = f"SELECT *, '' AS {RECORD} FROM ({_scan(self.source)}) AS rows({names})"
        return _certain(self.values, self.checker, [], source)

    def read(self, uncertain: Iterable[tuple[int, str]]) -> Iterator[Read]:
        rest = iter(uncertain)
        while numbers := [number for number, _ in islice(rest, _AT_ONCE)]:
            for number, row in rows_at(self.source, self.checker, numbers):
                yield number, number, row


def _scan(source: Input) -> str:
    return f"SELECT * FROM read_parquet({literal(str(source.path))})"
