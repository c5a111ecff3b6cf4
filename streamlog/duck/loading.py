"""All rows of a stream, from files into DuckDB: each is checked, late ones are set aside."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

from attrs import Factory, frozen

from streamlog.duck import records
from streamlog.duck.database import FAILED, Database, Rows, Types
from streamlog.duck.records import RECORD, Records
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import Row
from streamlog.runtime.ingest import Reject
from streamlog.runtime.report import Late
from streamlog.runtime.sources import Input, SourceError
from streamlog.syntax.ast import Type

_AT_ONCE = 50_000  # rows in Python


@frozen
class Loaded:
    """The rows of a stream, each once."""

    rows: Rows
    count: int  # of those in the files
    duplicates: int = 0
    rejects: Sequence[Reject] = ()
    late: Sequence[Late] = ()
    latest: int | None = None

    @property
    def good(self) -> int:
        """How many rows are left."""
        return self.count - self.duplicates - len(self.rejects) - len(self.late)


def loaded(
    engine: Engine, db: Database, stream: str, files: Sequence[Input], *, in_order: bool
) -> Loaded | None:
    """None: they are for the engine to read, row by row. `in_order`: the rows will be asked for in
    the order of their times."""
    checker, slack = engine.checkers[stream], engine.progress[stream].slack
    types = [type_ for type_ in checker.types if type_ is not None]
    if not files:
        return Loaded(Rows(db, types, at_hand=[]), 0)
    try:
        forms = [form for file in files if (form := records.of(file, checker, db)) is not None]
        if len(forms) < len(files):
            return None
        table, counts = _stored(db, forms)
        checked = _checked(db, table, forms, counts, types)
    except (*FAILED, SourceError):
        return None  # the reader of rows says what is wrong, and where
    good = _good(table, checked, types)
    count = len(checked.rejects) + (db.value(f"SELECT count(*) FROM ({good})") or 0)
    order = None if checked.tables else _order(db, good)
    late = [] if order is not None else _late(db, good, slack, types)
    if late:
        ids = Rows(db, [Type.INT], at_hand=[(id_,) for id_, *_ in late]).query
        good = f"SELECT * FROM ({good}) WHERE id NOT IN ({ids})"
    latest = db.value(f"SELECT max(c0) FROM ({good})")
    rows, distinct = f"SELECT {_columns(types)} FROM ({good})", count - len(checked.rejects)
    if order is not _Order.ASCENDING:
        unique = f"SELECT DISTINCT * FROM ({rows})"
        with db.in_order():
            name, distinct = db.stored(f"{unique} ORDER BY c0" if in_order else unique)
        rows = f"SELECT * FROM {name}"
        db.execute(f"DROP TABLE {table}")
    clock = engine.clock(stream)
    return Loaded(
        Rows(db, types, query=rows),
        count,
        count - len(checked.rejects) - len(late) - distinct,
        checked.rejects,
        [Late(stream, row, passed, clock, stream) for _, passed, row in late],
        latest,
    )


def _columns(types: Types) -> str:
    return ", ".join(f"c{i}" for i in range(len(types)))


def _stored(db: Database, files: Sequence[Records]) -> tuple[str, list[int]]:
    """The records in a table, in their order, and how many each file has."""
    with db.in_order():
        name, count = db.stored(f"SELECT *, 0 AS file FROM ({files[0].query(db)})")
        counts = [count]
        for number, file in enumerate(files[1:], 1):
            text = f"INSERT INTO {name} SELECT *, {number} FROM ({file.query(db)})"
            counts.append(db.count(text))
    return name, counts


@frozen
class _Checked:
    """What the checker has said of the records of which DuckDB is not certain."""

    tables: list[str] = Factory(list)  # of rows, with their `id` and `file`
    parts: list[int] = Factory(list)  # the ids of records that are parts of others
    rejects: list[Reject] = Factory(list)


def _checked(
    db: Database, table: str, files: Sequence[Records], counts: Sequence[int], types: Types
) -> _Checked:
    result = _Checked()
    rows: list[Row] = []

    def put() -> None:
        if rows:
            values = ", ".join(f"c{i + 2} AS c{i}" for i in range(len(types)))
            given = Rows(db, [Type.INT, Type.INT, *types], at_hand=list(rows)).query
            text = f"SELECT c0 AS id, c1 AS file, {values} FROM ({given})"
            result.tables.append(db.stored(text)[0])
            rows.clear()

    ends = accumulate(counts, initial=0)
    for number, (file, (start, end)) in enumerate(zip(files, pairwise(ends), strict=True)):
        for first, last, row in file.read(_uncertain(db, table, start, end)):
            result.parts.extend(range(start + first, start + last))
            if isinstance(row, Reject):
                result.rejects.append(row)
            elif row is not None:
                rows.append((start + first - 1, number, *row))
                if len(rows) >= _AT_ONCE:
                    put()
    put()
    return result


def _uncertain(db: Database, table: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """The records of a file, numbered from 1, that are for the checker."""
    at = start
    while True:
        some: list[Any] = db.fetch(
            f"SELECT rowid, {RECORD} FROM {table} WHERE {RECORD} IS NOT NULL "
            f"AND rowid >= {at} AND rowid < {end} ORDER BY rowid LIMIT {_AT_ONCE}",
            [Type.INT, Type.STRING],
        )
        yield from ((rowid - start + 1, record) for rowid, record in some)
        if len(some) < _AT_ONCE:
            return
        at = some[-1][0] + 1


def _good(table: str, checked: _Checked, types: Types) -> str:
    """The rows that are not rejected, with their `id` and `file`."""
    columns = f"id, file, {_columns(types)}"
    certain = f"SELECT rowid AS id, file, {_columns(types)} FROM {table} WHERE {RECORD} IS NULL"
    if checked.parts:
        certain += f" AND rowid NOT IN ({', '.join(map(str, checked.parts))})"
    others = (f" UNION ALL SELECT {columns} FROM {name}" for name in checked.tables)
    return certain + "".join(others)


class _Order(enum.Enum):
    """Of the times of rows, each beside the one before."""

    ASCENDING = 1  # so that no two rows are the same
    SORTED = 2


def _order(db: Database, rows: str) -> _Order | None:
    """Without an order DuckDB goes through a table as it lies, and needs no sorting; should it ever
    not, the ids of rows show it."""
    before = "lag(c0) OVER () AS before, lag(id) OVER () AS last"
    found = f"SELECT c0, id, {before} FROM ({rows})"
    is_earlier = "CASE WHEN c0 < before OR id <= last THEN 2 WHEN c0 = before THEN 1 ELSE 0 END"
    worst = db.value(f"SELECT max({is_earlier}) FROM ({found})") or 0
    return (_Order.ASCENDING, _Order.SORTED, None)[worst]


def _late(db: Database, rows: str, slack: int, types: Types) -> list[tuple[int, int, Row]]:
    """The rows that come when their time has passed: their ids, what time has passed, and their
    values. Files are merged as `merging.merged` does: the one whose latest row is earliest goes
    on."""
    reached = (
        "max(c0) OVER (PARTITION BY file ORDER BY id "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    )
    own = f"SELECT *, {reached} AS reached FROM ({rows})"
    merged = f"SELECT *, lag(reached) OVER (ORDER BY reached, file, id) AS latest FROM ({own})"
    found: list[Any] = db.fetch(
        f"SELECT id, latest - {slack}, {_columns(types)} FROM ({merged}) "
        f"WHERE c0 < latest - {slack} ORDER BY reached, file, id",
        [Type.INT, Type.INT, *types],
    )
    return [(id_, passed, tuple(values)) for id_, passed, *values in found]
