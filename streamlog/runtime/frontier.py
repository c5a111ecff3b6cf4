"""How far each predicate is complete, and what follows: who may be decided, what may go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from streamlog.analysis.builtins import TICK
from streamlog.analysis.contract import Contract
from streamlog.plan.steps import Reader, RulePlan
from streamlog.runtime.executor import BEGIN, END


def delays(contract: Contract, streams: Collection[str]) -> dict[str, dict[str, int | None]]:
    """By predicate and stream, how far beyond a fact the stream must have come for the fact to be
    certain; None: to its end."""
    derived = {p.predicate.name: {d.stream: d.by for d in p.delays} for p in contract.predicates}
    return derived | {s: {s: 0} for s in streams} | {TICK: dict.fromkeys(streams, 0)}


class Frontiers:
    """`complete(p)` is the time before which everything of p is known: the least, over the
    streams it depends on, of the stream's progress minus the delay (TSA's propagation)."""

    def __init__(self, contract: Contract, streams: Collection[str]) -> None:
        self._delays = delays(contract, streams)
        self._complete: dict[str, int] = {}
        self.move({})  # nothing has come

    def move(self, progress: Mapping[str, int]) -> None:
        self._complete = {
            pred: min((_back(progress.get(s, BEGIN), by) for s, by in mine.items()), default=END)
            for pred, mine in self._delays.items()
        }

    def complete(self, pred: str) -> int:
        return self._complete.get(pred, END)

    def foresight(self, pred: str) -> int:
        """How far beyond the progress of its streams a predicate is complete."""
        behind = self._delays.get(pred, {}).values()
        if not behind or None in behind:
            return 0
        return max(0, -max(by for by in behind if by is not None))

    def limit(self, rule: RulePlan) -> int:
        """Candidates of a conjunction earlier than this can be decided."""
        return min((_back(self.complete(a.pred), a.ahead) for a in rule.awaits), default=END)

    def horizon(self, readers: Iterable[Reader]) -> int:
        """Rows earlier than this are needed by none of the readers."""
        return min(
            (BEGIN if r.back is None else _on(self.complete(r.pred), r.back) for r in readers),
            default=END,
        )


def _back(progress: int, by: int | None) -> int:
    if progress >= END:
        return END
    return BEGIN if by is None or progress <= BEGIN else progress - by


def _on(progress: int, by: int) -> int:
    return progress if progress >= END or progress <= BEGIN else progress + by
