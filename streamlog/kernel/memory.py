"""What the kernel remembers between steps, and how it forgets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from streamlog.kernel import stores
from streamlog.plan.pivot import seat
from streamlog.plan.python.terms import identifier, stored
from streamlog.plan.steps import Index, Plan, RulePlan, Store
from streamlog.runtime.executor import Row
from streamlog.runtime.frontier import Frontiers
from streamlog.runtime.functions import FUNCTIONS
from streamlog.syntax.ast import Var

_LEAST = 500  # rows that are not worth going through


class Memory:
    """The globals of the generated code (`codegen` says what they are), and their upkeep."""

    def __init__(self, plan: Plan, temporal: set[str]) -> None:
        self.plan, self.temporal = plan, temporal
        self.names: dict[str, Any] = {
            **FUNCTIONS,
            "once": stores.ONCE,
            "seat": seat,
        }
        self.names |= {stored(i): {} for i in plan.indexes}
        self.names |= {f"pending_{r.number}": [] for r in plan.rules}
        self.names |= {f"solutions_{g.number}": [] for g in plan.groupings}
        for pred in plan.arity:
            self.names[f"new_{identifier(pred)}"] = []
            self.names[f"seen_{identifier(pred)}"] = set()
        # The best value of each group, for a min or max within its own recursion.
        self.best: dict[int, dict[tuple[Any, ...], Any]] = {
            g.number: {} for g in plan.groupings if g.improving
        }
        self.names |= {f"best_{number}": best for number, best in self.best.items()}
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
        rows: dict[Any, Any] = self.names[stored(index)]
        return rows

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
            is_there = index.pred == pred and not index.settled
            if is_there and all(row[p] == const.value for p, const in index.where):
                stores.remove(index, self.index(index), row)

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
                rows, arity = self.index(index), self.plan.arity[pred]
                count = stores.forget(index, rows, frontiers.horizon(self.plan.readers[index]))
                if old := self.plan.thinned.get(index):
                    until = frontiers.horizon(old.readers)
                    count -= stores.thin(index, rows, until, old.sufficient, arity)
                left = max(left, count)
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
        """The timestamped rows in memory by predicate, those that wait in candidates too.

        Values that are not stored because no rule reads them are None.
        """
        self.forget(frontiers, exactly=True)
        result: dict[str, set[Row]] = {}
        for index in self.plan.indexes:
            if index.pred in self.temporal:
                result.setdefault(index.pred, set()).update(self.rows(index))
        for rule in self.plan.rules:
            for pred, row in _carried(rule, self.pending(rule)):
                if pred in self.temporal:
                    result.setdefault(pred, set()).add(row)
        return {
            pred: sorted(_most_complete(rows), key=_in_order)
            for pred, rows in sorted(result.items())
        }

    def rows(self, index: Index) -> Iterator[Row]:
        """What an index holds, as rows of the predicate: what it does not know is None."""
        arity = self.plan.arity[index.pred]
        values: list[Any] = [None] * arity
        for position, const in index.where:
            values[position] = const.value
        places = stores.positions(index, arity)
        for row in stores.saved(index, self.index(index)):
            for position, value in zip(places, row, strict=True):
                values[position] = value
            yield tuple(values)

    def save(self, frontiers: Frontiers) -> dict[str, list[Row]]:
        self.forget(frontiers, exactly=True)
        saved = {f"index {i.name}": stores.saved(i, self.index(i)) for i in self.plan.indexes}
        saved |= {f"pending {r.number}": list(self.pending(r)) for r in self.plan.rules}
        saved |= {f"seen {p}": sorted(self.seen(p)) for p in sorted(self.plan.arity)}
        for number, best in self.best.items():
            saved[f"best {number}"] = [(*group, value) for group, value in best.items()]
        return saved

    def load(self, saved: Mapping[str, list[Row]]) -> None:
        for index in self.plan.indexes:
            rows = saved[f"index {index.name}"]
            stores.load(index, self.index(index), rows, self.plan.arity[index.pred])
        for rule in self.plan.rules:
            self.pending(rule)[:] = saved[f"pending {rule.number}"]
        for pred in self.plan.arity:
            self.seen(pred).clear()
            self.seen(pred).update(saved[f"seen {pred}"])
        for number, best in self.best.items():
            best.clear()
            best.update({row[:-1]: row[-1] for row in saved[f"best {number}"]})


def _carried(rule: RulePlan, pending: Iterable[Row]) -> Iterator[tuple[str, Row]]:
    """The rows of goals that candidates hold, for goals whose every value they carry."""
    place = {v.name: i for i, v in enumerate(rule.carries)}
    for pipeline in rule.pipelines:
        goal = pipeline.start
        names = [a.name for a in goal.args if isinstance(a, Var)] if goal else []
        if goal and len(names) == goal.arity and place.keys() >= set(names):
            for row in pending:
                yield goal.pred, tuple(row[place[n]] for n in names)


def _most_complete(rows: set[Row]) -> Iterator[Row]:
    """Without those that another row says more about: one index may know what another does not."""
    by_gaps: dict[frozenset[int], list[Row]] = {}
    for row in rows:
        gaps = frozenset(i for i, value in enumerate(row) if value is None)
        by_gaps.setdefault(gaps, []).append(row)
    for gaps, alike in by_gaps.items():
        fuller = {
            tuple(None if i in gaps else value for i, value in enumerate(row))
            for fewer, others in by_gaps.items()
            if fewer < gaps
            for row in others
        }
        yield from (row for row in alike if row not in fuller)


def _in_order(row: Row) -> tuple[Any, ...]:
    """Rows by value, what is not known first."""
    return tuple((value is not None, value) for value in row)
