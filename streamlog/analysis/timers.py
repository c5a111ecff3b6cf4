"""Rules that go on by themselves into the future, without an event.

    burning(T + 1s, A) <- burning(T, A), not (stop(E, A), T < E, E <= T + 1s).

Such a rule stands on a cycle of positive goals, makes rows later than those it starts from, and
nothing from outside of the cycle says when to stop. `due(T + 10) <- s(T)` is none: it makes a row
for each `s`; nor is `b(T) <- b(T1), s(T), T1 < T`, which goes as far as `s` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamlog.analysis.builtins import FILTERS
from streamlog.analysis.dependency import strong_components
from streamlog.analysis.time.dbm import ZERO, Dbm, Difference
from streamlog.analysis.time.reach import HEAD, BranchTime
from streamlog.syntax.ast import Atom, Var
from streamlog.syntax.walk import variables


def timers(times: Iterable[BranchTime]) -> tuple[BranchTime, ...]:
    """The conjunctions that go on by themselves."""
    left = [t for t in times if _positive(t)]
    while True:
        cycles = _cycles(left)
        driving = [t for t in left if any(_is_free(t, m, cycles) for m in t.matrices)]
        if len(driving) == len(left):
            return tuple(t for t in left if any(_moves_on(t, m, cycles) for m in t.matrices))
        left = driving


def _positive(time: BranchTime) -> list[Atom]:
    return [x for x in time.body if isinstance(x, Atom) and x.pred not in FILTERS]


def _cycles(times: Iterable[BranchTime]) -> Mapping[str, int]:
    """Numbers for the predicates, equal for those on a cycle of positive goals."""
    reads: dict[str, set[str]] = {}
    for time in times:
        reads.setdefault(time.rule.head.pred, set()).update(a.pred for a in _positive(time))
    found = strong_components(
        sorted({*reads, *(p for goals in reads.values() for p in goals)}),
        lambda p: reads.get(p, ()),
    )
    return {p: number for number, preds in enumerate(found) for p in preds}


def _is_free(time: BranchTime, matrix: Dbm, cycles: Mapping[str, int]) -> bool:
    """Whether the head can be later than any time that something outside its cycle has."""
    own = cycles[time.rule.head.pred]
    outside = [a for a in _positive(time) if cycles[a.pred] != own]
    stamp = time.rule.head.args[0]
    given = {v.name for a in outside for v in variables(a)}
    return (
        len(outside) < len(_positive(time))
        and matrix.most(HEAD, ZERO) is None
        and all(matrix.most(HEAD, name) is None for name in given)
        and not (isinstance(stamp, Var) and stamp.name in given)
    )


def _moves_on(time: BranchTime, matrix: Dbm, cycles: Mapping[str, int]) -> bool:
    """Whether the head can be later than all goals on its cycle."""
    own = cycles[time.rule.head.pred]
    clocks = [g.clock for g in time.goals if not g.negated and cycles[g.atom.pred] == own]
    later = matrix.and_also(Difference(clock, HEAD, -1) for clock in clocks)
    return later is not None and _is_free(time, matrix, cycles)
