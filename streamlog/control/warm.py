"""From when on predicates are complete that are worked out anew from the history there is.

pc_alarm(T, A) <- pre_alarm(T, A), not (report(T1, A), T - 5min <= T1, T1 < T).
    reads `report` 5 minutes back. If all of its rows are known from 08:07 on, then all answers
    from 08:12 on are right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

from attrs import field, frozen

from streamlog.analysis.time.reach import BranchTime, Goal
from streamlog.compiler import Planned
from streamlog.control.layers import NEVER
from streamlog.runtime.executor import BEGIN
from streamlog.syntax.ast import Rule


@frozen
class Because:
    """A goal of a rule that looks back to where not all is known."""

    rule: Rule = field(repr=False, eq=False)
    pred: str
    since: int  # when the history of the predicate begins


@frozen
class Warm:
    at: int  # complete from then on; `BEGIN`: all of it, `NEVER`: nothing
    because: Because | None = None


WHOLE = Warm(BEGIN)


_time: Any = itemgetter(0)
Held = Mapping[tuple[str, str], int]
_NONE: Held = {}


def warm(
    program: Planned, anew: Iterable[str], since: Mapping[str, int], held: Held = _NONE
) -> dict[str, Warm]:
    """Of the predicates that are worked out anew. `since` says from when on all rows are known of
    each other predicate with timestamps; `held`, by head and goal, from when on a rule can look
    them up: it is enough if one positive goal of it is known, and the others are found from there.

    What looks back into its own past, and does not begin with all of it, is never complete.
    """
    wanted = set(anew)
    found = dict.fromkeys(wanted, WHOLE)
    times = [t for t in program.times if t.rule.head.pred in wanted and t.can_fire]
    changed = True
    for number in range(2 * len(wanted) + 2):
        endless = number > len(wanted)
        changed = False
        for time in times:
            head = time.rule.head.pred
            at, because = _of(time, {**since, **{p: w.at for p, w in found.items()}}, held)
            if at > found[head].at:
                found[head] = Warm(NEVER if endless else at, because)
                changed = True
        if not changed:
            break
    return found


def _of(time: BranchTime, since: Mapping[str, int], held: Held) -> tuple[int, Because | None]:
    """From when on a conjunction has all of its rows, and because of which goal."""
    head = time.rule.head.pred

    def first(begins: Callable[[Goal], int], goal: Goal) -> tuple[int, Because]:
        known = begins(goal)
        return _needs(goal, known, since), Because(time.rule, goal.atom.pred, known)

    def whole(goal: Goal) -> int:
        return since.get(goal.atom.pred, BEGIN)

    def looked_up(goal: Goal) -> int:
        return min(whole(goal), held.get((head, goal.atom.pred), NEVER))

    positive = [goal for goal in time.goals if not goal.negated]
    ways: list[list[tuple[int, Because | None]]] = [
        [first(whole if goal is anchor else looked_up, goal) for goal in time.goals]
        for anchor in positive
    ]
    latest = [max(way, key=_time) for way in ways or [[first(whole, g) for g in time.goals]] if way]
    return min(latest, key=_time, default=(BEGIN, None))


def _needs(goal: Goal, known: int, since: Mapping[str, int]) -> int:
    """The first time of a head whose rows of this goal are all known."""
    ways = [(known, goal.back), *((since.get(e.stream, BEGIN), e.back) for e in goal.elsewhere)]
    if any(at == BEGIN for at, _ in ways):
        return BEGIN
    return min(NEVER if back is None or at >= NEVER else at - back for at, back in ways)
