"""Answers as lines of CSV files, where DuckDB writes them as the runtime would: no line is a Python
object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from streamlog.duck.database import Database, Rows
from streamlog.runtime.values import LAST_TIME
from streamlog.syntax.ast import Type

_YEAR_1000 = -30_610_224_000_000_000


def lines(
    db: Database, rows: Rows, types: Sequence[Type | None], at_once: int
) -> Iterator[tuple[int, memoryview]] | None:
    """Rows, sorted, as lines with values of these types, so many at a time, and how many these
    are; None: some are written in a way that only `runtime.sinks` knows."""
    if db.has_none:
        return None
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
    text = f"SELECT {glue.join(fields)} || chr(10) FROM ({rows.query}) ORDER BY {order}"
    return ((len(some), _text(some)) for some in db.arrays(text, at_once))


def _text(strings: pa.StringArray) -> memoryview:
    """All of them, as they lie one behind the other in memory."""
    _, offsets, data = strings.buffers()
    ends = memoryview(offsets).cast("i")[strings.offset :]
    return memoryview(data)[ends[0] : ends[len(strings)]] if len(strings) else memoryview(b"")
