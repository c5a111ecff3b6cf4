"""What the kernel remembers between steps, and how it forgets."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from operator import itemgetter
from typing import Any

from streamlog.kernel.codegen import identifier
from streamlog.kernel.frontier import Frontiers
from streamlog.plan.steps import Index, Plan, RulePlan, Store
from streamlog.runtime.executor import BEGIN, END, Row
from streamlog.runtime.functions import FUNCTIONS
from streamlog.syntax.ast import Var

_LEAST = 500  # rows that are not worth going through


def between(rows: Sequence[Row], low: int, high: int) -> Sequence[Row]:
    """The rows from one time to another, out of rows in the order of their times."""
    return rows[bisect_left(rows, (low,)) : bisect_left(rows, (high + 1,))]


def any_between(rows: Sequence[Row] | None, low: int, high: int) -> bool:
    if rows is None:
        return False
    at = bisect_left(rows, (low,))
    return at < len(rows) and rows[at] < (high + 1,)


def prefix(sums: dict[Any, list[Any]], key: Any, rows: Sequence[Row], column: int) -> list[Any]:
    """The sums of a column over the first 0, 1, 2, … of a key's rows, brought up to date."""
    found = sums.get(key)
    if found is None:
        found = sums[key] = [0]
    total = found[-1]
    for row in rows[len(found) - 1 :]:
        total += row[column]
        found.append(total)
    return found


class Memory:
    """The globals of the generated code (`codegen` says what they are), and their upkeep."""

    def __init__(self, plan: Plan, temporal: set[str]) -> None:
        self.plan, self.temporal = plan, temporal
        self.names: dict[str, Any] = {
            **FUNCTIONS,
            "bisect_left": bisect_left,
            "insort": insort,
            "first": itemgetter(0),
            "between": between,
            "any_between": any_between,
            "prefix": prefix,
            "fsum": fsum,
            "never": END,
            "ever": BEGIN,
        }
        self.names |= {f"index_{i.name}": {} for i in plan.indexes}
        self.names |= {f"sums_{i.name}_{column}": {} for i, column in plan.folds}
        self.names |= {f"pending_{r.number}": [] for r in plan.rules}
        self.names |= {f"solutions_{g.number}": [] for g in plan.groupings}
        for pred in plan.arity:
            self.names[f"new_{identifier(pred)}"] = []
            self.names[f"seen_{identifier(pred)}"] = set()
        # The best value of each group, for a min or max within its own recursion.
        self.best: dict[int, dict[tuple[Any, ...], Any]] = {
            g.number: {} for g in plan.groupings if g.improving
        }
        self._group_pred = {g.number: g.pred for g in plan.groupings}
        self._fed: dict[str, int] = {}  # rows since a predicate was last gone through
        self._left: dict[str, int] = {}  # rows that were left then

    def take(self, name: str) -> list[Any]:
        """What has gathered under a name, which is empty afterwards."""
        gathered: list[Any] = self.names[name]
        taken = gathered[:]
        gathered.clear()
        return taken

    def index(self, index: Index) -> dict[Any, Any]:
        stored: dict[Any, Any] = self.names[f"index_{index.name}"]
        return stored

    def seen(self, pred: str) -> set[Row]:
        rows: set[Row] = self.names[f"seen_{identifier(pred)}"]
        return rows

    def pending(self, rule: RulePlan) -> list[Row]:
        rows: list[Row] = self.names[f"pending_{rule.number}"]
        return rows

    def count(self, pred: str, rows: int) -> None:
        self._fed[pred] = self._fed.get(pred, 0) + rows

    def remove(self, pred: str, row: Row) -> None:
        for index in self.plan.indexes:
            has_values = all(row[p] == const.value for p, const in index.where)
            if index.pred == pred and not index.settled and has_values:
                stored, key = self.index(index), _key(index, row)
                stored[key].remove(row)
                if not stored[key]:
                    del stored[key]

    def size(self) -> int:
        """The rows in memory, those too that are due to be forgotten."""
        rows = sum(len(self.pending(rule)) for rule in self.plan.rules)
        for pred in self.temporal:
            stores = {i.store for i in self.plan.indexes if i.pred == pred}
            if stores - {Store.EARLIEST}:
                rows += self._left.get(pred, 0) + self._fed.get(pred, 0)
        return rows + sum(
            len(self.index(i)) for i in self.plan.indexes if i.store is Store.EARLIEST
        )

    # -------------------------------------------------------------- forgetting

    def forget(self, frontiers: Frontiers, exactly: bool = False) -> None:
        """Drop what no future answer needs.

        Unless `exactly`, a predicate is gone through only when as many rows have come as were
        left the last time, so that each row costs a bounded amount of work.
        """
        for pred in self.temporal:
            due = self._fed.get(pred, 0) > max(_LEAST, self._left.get(pred, 0))
            if exactly or due:
                self._fed[pred] = 0
                self._left[pred] = self._forget(pred, frontiers)
        for number, best in self.best.items():
            if self._group_pred[number] not in self.temporal:
                continue
            done = frontiers.complete(self._group_pred[number])
            for group in [g for g in best if g[0] < done]:
                del best[group]

    def _forget(self, pred: str, frontiers: Frontiers) -> int:
        left = 0
        for index in self.plan.indexes:
            if index.pred == pred and index.store is not Store.EARLIEST:
                readers = self.plan.readers[index]
                rows = _drop(self.index(index), frontiers.horizon(readers))
                columns = [r.columns for r in readers if r.columns is not None]
                if columns:
                    read = sorted(frozenset(index.key).union(*columns))
                    rows = _fold(self.index(index), read, frontiers.past(readers))
                left = max(left, rows)
                for _, column in (f for f in self.plan.folds if f[0] == index):
                    self.names[f"sums_{index.name}_{column}"].clear()
        seen = self.seen(pred)
        if seen:
            # A row can be found again only while its predicate is not complete there.
            done = (frontiers.complete(pred),)
            kept = {row for row in seen if row >= done}
            seen.clear()
            seen |= kept
        return max(left, len(seen))

    # ------------------------------------------------------------------ saving

    def holding(self, frontiers: Frontiers) -> Mapping[str, list[Row]]:
        """The timestamped rows in memory by predicate, those that wait in candidates too."""
        self.forget(frontiers, exactly=True)
        result: dict[str, set[Row]] = {}
        for index in self.plan.indexes:
            if index.pred in self.temporal:
                result.setdefault(index.pred, set()).update(self._rows(index))
        for rule in self.plan.rules:
            for pred, row in _carried(rule, self.pending(rule)):
                if pred in self.temporal:
                    result.setdefault(pred, set()).add(row)
        return {pred: sorted(rows) for pred, rows in sorted(result.items())}

    def _rows(self, index: Index) -> list[Row]:
        stored = self.index(index)
        if index.store is Store.EARLIEST:
            return [(t, *(k if isinstance(k, tuple) else (k,))) for k, t in stored.items()]
        return [row for rows in stored.values() for row in rows]

    def save(self, frontiers: Frontiers) -> dict[str, list[Row]]:
        self.forget(frontiers, exactly=True)
        saved = {f"index {i.name}": self._rows(i) for i in self.plan.indexes}
        saved |= {f"pending {r.number}": list(self.pending(r)) for r in self.plan.rules}
        saved |= {f"seen {p}": sorted(self.seen(p)) for p in sorted(self.plan.arity)}
        for number, best in self.best.items():
            saved[f"best {number}"] = [(*group, value) for group, value in best.items()]
        return saved

    def load(self, saved: Mapping[str, list[Row]]) -> None:
        for index in self.plan.indexes:
            stored = self.index(index)
            stored.clear()
            for row in saved[f"index {index.name}"]:
                if index.store is Store.EARLIEST:
                    time, *key = row
                    stored[key[0] if len(key) == 1 else tuple(key)] = time
                else:
                    stored.setdefault(_key(index, row), []).append(row)
        for rule in self.plan.rules:
            self.pending(rule)[:] = saved[f"pending {rule.number}"]
        for pred in self.plan.arity:
            self.seen(pred).clear()
            self.seen(pred).update(saved[f"seen {pred}"])
        for number, best in self.best.items():
            best.clear()
            best.update({row[:-1]: row[-1] for row in saved[f"best {number}"]})


def _key(index: Index, row: Row) -> Any:
    values = tuple(row[p] for p in index.key)
    return values[0] if len(values) == 1 else values


def _drop(stored: dict[Any, list[Row]], horizon: int) -> int:
    """Rows earlier than the horizon; returns how many are left."""
    left = 0
    bound = (horizon,)
    for key in list(stored):
        rows = [row for row in stored[key] if row >= bound]
        left += len(rows)
        if not rows:
            del stored[key]
        elif len(rows) < len(stored[key]):
            stored[key][:] = rows
    return left


def _fold(stored: dict[Any, list[Row]], columns: Sequence[int], past: int) -> int:
    """Of rows earlier than `past` that agree in some columns only the first; returns how many
    are left. That is the contract's `one row per key`."""
    left = 0
    bound = (past,)
    for rows in stored.values():
        seen: dict[Any, Row] = {}
        for row in rows:
            key = tuple(row[c] for c in columns) if row < bound else row
            seen.setdefault(key, row)
        if len(seen) < len(rows):
            rows[:] = seen.values()
        left += len(seen)
    return left


def _carried(rule: RulePlan, pending: Iterable[Row]) -> Iterator[tuple[str, Row]]:
    """The rows of goals that candidates hold, for goals whose every value they carry."""
    place = {v.name: i for i, v in enumerate(rule.carries)}
    for pipeline in rule.pipelines:
        goal = pipeline.start
        names = [a.name for a in goal.args if isinstance(a, Var)] if goal else []
        if goal and len(names) == goal.arity and place.keys() >= set(names):
            for row in pending:
                yield goal.pred, tuple(row[place[n]] for n in names)
