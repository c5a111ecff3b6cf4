"""The rows of the past that queries of later batches may still need, in DuckDB's tables.

What `runtime.keeping` says may go is dropped when as many rows have come as were left the last
time; until then such rows are true rows of the past, and do no harm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import mutable

from streamlog.analysis.sufficient_rows import SufficientRows
from streamlog.duck.database import Database, Rows
from streamlog.runtime.columns import ColumnTypes
from streamlog.runtime.evaluation import clamped
from streamlog.runtime.executor import BEGIN, END, Row
from streamlog.runtime.frontier import Frontiers
from streamlog.runtime.keeping import Keeping, Kept

_LEAST = 1000  # rows that are not worth going through


@mutable
class _Table:
    name: str
    rows: int = 0
    left: int = 0  # when it was last gone through


class Retained:
    def __init__(
        self, db: Database, keeping: Keeping, types: ColumnTypes, preds: Collection[str]
    ) -> None:
        """`preds` are those that queries read or find."""
        self._db, self._keeping, self._types = db, keeping, types
        self._preds = sorted(preds)
        self._tables: dict[str, _Table] = {}

    def rows(self) -> dict[str, Rows]:
        """By predicate, for the next batch."""
        return {
            pred: Rows(self._db, self._types[pred], query=f"SELECT * FROM {table.name}")
            for pred, table in self._tables.items()
            if table.rows
        }

    def take(self, new: Mapping[str, Rows | None], now: Frontiers) -> None:
        """A batch is over."""
        for pred in self._preds:
            kept, rows = self._keeping.kept(pred, now), new.get(pred)
            if rows is not None and (kept.since < END or kept.few):
                self._append(pred, rows)
            table = self._tables.get(pred)
            if table is not None and table.rows - table.left > max(_LEAST, table.left):
                self._forget(table, kept, now)

    def _append(self, pred: str, rows: Rows) -> None:
        table = self._tables.get(pred)
        if table is None:
            table = _Table(f"state_{self._preds.index(pred)}")
            table.rows = self._db.count(f"CREATE OR REPLACE TABLE {table.name} AS {rows.query}")
            self._tables[pred] = table
        else:
            table.rows += self._db.count(f"INSERT INTO {table.name} {rows.query}")

    def forget(self, now: Frontiers) -> None:
        """All that may go."""
        for pred, table in self._tables.items():
            self._forget(table, self._keeping.kept(pred, now), now)

    def _forget(self, table: _Table, kept: Kept, now: Frontiers) -> None:
        if kept.since > BEGIN:
            text, values = _needed(table.name, kept, now)
            left = f"{table.name}_left"
            table.rows = self._db.count(f"CREATE TABLE {left} AS {text}", values)
            self._db.execute(f"DROP TABLE {table.name}")
            self._db.execute(f"ALTER TABLE {left} RENAME TO {table.name}")
        table.left = table.rows

    # ----------------------------------------------------------------------------- at hand

    def size(self) -> int:
        return sum(table.rows for table in self._tables.values())

    def holding(self) -> dict[str, list[Row]]:
        return {pred: sorted(rows.fetch()) for pred, rows in sorted(self.rows().items())}

    def load(self, rows: Mapping[str, Iterable[Row]]) -> None:
        for pred, some in rows.items():
            self._append(pred, Rows(self._db, self._types[pred], at_hand=list(some)))


def _needed(table: str, kept: Kept, now: Frontiers) -> tuple[str, list[object]]:
    parts = [f"(SELECT * FROM {table} WHERE c0 >= {clamped(kept.since)})"]
    values: list[object] = []
    for few in kept.few:
        old = f"SELECT * FROM {table} WHERE c0 < {clamped(few.until(now))}"
        for position, const in few.where:
            old += f" AND c{position} = ?"
            values.append(const.value)
        parts.append(f"({sufficient(few.rows, old)})")
    return " UNION ".join(parts), values


def sufficient(which: SufficientRows, rows: str) -> str:
    """Of rows which are old, those that are sufficient."""
    best = which.best
    if best is None:
        return _one_of_each(rows, which.columns, "c0")
    order = f"c{best.column}{' DESC' if best.highest else ''}"
    if best.count == 1 and best.group == which.columns:
        return _one_of_each(rows, best.group, order)
    over = f"{_over(best.group)} ORDER BY {order}"
    top = f"SELECT * FROM ({rows}) QUALIFY dense_rank() OVER ({over}) <= {best.count}"
    return _one_of_each(top, which.columns, "c0")


def _one_of_each(rows: str, key: Sequence[int], order: str) -> str:
    """Of rows that agree in the key, the first in an order."""
    return f"SELECT * FROM ({rows}) QUALIFY row_number() OVER ({_over(key)} ORDER BY {order}) = 1"


def _over(key: Sequence[int]) -> str:
    return f"PARTITION BY {', '.join(f'c{column}' for column in key)}" if key else ""
