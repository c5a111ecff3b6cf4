"""Closures by the ends of paths (`plan.closures`): all beginnings of one end at a time, as a set.

What is known of a path is stored by its end and its beginning: its cost, or its timestamp if it
has no other; and so are the rows of the base along which paths go on. The innermost loop is an
operation on sets, or one over a dict where costs are compared; it is written for the columns at
hand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

from streamlog.plan.paths import Closure
from streamlog.runtime.executor import BEGIN, Row
from streamlog.runtime.functions import whole

Known: TypeAlias = defaultdict[Any, dict[Any, Any]]  # by end and beginning
Watch: TypeAlias = Callable[[Any, int], None]  # an instant, how many paths are new in a round

# A round: `changed` has by end the beginnings of new paths, and so has what is returned.
_SETS = """
def spread(changed, known, arcs, at):
    following = {}
    for middle, starts in changed.items():
        for end in arcs.get(middle, ()):
            into = known[end]
            new = starts.difference(into)
            if new:
                into.update(dict.fromkeys(new, at))
                if end in following:
                    following[end] |= new
                else:
                    following[end] = new
    return following
"""
_COSTS = """
def spread(changed, known, arcs, at):
    following = {{}}
    for middle, starts in changed.items():
        before = known[middle]
        for end, weight in arcs.get(middle, {{}}).items():
            into = known[end]
            new = []
            for start in starts:
                cost = before[start]
                cost = {combined}
                old = into.get(start)
                if old is None or cost {better} old:
                    into[start] = cost
                    new.append(start)
            if new:
                if end in following:
                    following[end].update(new)
                else:
                    following[end] = set(new)
    return following
"""
_COMBINED = {
    "+": "cost + weight",
    "max": "cost if cost >= weight else weight",
    "min": "cost if cost <= weight else weight",
}


class Closing:
    """The paths of one predicate."""

    def __init__(self, closure: Closure, arity: int, temporal: bool) -> None:
        self.closure, self._temporal = closure, temporal
        self._cost = closure.cost
        if temporal and not closure.renewed:
            self._cost = None  # the timestamp of the instant
        self._known: Known = defaultdict(dict)
        self._since: Known = defaultdict(dict)  # timestamps, where there is a cost too
        self._arcs: Known = defaultdict(dict)
        source = _SETS
        if self._cost is not None:
            better = "<" if self._cost.best == "min" else ">"
            source = _COSTS.format(combined=_COMBINED[self._cost.combine or "+"], better=better)
        self._spread = _compiled(source, "spread")
        self._rows = _compiled(_rows(closure, arity, temporal), "rows")
        self._start, self._end = itemgetter(*closure.source), itemgetter(*closure.target)

    def extend(self, base: list[Row], watch: Watch) -> list[Row]:
        """The new rows of the closure, for new rows of the base, which come in the order of time
        over all calls."""
        if not self._temporal:
            return self._at(BEGIN, base, watch)
        base.sort(key=itemgetter(0))
        found: list[Row] = []
        for at, rows in groupby(base, key=itemgetter(0)):
            found += self._at(at, rows, watch)
        return found

    def _at(self, at: Any, base: Iterable[Row], watch: Watch) -> list[Row]:
        changed = self._begin(at, base)
        new: dict[Any, set[Any]] = {}
        while changed:
            watch(at, sum(map(len, changed.values())))
            for end, starts in changed.items():
                if end in new:
                    new[end] |= starts
                else:
                    new[end] = set(starts)
            changed = self._spread(changed, self._known, self._arcs, at)
        found: list[Row] = []
        for end, starts in new.items():
            known = self._known[end]
            if self._cost is not None:
                if self._cost.combine == "+":
                    whole(min(map(known.__getitem__, starts)))
                    whole(max(map(known.__getitem__, starts)))
                if self._temporal:
                    self._since[end].update(dict.fromkeys(starts, at))
            found += self._rows(at, end, starts, known)
        return found

    def _begin(self, at: Any, base: Iterable[Row]) -> dict[Any, set[Any]]:
        """The rows of the base that say something new are stored; they are paths, and lengthen
        the paths that end where they begin."""
        known, arcs, cost = self._known, self._arcs, self._cost
        changed: dict[Any, set[Any]] = {}
        for row in base:
            start, end = self._start(row), self._end(row)
            into = known[end]
            weight: Any = at if cost is None else row[cost.column]
            if start in into and (cost is None or not self._is_better(weight, into[start])):
                continue
            into[start] = arcs[start][end] = weight
            changed.setdefault(end, set()).add(start)
        # Paths that were there before go on along the new rows; those found here go on by rounds.
        for end, starts in list(changed.items()):
            for start in list(starts):
                if before := known.get(start):
                    one = {start: {end: arcs[start][end]}}
                    more = self._spread({start: set(before)}, known, one, at)
                    for at_end, others in more.items():
                        changed[at_end] |= others
        return changed

    def _is_better(self, value: Any, known: Any) -> bool:
        assert self._cost is not None
        return bool(value < known if self._cost.best == "min" else value > known)

    # ------------------------------------------------------------------------------ state

    def size(self) -> int:
        return sum(map(len, self._known.values())) + sum(map(len, self._arcs.values()))

    def rows(self) -> list[Row]:
        """All paths, as rows of the predicate."""
        found: list[Row] = []
        for end, known in self._known.items():
            if not self._temporal:
                found += self._rows(BEGIN, end, known, known)
                continue
            for start, value in known.items():
                at = value if self._cost is None else self._since[end][start]
                found += self._rows(at, end, (start,), known)
        return found

    def arcs(self) -> list[Row]:
        """The rows of the base along which paths go on, with the timestamp of the path."""
        found: list[Row] = []
        for start, ends in self._arcs.items():
            for end, weight in ends.items():
                at = weight if self._cost is None else self._since.get(end, {}).get(start, BEGIN)
                found += self._rows(at, end, (start,), {start: weight})
        return found

    def load(self, rows: Sequence[Row], arcs: Sequence[Row]) -> None:
        for held in (self._known, self._since, self._arcs):
            held.clear()
        for row in rows:
            start, end = self._start(row), self._end(row)
            at: Any = row[0] if self._temporal else BEGIN
            self._known[end][start] = at if self._cost is None else row[self._cost.column]
            if self._temporal and self._cost is not None:
                self._since[end][start] = at
        for row in arcs:
            weight: Any = row[0] if self._temporal else BEGIN
            if self._cost is not None:
                weight = row[self._cost.column]
            self._arcs[self._start(row)][self._end(row)] = weight


def _rows(closure: Closure, arity: int, temporal: bool) -> str:
    """The rows of paths with one end, for these columns."""
    places: dict[int, str] = {}
    for name, columns in (("end", closure.target), ("start", closure.source)):
        for at, column in enumerate(columns):
            places[column] = name if len(columns) == 1 else f"{name}[{at}]"
    if closure.cost is not None:
        places[closure.cost.column] = "known[start]"
    if temporal:
        places[0] = "at"
    row = ", ".join(places[column] for column in range(arity))
    return f"def rows(at, end, starts, known):\n    return [({row},) for start in starts]\n"


def _compiled(source: str, name: str) -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec(compile(source, "<streamlog closure>", "exec"), names)
    made: Callable[..., Any] = names[name]
    return made
