"""Which rows of the past the queries of later batches may still need.

A query over the slice from `low` on looks back to `low + b`. What was released at instants that
are still open is needed too: it must not be released again. A kernel keeps its own state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import frozen

from streamlog.compiler import Compilation, the
from streamlog.kernel.frontier import Frontiers
from streamlog.plan.parts import Strategy
from streamlog.plan.steps import Index, Plan, Reader, Store
from streamlog.plan.walk import joins_of
from streamlog.runtime.executor import BEGIN
from streamlog.syntax.ast import Const


@frozen
class First:
    """Of rows that agree in the key, the first is enough; only those `where` these values stand."""

    name: str
    key: tuple[int, ...]
    where: tuple[tuple[int, Const], ...]


@frozen
class Kept:
    """Rows from a time on, and of the earlier ones the first of each key."""

    since: int
    firsts: tuple[First, ...]


class Keeping:
    def __init__(self, program: Compilation, strategies: Mapping[str, Strategy]) -> None:
        closed, plan = the(program.closed), the(program.plan)
        self._temporal = {p for p in plan.arity if the(closed.schema).is_temporal(p)}
        self._in_kernels = {p for p, s in strategies.items() if s is Strategy.KERNEL}
        self._firsts: dict[str, tuple[First, ...]] = {}
        self._readers: dict[str, list[Reader]] = {}
        indexes = _indexes(plan)
        for time in closed.times:
            head = time.rule.head.pred
            if head in self._in_kernels or not time.can_fire:
                continue
            for goal in time.goals:
                pred = goal.atom.pred
                found = _first(plan, indexes.get(id(goal.atom), ())) if goal.back is None else None
                if found is None:
                    self._readers.setdefault(pred, []).append(Reader(head, goal.back))
                    continue
                first, readers = found
                self._firsts[pred] = tuple(dict.fromkeys((*self._firsts.get(pred, ()), first)))
                self._readers.setdefault(pred, []).extend(readers)

    def kept(self, pred: str, frontiers: Frontiers) -> Kept:
        """What to keep of a predicate when a batch is over."""
        if pred not in self._temporal:
            return Kept(BEGIN, ())
        since = frontiers.horizon(self._readers.get(pred, ()))
        if pred not in self._in_kernels:
            since = min(since, frontiers.complete(pred))
        return Kept(since, self._firsts.get(pred, ()))


def _indexes(plan: Plan) -> Mapping[int, set[Index]]:
    """By the id of a goal's atom, the indexes that it is looked up in."""
    result: dict[int, set[Index]] = {}
    for rule in plan.rules:
        for join in joins_of(rule):
            result.setdefault(id(join.atom), set()).add(join.index)
    return result


def _first(plan: Plan, indexes: Collection[Index]) -> tuple[First, tuple[Reader, ...]] | None:
    """Which first rows will do for a goal, and who may need more of those that are not old yet;
    None if all rows are needed for ever."""
    if any(i.store is not Store.EARLIEST and i not in plan.timeless for i in indexes):
        return None
    if not indexes or len({i.where for i in indexes}) > 1:
        return None
    key: set[int] = set()
    readers: list[Reader] = []
    for index in indexes:
        key |= {*index.key}
        if old := plan.timeless.get(index):
            key |= {*old.columns}
            readers += old.readers
    # Goals may share an index and differ in the others: the key tells their shelves apart.
    name = "_".join([min(i.name for i in indexes), "by", *map(str, sorted(key))])
    return First(name, tuple(sorted(key)), next(iter(indexes)).where), tuple(readers)
