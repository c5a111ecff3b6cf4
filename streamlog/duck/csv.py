"""CSV files that DuckDB reads and writes as the runtime would.

What a row means is for `runtime.sources` and `runtime.ingest.Checker` to say. A file is read here
only if there is no doubt about any of its rows: lines without quotes, as many fields in each as
the first line names, each field written as fields of its type usually are. If there is any doubt,
nothing is said here, and the file is for the checker to read.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path

from streamlog.duck.database import Database, Rows
from streamlog.runtime.data_files import CSV, delimiter_of, is_compressed
from streamlog.runtime.ingest import Checker
from streamlog.runtime.sources import Input, Layout, SourceError
from streamlog.runtime.values import FIRST_TIME, LAST_TIME, USUAL_FIRST, USUAL_LAST
from streamlog.syntax.ast import Type

_MOST_OF_A_HEADER = 1 << 16
_TIME = r"\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?Z"
_YEAR_1000 = -30_610_224_000_000_000
_FLOAT = r"-?\d+(\.\d+)?([eE][+-]?\d{1,3})?"


def certain(source: Input, checker: Checker) -> str | None:
    """A query of the rows of a file, in its order; `c0` is NULL where there is a doubt about a
    row. None: there is a doubt about the file."""
    path = source.path
    if source.kind != CSV or source.form or is_compressed(path) or not source.header:
        return None
    if checker.assumed or not checker.types or checker.forms or checker.optional:
        return None
    if checker.number is not None:
        return None
    if any(type_ is None for type_ in checker.types):
        return None
    header = _plain_header(path)
    if header is None:
        return None
    try:
        picked = Layout.of(header, checker.paths, source.path).picked
    except SourceError:
        return None  # which the reader of rows raises
    names = ", ".join(f"'f{i}': 'VARCHAR'" for i in range(len(header)))
    fields = ", ".join(f"'f{i}'" for i in range(len(header)))
    scan = (
        f"read_csv({_text(str(source.path))}, auto_detect = false, header = true, "
        f"delim = '{delimiter_of(source.path)}', quote = '', escape = '', comment = '', "
        f"new_line = '\\n', columns = {{{names}}}, force_not_null = [{fields}], "
        "strict_mode = true, null_padding = false, ignore_errors = false)"
    )
    values, tests = [], []
    for i, (place, type_) in enumerate(zip(picked, checker.types, strict=True)):
        assert type_ is not None
        found = _value(f"f{place}", type_)
        values.append(f"{found} AS v{i}")
        tests.append(f"v{i} IS NOT NULL")
        tests += (f"v{i} BETWEEN {r.low!r} AND {r.high!r}" for r in checker.ranges.get(i, ()))
    for relation in checker.relations:
        # Two ints may lie further apart than 64 bits reach.
        pairs = relation.differences
        tests += (f"v{x}::HUGEINT - v{y}::HUGEINT <= {most}" for x, y, most in pairs)
    whole = " AND ".join(tests)
    columns = [f"CASE WHEN {whole} THEN v0 END AS c0"]
    columns += (f"v{i} AS c{i}" for i in range(1, len(values)))
    return f"SELECT {', '.join(columns)} FROM (SELECT {', '.join(values)} FROM {scan})"


def _plain_header(path: Path) -> list[str] | None:
    """The fields of the first line of a file that has nothing but plain lines."""
    if not path.is_file() or not path.stat().st_size:
        return None
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end = data.find(b"\n", 0, _MOST_OF_A_HEADER)
        delimiter = delimiter_of(path).encode()
        # DuckDB reads a field too many as none if it is empty.
        doubtful = (b'"', b"\r", b"\0", b"\n\n", delimiter + b"\n")
        if end <= 0 or any(data.find(some) >= 0 for some in doubtful):
            return None
        if data[-1:] == delimiter or data[:3] == b"\xef\xbb\xbf":
            return None
        try:
            return data[:end].decode().split(delimiter.decode())
        except UnicodeDecodeError:
            return None


def _value(field: str, type_: Type) -> str:
    """A field's value, or NULL if it is written in another way than usual."""
    number = f"TRY_CAST({field} AS BIGINT)"
    # DuckDB reads 5.0 and 1e3 as whole numbers.
    whole = f"CASE WHEN CAST({number} AS VARCHAR) = {field} THEN {number} END"
    match type_:
        case Type.STRING:
            return field
        case Type.BOOL:
            return f"CASE {field} WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END"
        case Type.FLOAT:
            double = f"TRY_CAST({field} AS DOUBLE)"
            written = f"regexp_full_match({field}, '{_FLOAT}') AND isfinite({double})"
            return f"CASE WHEN {written} THEN {double} END"
        case Type.TIME:
            stamp = f"epoch_us(TRY_CAST({field} AS TIMESTAMP))"
            seconds = f"epoch_us(try_strptime({field}, '%Y-%m-%dT%H:%M:%SZ'))"
            inside = f"BETWEEN {FIRST_TIME} AND {LAST_TIME}"
            # What strptime reads, with as many characters and no spaces around them, has the full
            # number of digits everywhere. That is quicker to see than a pattern.
            full = f"length({field}) = 20 AND {field} > '1' AND {field} < ':'"
            full += f" AND ends_with({field}, 'Z')"
            return (
                f"CASE WHEN {full} THEN {seconds}"
                f" WHEN regexp_full_match({field}, '{_TIME}') AND {stamp} {inside} THEN {stamp}"
                # Of a number that is hardly of microseconds the checker warns.
                f" WHEN {whole} >= {USUAL_FIRST} AND {number} < {USUAL_LAST} THEN {number} END"
            )
        case Type.INT | Type.DURATION:
            return whole


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


# ---------------------------------------------------------------------------------- writing


def lines(
    db: Database, rows: Rows, types: Sequence[Type | None], at_once: int
) -> Iterator[list[str]] | None:
    """Rows, sorted, as lines with values of these types; None: some are written in a way that
    only `runtime.sinks` knows."""
    fields, plain = [], []
    for i, type_ in enumerate(types):
        column = f"c{i}"
        match type_:
            case Type.STRING:
                fields.append(column)
                plain.append(f"NOT regexp_matches({column}, '[\",\\r\\n]')")
            case Type.TIME:
                fields.append(f"strftime(make_timestamp({column}), '%Y-%m-%dT%H:%M:%SZ')")
                plain.append(f"{column} BETWEEN {_YEAR_1000} AND {LAST_TIME}")
                plain.append(f"{column} % 1000000 = 0")
            case Type.INT | Type.BOOL:
                fields.append(f"CAST({column} AS VARCHAR)")
            case _:
                return None
    if len(fields) < 2:  # an empty text alone is quoted
        return None
    if plain and db.value(f"SELECT count(*) FROM ({rows.query}) WHERE NOT ({' AND '.join(plain)})"):
        return None
    glue = " || ',' || "
    order = ", ".join(f"c{i}" for i in range(len(fields)))
    text = f"SELECT {glue.join(fields)} FROM ({rows.query}) ORDER BY {order}"
    return ([str(line) for (line,) in some] for some in db.fetched(text, rows.types, at_once))
