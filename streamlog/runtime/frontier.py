"""How far each predicate is complete, and what follows: who may be decided, what may go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from streamlog.analysis.builtins import TICK
from streamlog.analysis.contract import Contract, Delay, Waits
from streamlog.analysis.schema import Schema
from streamlog.plan.steps import Reader, RulePlan
from streamlog.runtime.executor import BEGIN, END


def delays(contract: Contract, schema: Schema) -> dict[str, tuple[Delay, ...]]:
    """By predicate, how far beyond a fact each stream must have come for the fact to be certain."""
    derived = {p.predicate.name: p.delays for p in contract.predicates}
    timelines = {name: (Delay(name, 0, None),) for name in schema.timelines}
    return derived | timelines | {TICK: tuple(Delay(s, 0, None) for s in schema.streams)}


class Frontiers:
    """`complete(p)` is the time before which everything of p is known: the least, over the
    streams it depends on, of the stream's progress minus the delay (TSA's propagation)."""

    def __init__(self, contract: Contract, schema: Schema) -> None:
        self._delays = delays(contract, schema)
        self._complete: dict[str, int] = {}
        self.move({})  # nothing has come

    def move(self, progress: Mapping[str, int]) -> None:
        def come(timeline: str) -> int:
            return progress.get(timeline, BEGIN)

        self._complete = {
            pred: min((_permitted(d.ways, come) for d in mine), default=END)
            for pred, mine in self._delays.items()
        }

    def complete(self, pred: str) -> int:
        return self._complete.get(pred, END)

    def foresight(self, pred: str) -> int:
        """How far beyond the progress of its streams a predicate is complete."""
        behind = [delay.by for delay in self._delays.get(pred, ())]
        if not behind or None in behind:
            return 0
        return max(0, -max(by for by in behind if by is not None))

    def limit(self, rule: RulePlan) -> int:
        """Candidates of a conjunction earlier than this can be decided."""
        return min((_permitted(a.ways, self.complete) for a in rule.awaits), default=END)

    def horizon(self, readers: Iterable[Reader]) -> int:
        """Rows earlier than this are needed by none of the readers."""
        return min((self._since(r, r.back) for r in readers), default=END)

    def elsewhere(self, readers: Iterable[Reader]) -> tuple[Mapping[int, int], ...]:
        """By reader, from when on rows are needed, by the column of their timestamp: a row counts
        if it lies there on each. Empty where timestamps say no more than `horizon`."""
        readers = tuple(readers)
        if not any(r.elsewhere for r in readers):
            return ()
        return tuple(
            {column: self._since(r, back) for column, back in ((0, r.back), *r.elsewhere)}
            for r in readers
        )

    def _since(self, reader: Reader, back: int | None) -> int:
        return BEGIN if back is None else _on(self.complete(reader.pred), back)


def _permitted(ways: Waits, progress: Callable[[str], int]) -> int:
    """Before when what waits in these ways is certain; each is enough."""
    return max(_back(progress(name), by) for name, by in ways)


def _back(progress: int, by: int | None) -> int:
    if progress >= END:
        return END
    return BEGIN if by is None or progress <= BEGIN else progress - by


def _on(progress: int, by: int) -> int:
    return progress if progress >= END or progress <= BEGIN else progress + by
