"""A program over complete files, all at once: DuckDB reads them, and no row goes through Python.

This is for data about which there is no doubt (`duck.csv`), of which no row is late, and for rules
that queries can do, or kernels for each row by itself, such as those that call Python functions. In
all other cases nothing is said here, and rows go through the engine one by
one. So what is rejected, what is late, and why, has one home.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from attrs import field, frozen

from streamlog.duck.csv import certain, lines
from streamlog.duck.database import FAILED, Database, Rows
from streamlog.duck.executor import DuckExecutor
from streamlog.plan.parts import Stage, Strategy
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import Limits, Row
from streamlog.runtime.sources import Input
from streamlog.syntax.ast import Atom, Not, Type

_AT_ONCE = 50_000  # answers
_MOST_FOR_KERNELS = 100_000_000  # bytes of files, whose rows take ten times as much in memory


@frozen
class Loaded:
    """The rows of a stream, each once."""

    rows: Rows
    count: int  # of those in the files
    duplicates: int
    latest: int | None


@frozen
class Answers:
    executor: DuckExecutor
    streams: Mapping[str, Loaded]
    _found: Mapping[str, Rows | None] = field(repr=False)

    def of(self, pred: str) -> Iterator[list[Row]]:
        """The answers of an output, sorted, some at a time."""
        rows = self._found[pred]
        return iter(()) if rows is None else rows.sorted(_AT_ONCE)

    def lines(self, pred: str, types: Sequence[Type | None]) -> Iterator[list[str]] | None:
        """The same as lines of a CSV file; None: that is for `runtime.sinks` to do."""
        rows = self._found[pred]
        return None if rows is None else lines(self.executor.db, rows, types, _AT_ONCE)


def evaluate(engine: Engine, files: Sequence[Input], limits: Limits) -> Answers | None:
    """The answers of an engine's program over all rows of the files; None: not in this way."""
    schema = engine.schema
    has_facts = schema.facts_of.keys() & {*schema.streams}
    if not engine.progress.independent or has_facts or schema.views:
        return None
    executor = DuckExecutor(engine.program.closed, engine.tables, limits)
    if not _by_queries(executor, sum(file.path.stat().st_size for file in files)):
        return None
    streams: dict[str, Loaded] = {}
    for stream in engine.schema.streams:
        load = partial(_loaded, engine, executor.db, stream)
        loaded = load([file for file in files if file.pred == stream])
        if loaded is None:
            return None
        streams[stream] = loaded
    given = {name: loaded.rows for name, loaded in streams.items()}
    latest = [loaded.latest for loaded in streams.values() if loaded.latest is not None]
    return Answers(executor, streams, executor.at_once(given, latest))


def _by_queries(executor: DuckExecutor, size: int) -> bool:
    """Whether kernels have little or nothing to do with rows of streams. For them, all rows are in
    memory at once."""
    is_temporal = executor.schema.is_temporal
    temporal = [s for s in executor.stages if any(map(is_temporal, s.preds))]
    kernels = [s for s in temporal if s.strategy is Strategy.KERNEL]
    if not kernels:
        return bool(temporal)
    return size <= _MOST_FOR_KERNELS and all(_is_by_row(executor, s) for s in kernels)


def _is_by_row(executor: DuckExecutor, stage: Stage) -> bool:
    """Whether each row of a stream is looked at by itself, and none is kept."""
    schema = executor.schema
    for component in stage.components:
        for rule in (r for pred in component.preds for r in schema.rules_of.get(pred, ())):
            read = [a.pred for a in rule.body if isinstance(a, Atom) and schema.is_temporal(a.pred)]
            negates = any(isinstance(literal, Not) for literal in rule.body)
            if len(read) != 1 or read[0] in component.preds or negates or rule.groups:
                return False
    return True


def _loaded(engine: Engine, db: Database, stream: str, files: Sequence[Input]) -> Loaded | None:
    checker, clock = engine.checkers[stream], engine.progress[stream]
    types = [type_ for type_ in checker.types if type_ is not None]
    if not files:
        return Loaded(Rows(db, types, at_hand=[]), 0, 0, None)
    queries = [certain(file, checker) for file in files]
    if len(types) < len(checker.types) or None in queries:
        return None
    try:
        with db.in_order():
            name, count = db.stored(f"SELECT *, 0 AS file FROM ({queries[0]})")
            for number, query in enumerate(queries[1:], 1):
                count += db.count(f"INSERT INTO {name} SELECT *, {number} FROM ({query})")
    except FAILED:
        return None
    if db.value(f"SELECT count(*) FROM {name} WHERE c0 IS NULL"):
        return None
    if db.value(_not_in_order(name)) and db.value(_late(name, clock.slack, len(files) > 1)):
        return None
    latest = db.value(f"SELECT max(c0) FROM {name}")
    rows, distinct = db.stored(f"SELECT DISTINCT * EXCLUDE (file) FROM {name}")
    db.execute(f"DROP TABLE {name}")
    query = f"SELECT * FROM {rows}"
    return Loaded(Rows(db, types, query=query), count, count - distinct, latest)


def _not_in_order(table: str) -> str:
    """How many rows are earlier than the one before. Without an order DuckDB goes through a table
    as it lies, and needs no sorting; should it ever not, the numbers of rows show it."""
    before = "lag(c0) OVER () AS before, lag(rowid) OVER () AS last"
    return (
        f"SELECT count(*) FROM (SELECT c0, rowid AS id, {before} FROM {table}) "
        "WHERE c0 < before OR id <> last + 1"
    )


def _late(table: str, slack: int, several: bool) -> str:
    """How many rows come when their time has passed. Files are merged as `sources.merged` does:
    the one whose latest row is earliest goes on."""
    if not several:
        before = f"SELECT c0, {_highest('1 PRECEDING')} AS before FROM {table}"
    else:
        own = f"SELECT c0, file, rowid AS id, {_highest('CURRENT ROW', 'file')} AS reached"
        order = "ORDER BY reached, file, id"
        before = f"SELECT c0, lag(reached) OVER ({order}) AS before FROM ({own} FROM {table})"
    return f"SELECT count(*) FROM ({before}) WHERE c0 < before - {slack}"


def _highest(end: str, partition: str = "") -> str:
    by = f"PARTITION BY {partition} " if partition else ""
    return f"max(c0) OVER ({by}ORDER BY rowid ROWS BETWEEN UNBOUNDED PRECEDING AND {end})"
