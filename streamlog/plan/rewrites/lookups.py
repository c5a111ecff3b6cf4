"""A goal of which only the existence matters is looked up, not enumerated.

    repeated(T, X) <- msg(T, X), msg(T0, X), T > T0.
        repeated(T, X) for each msg(T, X), if there is a msg(T0, X) with T > T0

So a repetition is found once, not once for each earlier message, and `earliest` applies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve

from streamlog.analysis.time.reach import Goal
from streamlog.plan.conjunction import Conjunction
from streamlog.syntax.ast import Atom, Comparison, Literal, Term
from streamlog.syntax.walk import variables


def lookups(found: Conjunction) -> Conjunction:
    if found.group is not None or found.ranked is not None:  # an aggregate counts every solution
        return found
    for goal in found.goals:
        conditions = _conditions(goal, found)
        if conditions is not None:
            found = evolve(
                found,
                goals=tuple(g for g in found.goals if g is not goal),
                tests=tuple(t for t in found.tests if not any(t is c for c in conditions)),
                lookups=(*found.lookups, (goal, *conditions)),
            )
    return found


def _conditions(goal: Atom, found: Conjunction) -> Sequence[Literal] | None:
    """The tests that belong to a goal of which only the existence matters, if it is one.

    The goal must lie strictly before the head and outside its recursion, so that its rows are
    complete when the head is decided.
    """
    component_of, time = found.program.component_of, found.time_of(goal)
    if component_of[goal.pred] == component_of[found.rule.head.pred]:
        return None
    if time is None or not _is_known_by_another(time, found):
        return None
    bound = _names(g for g in found.goals if g is not goal)
    own = _names([goal]) - bound
    conditions = [t for t in found.tests if _names([t]) & own]
    looked_up = (x for body in found.lookups for x in body)
    others = (t for t in found.tests if t not in conditions)
    if not own or own & _names([*found.head, *found.negations, *looked_up, *others]):
        return None
    if any(isinstance(c, Comparison) and c.op == "=" for c in conditions):
        return None
    return conditions if _names(conditions) <= own | bound else None


def _is_known_by_another(goal: Goal, found: Conjunction) -> bool:
    """Whether another goal's row tells by its arrival that all of this goal's are there.

    A row of a stream at T is passed on when everything before T has come, unless another of its
    timelines has passed it. So it is enough that this goal depends on that stream alone, strictly
    before T, the head's timestamp.
    """
    delays = found.program.delays[goal.atom.pred]
    for other in found.goals:
        at = found.time_of(other)
        if other is goal.atom or at is None or at.elsewhere or not at.ahead == 0 == at.back:
            continue
        delay = delays.get(other.pred)
        if delays.keys() == {other.pred} and delay is not None and goal.ahead is not None:
            return delay + goal.ahead < 0
    return False


def _names(nodes: Iterable[Term | Literal]) -> set[str]:
    return {v.name for node in nodes for v in variables(node)}
