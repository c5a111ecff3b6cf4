"""What a kernel knows of the past, for another version of its program."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from attrs import frozen

from streamlog.kernel.memory import Memory
from streamlog.plan.steps import Index, Store
from streamlog.runtime.executor import Row
from streamlog.runtime.frontier import Frontiers
from streamlog.runtime.indexes import fill

_time: Any = itemgetter(0)


@frozen(eq=False)
class Past:
    memory: Memory
    frontiers: Frontiers

    def complete(self, pred: str) -> int:
        """The time before which all of a predicate is decided."""
        return self.frontiers.complete(pred)

    def foresight(self, pred: str) -> int:
        """How far beyond the progress of its streams a predicate is complete."""
        return self.frontiers.foresight(pred)

    def history(self) -> Mapping[str, tuple[int, list[Row]]]:
        """By predicate, from when on some index has all rows with all their values, and these."""
        memory, plan = self.memory, self.memory.plan
        found: dict[str, tuple[int, list[Row]]] = {}
        for index in plan.indexes:
            pred = index.pred
            is_whole = index.known(plan.arity[pred]) == {*range(plan.arity[pred])}
            is_all = not index.where and index.store is not Store.EARLIEST
            is_settled = pred in memory.temporal and pred not in plan.improving
            elsewhere = self.frontiers.elsewhere(plan.readers[index])
            if not (is_whole and is_all and is_settled) or elsewhere:
                continue
            _, since = self.reach(index)
            if pred not in found or since < found[pred][0]:
                rows = (row for row in memory.rows(index) if _time(row) >= since)
                found[pred] = since, sorted(dict.fromkeys(rows), key=_time)
        return found

    def reach(self, index: Index) -> tuple[int, int]:
        """From when on an index has the rows that are asked for, and from when on all of those;
        of older ones it has those that can stand for the others."""
        since = self.frontiers.horizon(self.memory.plan.readers[index])
        old = self.memory.plan.thinned.get(index)
        return since, since if old is None else max(since, self.frontiers.horizon(old.readers))

    def held(self, index: Index) -> list[Row]:
        """The rows in an index; values that it does not have are None."""
        return list(self.memory.rows(index))

    def preload(self, index: Index, rows: list[Row]) -> None:
        """Rows that have come before the first step: for an index alone, and no other."""
        fill(index, self.memory.state.stored(index), rows)
