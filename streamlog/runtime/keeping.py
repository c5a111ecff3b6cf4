"""Which rows of the past the queries of later batches may still need.

A query over the slice from `low` on looks back to `low + b`, or at any row there ever was; of
these a few are sufficient (`analysis.retention`), and lie on shelves of their own. What was
released at instants that are still open is needed too: it must not be released again. A kernel
keeps its own state.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from attrs import frozen

from streamlog.analysis.sufficient_rows import SufficientRows, combined
from streamlog.compiler import Planned
from streamlog.plan.parts import Strategy
from streamlog.plan.steps import Reader
from streamlog.runtime.executor import BEGIN
from streamlog.runtime.frontier import Frontiers
from streamlog.syntax.ast import Atom, Const

Where = tuple[tuple[int, Const], ...]


@frozen
class Few:
    """Of the old rows with these values, those that are enough."""

    where: Where
    rows: SufficientRows
    readers: tuple[Reader, ...]

    @property
    def name(self) -> str:
        """Of its shelf: what lies there must not depend on the order of rules."""
        best = self.rows.best
        how = (best.column, best.highest, best.count, *best.group) if best else ()
        values = [(position, const.value) for position, const in self.where]
        return sha256(repr((values, self.rows.columns, how)).encode()).hexdigest()[:16]

    def until(self, frontiers: Frontiers) -> int:
        """Rows earlier than this are old."""
        return frontiers.horizon(self.readers)


@frozen
class Kept:
    """Rows from a time on, and a few of the earlier ones."""

    since: int
    few: tuple[Few, ...]


class Keeping:
    def __init__(self, program: Planned, strategies: Mapping[str, Strategy]) -> None:
        self._temporal = {p for p in program.plan.arity if program.schema.is_temporal(p)}
        self._in_kernels = {p for p, s in strategies.items() if s is Strategy.KERNEL}
        self._readers: dict[str, list[Reader]] = {}
        found: dict[tuple[str, Where], list[tuple[SufficientRows, Reader]]] = {}
        for need in program.retained.values():
            head, pred = need.rule.head.pred, need.goal.pred
            if head in self._in_kernels:
                continue
            reader = Reader(head, need.back)
            if need.back is None and need.sufficient is not None:
                reader = Reader(head, need.old)
                place = found.setdefault((pred, _where(need.goal)), [])
                place += ((one, reader) for one in need.sufficient)
            self._readers.setdefault(pred, []).append(reader)
        self._few: dict[str, tuple[Few, ...]] = {}
        for (pred, where), uses in found.items():
            readers = tuple(dict.fromkeys(reader for _, reader in uses))
            few = (Few(where, rows, readers) for rows in combined(rows for rows, _ in uses))
            self._few[pred] = (*self._few.get(pred, ()), *few)

    def few(self, pred: str) -> tuple[Few, ...]:
        return self._few.get(pred, ())

    def kept(self, pred: str, frontiers: Frontiers) -> Kept:
        """What to keep of a predicate when a batch is over."""
        if pred not in self._temporal:
            return Kept(BEGIN, ())
        since = frontiers.horizon(self._readers.get(pred, ()))
        if pred not in self._in_kernels:
            since = min(since, frontiers.complete(pred))
        return Kept(since, self.few(pred))


def _where(goal: Atom) -> Where:
    return tuple((p, a) for p, a in enumerate(goal.args) if p > 0 and isinstance(a, Const))
