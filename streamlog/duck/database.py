"""A DuckDB database in this process: relations in and out of it, and its errors in our words.

A relation has columns c0, c1, …; one without columns has c0, which is true.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path
from threading import Timer
from uuid import uuid4

import duckdb
import pyarrow as pa

from streamlog.plan.sql.aggregates import EXACT_SUM
from streamlog.runtime.arrow_values import array, with_none
from streamlog.runtime.executor import LimitError, Limits, Row
from streamlog.runtime.functions import exact_sum
from streamlog.runtime.memory import share, size
from streamlog.syntax.ast import Type

_KINDS: dict[Type, tuple[str, pa.DataType]] = {
    Type.INT: ("BIGINT", pa.int64()),
    Type.TIME: ("BIGINT", pa.int64()),
    Type.DURATION: ("BIGINT", pa.int64()),
    Type.FLOAT: ("DOUBLE", pa.float64()),
    Type.STRING: ("VARCHAR", pa.string()),
    Type.BOOL: ("BOOLEAN", pa.bool_()),
}
Types = Sequence[Type]

# A value that cannot be computed. What else DuckDB reports is not the rules' fault.
FAILED = (duckdb.DataError, duckdb.InvalidInputException)
OUT_OF_MEMORY = duckdb.OutOfMemoryException


def literal(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


def columns(types: Types) -> list[tuple[str, str]]:
    """The names and SQL types of a relation's columns."""
    return [(f"c{i}", _KINDS[t][0]) for i, t in enumerate(types)] or [("c0", "BOOLEAN")]


class Database:
    def __init__(self, limits: Limits, has_none: bool = False) -> None:
        """`has_none`: values may be missing, which are nulls in here."""
        self.limits, self.has_none = limits, has_none
        self.memory = limits.memory or share()
        self._numbers = count(1)
        self._passing: list[str] = []  # tables that live for one batch
        self._scanned: list[str] = []  # what these are made from

    @cached_property
    def _db(self) -> duckdb.DuckDBPyConnection:
        """Opened when something is asked of it: a program may be for kernels alone."""
        # DuckDB makes the folder when it needs it, and removes it.
        folder = Path(tempfile.gettempdir(), f"streamlog-{uuid4().hex}")
        config: dict[str, str | bool | int | float | list[str]] = {
            "temp_directory": str(folder),
            "preserve_insertion_order": False,
        }
        if self.memory is not None:
            config["memory_limit"] = f"{self.memory}B"
        made = duckdb.connect(config=config)
        made.create_function(EXACT_SUM, exact_sum, ["DOUBLE[]"], "DOUBLE")
        return made

    # ------------------------------------------------------------------------- statements

    def execute(self, text: str, values: Sequence[object] = ()) -> None:
        self._db.execute(text, values)

    def count(self, text: str, values: Sequence[object] = ()) -> int:
        """How many rows a statement has written."""
        found = self._db.execute(text, values).fetchall()
        return int(found[0][0]) if found else 0

    def value(self, text: str) -> int | None:
        """The one value that a query gives."""
        found = self._db.execute(text).fetchall()
        return None if not found or found[0][0] is None else int(found[0][0])

    def types(self, text: str) -> list[str] | None:
        """The types of a query's columns; None: it has none."""
        try:
            found = self._db.execute(f"DESCRIBE {text}").fetchall()
        except duckdb.Error:
            return None
        return [str(type_) for _, type_, *_ in found]

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """Tables that are made inside have the rows of files in the files' order."""
        self._db.execute("SET preserve_insertion_order = true")
        try:
            yield
        finally:
            self._db.execute("SET preserve_insertion_order = false")

    def passing(self) -> str:
        """A name for a table that lives until the batch is over."""
        name = f"passing_{next(self._numbers)}"
        self._passing.append(name)
        return name

    def stored(self, text: str) -> tuple[str, int]:
        """A query's rows in a table of the batch, and how many they are."""
        name = self.passing()
        return name, self.count(f"CREATE TEMP TABLE {name} AS {text}")

    def tidy(self) -> None:
        """The batch is over."""
        for name in self._passing:
            self._db.execute(f"DROP TABLE IF EXISTS {name}")
        self._passing.clear()
        for name in self._scanned:
            self._db.unregister(name)
        self._scanned.clear()

    # --------------------------------------------------------------------------- relations

    def load(self, rows: Sequence[Row], types: Types) -> str:
        """A query of rows at hand."""
        if not rows:
            nothing = (f"CAST(NULL AS {kind}) AS {name}" for name, kind in columns(types))
            return f"SELECT {', '.join(nothing)} WHERE FALSE"
        given = f"given_{next(self._numbers)}"
        self._db.register(given, arrow(rows, types))
        name, _ = self.stored(f"SELECT * FROM {given}")
        self._db.unregister(given)
        return f"SELECT * FROM {name}"

    def scan(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> str:
        """What one query can read from Arrow's batches."""
        name = f"given_{next(self._numbers)}"
        self._db.register(name, pa.RecordBatchReader.from_batches(schema, batches))
        self._scanned.append(name)
        return name

    def fetch(self, text: str, types: Types) -> list[Row]:
        rows: list[Row] = self._db.execute(text).fetchall()
        rows = with_none(rows) if self.has_none else rows
        return rows if types else [()] * len(rows)

    def fetched(self, text: str, types: Types, at_once: int) -> Iterator[list[Row]]:
        """The same, so many at a time; meanwhile nothing else is asked."""
        found = self._db.execute(text)
        while rows := found.fetchmany(at_once):
            rows = with_none(rows) if self.has_none else rows
            yield rows if types else [()] * len(rows)

    def arrays(self, text: str, at_once: int) -> Iterator[pa.Array]:
        """The only column of a query, as `fetched`."""
        found: pa.RecordBatchReader = self._db.sql(text).to_arrow_reader(at_once)
        yield from (batch.column(0) for batch in found)

    # ------------------------------------------------------------------------------ errors

    @contextmanager
    def within_limits(self, what: str) -> Iterator[None]:
        """Too much memory or time is our error, which says what it was needed for."""
        try:
            yield
        except duckdb.OutOfMemoryException as error:
            allowed = "" if self.memory is None else f" (--max-memory is {size(self.memory)})"
            raise LimitError(
                f"stopped for lack of memory{allowed}: more was needed for {what}"
            ) from error
        except duckdb.InterruptException as error:
            limit = self.limits.reached(0, 0, float("inf"))
            raise LimitError(f"stopped after {limit}: in {what}") from error

    @contextmanager
    def at_most_seconds(self) -> Iterator[None]:
        """Statements that are running when the time is up are interrupted."""
        if self.limits.seconds is None:
            yield
            return
        timer = Timer(self.limits.seconds, self._db.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def arrow(rows: Sequence[Row], types: Types) -> pa.Table:
    arrays = [array([row[i] for row in rows], _KINDS[t][1]) for i, t in enumerate(types)]
    arrays = arrays or [pa.array([True] * len(rows), pa.bool_())]
    return pa.table(arrays, names=[name for name, _ in columns(types)])


class Rows:
    """The rows of a relation: at hand until a query reads them, or a query until they are wanted
    at hand. What only kernels read never goes through DuckDB."""

    def __init__(
        self,
        db: Database,
        types: Types,
        *,
        query: str | None = None,
        at_hand: list[Row] | None = None,
    ) -> None:
        self._db, self.types, self._query, self.at_hand = db, types, query, at_hand

    @property
    def query(self) -> str:
        if self._query is None:
            self._query = self._db.load(self.at_hand or [], self.types)
        return self._query

    def fetch(self) -> list[Row]:
        if self.at_hand is None:
            assert self._query is not None
            self.at_hand = self._db.fetch(self._query, self.types)
        return self.at_hand

    def sorted(self, at_once: int) -> Iterator[list[Row]]:
        """In the order of their values, so many at a time."""
        if self.at_hand is not None:
            rows = sorted(self.at_hand)
            return (rows[i : i + at_once] for i in range(0, len(rows), at_once))
        return self._db.fetched(
            f"SELECT * FROM ({self.query}) ORDER BY ALL NULLS FIRST", self.types, at_once
        )
