"""Relations that a recursion by queries adds to, in DuckDB's tables."""

from __future__ import annotations

from streamlog.duck.database import Database, Rows, Types
from streamlog.runtime.fixpoint import Delta


class Total:
    """All rows so far (`runtime.fixpoint.Total`): those from before, and one table."""

    def __init__(self, db: Database, types: Types, before: Rows | None) -> None:
        self._db, self._types, self._before = db, types, before
        self._table: str | None = None
        self.count = 0

    @property
    def rows(self) -> Rows | None:
        pieces = [r.query for r in (self._before, self.added) if r is not None]
        return self._rows(" UNION ALL ".join(f"({p})" for p in pieces)) if pieces else None

    @property
    def added(self) -> Rows | None:
        return None if self._table is None else self._rows(f"SELECT * FROM {self._table}")

    def _rows(self, query: str) -> Rows:
        return Rows(self._db, self._types, query=query)

    def beyond(self, found: Rows) -> Delta[Rows]:
        known = self.rows
        text = f"SELECT DISTINCT * FROM ({found.query})"
        if known is not None:
            text = f"({found.query}) EXCEPT ({known.query})"
        name, count = self._db.stored(text)
        return Delta(self._rows(f"SELECT * FROM {name}"), count)

    def add(self, delta: Delta[Rows]) -> None:
        if self._table is None:
            self._table, self.count = self._db.stored(delta.rows.query)
        elif delta.count:
            self._db.execute(f"INSERT INTO {self._table} {delta.rows.query}")
            self.count += delta.count
