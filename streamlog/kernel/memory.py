"""What the kernel remembers between steps, and how it forgets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamlog.kernel import stores
from streamlog.kernel.closing import Closing
from streamlog.kernel.state import RuleState, State
from streamlog.plan.steps import Index, Plan, Store
from streamlog.runtime.executor import Row
from streamlog.runtime.frontier import Frontiers
from streamlog.runtime.indexes import fill
from streamlog.syntax.ast import Var

_LEAST = 500  # rows that are not worth going through


class Memory:
    """The upkeep of the state."""

    def __init__(
        self, plan: Plan, temporal: set[str], state: State, closures: Mapping[str, Closing]
    ) -> None:
        self.plan, self.temporal, self.state, self.closures = plan, temporal, state, closures
        self._improving = {n: g for n, g in state.groups.items() if g.grouping.improving}
        self._fed: dict[str, int] = {}  # rows since a predicate was last gone through
        self._left: dict[str, int] = {}  # rows that were left then

    def count(self, pred: str, rows: int) -> None:
        self._fed[pred] = self._fed.get(pred, 0) + rows

    def size(self) -> int:
        """The rows in memory, those too that are due to be forgotten."""
        rows = sum(len(rule.pending) for rule in self.state.rules.values())
        rows += sum(made.size() for pred, made in self.closures.items() if pred in self.temporal)
        for pred, relation in self.state.relations.items():
            if pred in self.temporal and {i.store for i in relation.indexes} - {Store.EARLIEST}:
                rows += self._left.get(pred, 0) + self._fed.get(pred, 0)
            kept = (held for i, held in relation.indexes.items() if i.store is Store.EARLIEST)
            rows += sum(map(len, kept))
        return rows

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
        for group in self._improving.values():
            if group.grouping.pred in self.temporal:
                done = frontiers.complete(group.grouping.pred)
                for key in [k for k in group.best if k[0] < done]:
                    del group.best[key]

    def _forget(self, pred: str, frontiers: Frontiers) -> int:
        left, relation, arity = 0, self.state.relations[pred], self.plan.arity[pred]
        for index, rows in relation.indexes.items():
            if index.store is not Store.EARLIEST:
                readers = self.plan.readers[index]
                count = stores.forget(index, rows, frontiers.horizon(readers))
                if index not in self.state.derived:
                    needed = frontiers.elsewhere(readers)
                    count -= stores.forget_elsewhere(index, rows, needed, arity)
                if old := self.plan.thinned.get(index):
                    until = frontiers.horizon(old.readers)
                    count -= stores.thin(index, rows, until, old.sufficient, arity)
                left = max(left, count)
                for made in self.state.derived.get(index, ()):
                    made.forget(rows)
        seen = relation.seen
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
        for pred, made in self.closures.items():
            if pred in self.temporal:
                result.setdefault(pred, set()).update(made.rows())
        for rule in self.state.rules.values():
            for pred, row in _carried(rule):
                if pred in self.temporal:
                    result.setdefault(pred, set()).add(row)
        return {
            pred: sorted(_most_complete(rows), key=_in_order)
            for pred, rows in sorted(result.items())
        }

    def rows(self, index: Index) -> Iterator[Row]:
        """What an index holds."""
        return self._whole(index, stores.saved(index, self.state.stored(index)))

    def _whole(self, index: Index, saved: list[Row]) -> Iterator[Row]:
        """As rows of the predicate: what the index does not know is None."""
        arity = self.plan.arity[index.pred]
        values: list[Any] = [None] * arity
        for position, const in index.where:
            values[position] = const.value
        places = stores.positions(index, arity)
        for row in saved:
            for position, value in zip(places, row, strict=True):
                values[position] = value
            yield tuple(values)

    def save(self, frontiers: Frontiers) -> dict[str, list[Row]]:
        self.forget(frontiers, exactly=True)
        state, saved = self.state, {}
        for index in self.plan.indexes:
            saved[f"index {index.name}"] = stores.saved(index, state.stored(index))
        for number, rule in state.rules.items():
            saved[f"pending {number}"] = list(rule.pending)
        for pred, relation in sorted(state.relations.items()):
            saved[f"seen {pred}"] = sorted(relation.seen)
        for number, group in self._improving.items():
            saved[f"best {number}"] = [(*key, value) for key, value in group.best.items()]
        for pred, made in self.closures.items():
            saved[f"paths {pred}"], saved[f"arcs {pred}"] = made.rows(), made.arcs()
        return saved

    def load(self, saved: Mapping[str, list[Row]]) -> None:
        state = self.state
        for index in self.plan.indexes:
            state.stored(index).clear()
            fill(index, state.stored(index), self._whole(index, saved[f"index {index.name}"]))
        for number, rule in state.rules.items():
            rule.pending[:] = saved[f"pending {number}"]
        for pred, relation in state.relations.items():
            relation.seen.clear()
            relation.seen.update(saved[f"seen {pred}"])
        for number, group in self._improving.items():
            group.best.clear()
            group.best.update({row[:-1]: row[-1] for row in saved[f"best {number}"]})
        for pred, made in self.closures.items():
            made.load(saved[f"paths {pred}"], saved[f"arcs {pred}"])


def _carried(state: RuleState) -> Iterator[tuple[str, Row]]:
    """The rows of goals that candidates hold, for goals whose every value they carry."""
    place = {v.name: i for i, v in enumerate(state.rule.carries)}
    for pipeline in state.rule.pipelines:
        goal = pipeline.start
        names = [a.name for a in goal.args if isinstance(a, Var)] if goal else []
        if goal and len(names) == goal.arity and place.keys() >= set(names):
            for row in state.pending:
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
