"""From when on predicates are complete that are worked out anew from the history there is.

pc_alarm(T, A) <- pre_alarm(T, A), not (report(T1, A), T - 5min <= T1, T1 < T).
    reads `report` 5 minutes back. If all of its rows are known from 08:07 on, then all answers
    from 08:12 on are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from streamlog.analysis.time.reach import Goal
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


def warm(program: Planned, anew: Iterable[str], since: Mapping[str, int]) -> dict[str, Warm]:
    """Of the predicates that are worked out anew. `since` says from when on all rows are known of
    each other predicate with timestamps.

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
            for goal in time.goals:
                pred = goal.atom.pred
                known = found[pred].at if pred in wanted else since.get(pred, BEGIN)
                at = _needs(goal, known, {**since, **{p: w.at for p, w in found.items()}})
                if at > found[head].at:
                    at = NEVER if endless else at
                    found[head] = Warm(at, Because(time.rule, pred, known))
                    changed = True
        if not changed:
            break
    return found


def _needs(goal: Goal, known: int, since: Mapping[str, int]) -> int:
    """The first time of a head whose rows of this goal are all known."""
    ways = [(known, goal.back), *((since.get(e.stream, BEGIN), e.back) for e in goal.elsewhere)]
    if any(at == BEGIN for at, _ in ways):
        return BEGIN
    return min(NEVER if back is None or at >= NEVER else at - back for at, back in ways)
