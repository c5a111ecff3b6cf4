"""Which rows of the past the queries of later batches may still need.

A query over the slice from `low` on looks back to `low + b`. What was released at instants that
are still open is needed too: it must not be released again. A kernel keeps its own state.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from streamlog.compiler import Compilation, the
from streamlog.kernel.frontier import Frontiers
from streamlog.plan.parts import Strategy
from streamlog.plan.steps import Index, Plan, Reader, Store
from streamlog.plan.walk import joins
from streamlog.runtime.executor import BEGIN


@frozen
class Kept:
    """Rows from a time on, and of the earlier ones the first of each key."""

    since: int
    earliest: tuple[Index, ...]


class Keeping:
    def __init__(self, program: Compilation, strategies: Mapping[str, Strategy]) -> None:
        closed, plan = the(program.closed), the(program.plan)
        self._temporal = {p for p in plan.arity if the(closed.schema).is_temporal(p)}
        self._in_kernels = {p for p, s in strategies.items() if s is Strategy.KERNEL}
        earliest = _earliest(plan)
        self._earliest: dict[str, tuple[Index, ...]] = {}
        self._readers: dict[str, list[Reader]] = {}
        for time in closed.times:
            head = time.rule.head.pred
            if head in self._in_kernels or not time.can_fire:
                continue
            for goal in time.goals:
                pred, index = goal.atom.pred, earliest.get(id(goal.atom))
                if index is not None:
                    known = self._earliest.get(pred, ())
                    self._earliest[pred] = tuple(dict.fromkeys((*known, index)))
                else:
                    self._readers.setdefault(pred, []).append(Reader(head, goal.back))

    def kept(self, pred: str, frontiers: Frontiers) -> Kept:
        """What to keep of a predicate when a batch is over."""
        if pred not in self._temporal:
            return Kept(BEGIN, ())
        since = frontiers.horizon(self._readers.get(pred, ()))
        if pred not in self._in_kernels:
            since = min(since, frontiers.complete(pred))
        return Kept(since, self._earliest.get(pred, ()))


def _earliest(plan: Plan) -> Mapping[int, Index]:
    """By the id of its atom, the index of a goal for which the earliest row is enough."""
    return {
        id(join.atom): join.index
        for rule in plan.rules
        for join in joins(rule.checks)
        if join.index.store is Store.EARLIEST
    }
