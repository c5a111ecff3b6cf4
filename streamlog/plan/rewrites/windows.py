"""An aggregate over a window of time is a fold over rows in the order of time.

    week(T, S, sum(A)) <- asked(T, S), sale(T0, S, A), T0 <= T, T0 > T - 1week.
        for each asked(T, S): the sum of A over sale(T0, S, A) with T0 from T - 1week + 1us to T

So no pair of a question and a sale is ever made; with running sums the fold is two look-ups.
"""

from __future__ import annotations

from attrs import evolve

from streamlog.plan.conjunction import Conjunction
from streamlog.plan.order import range_join
from streamlog.plan.steps import Fold, Store
from streamlog.syntax.ast import Agg, Atom, Var, branches
from streamlog.syntax.walk import variables

FOLDED = "folded"


def windows(found: Conjunction) -> Conjunction:
    """The first goal that is a window around the others becomes a fold."""
    rules = found.program.schema.rules_of[found.rule.head.pred]
    aggregates = [a for a in found.head if isinstance(a, Agg)]
    if (
        found.fold is not None
        or found.group is None
        or found.group.improving
        or found.group.distinct
    ):
        return found
    if len(aggregates) != 1 or len(rules) > 1 or len(branches(found.rule.body)) > 1:
        return found
    for goal in found.goals:
        folded = _folded(goal, aggregates[0], found)
        if folded is not None:
            return folded
    return found


def _folded(goal: Atom, agg: Agg, found: Conjunction) -> Conjunction | None:
    """The others must make one solution for each group, and nothing but the window may speak
    about the goal's own variables."""
    others = tuple(g for g in found.goals if g is not goal)
    bound = {v.name for g in others for v in variables(g)}
    own = {v.name for v in variables(goal)} - bound
    inside = [t for t in found.tests if any(v.name in own for v in variables(t))]
    outside = tuple(t for t in found.tests if not any(t is i for i in inside))
    groups = tuple(a for a in found.head if a is not agg)
    if (
        not agg.kind.is_folded
        or found.time_of(goal) is None
        or all(found.time_of(g) is None for g in others)
        or not bound <= {a.name for a in groups if isinstance(a, Var)}
        or any(v.name in own for x in (*outside, *found.negations, *groups) for v in variables(x))
    ):
        return None
    join, used = range_join(goal, inside, bound, found.program.schema)
    columns = {a: i for i, a in enumerate(goal.args) if isinstance(a, Var)}
    column = columns.get(agg.arg) if isinstance(agg.arg, Var) and agg.func != "count" else None
    if join.index.store is not Store.BY_TIME or len(used) < len(inside):
        return None
    if agg.func != "count" and not column:
        return None
    value = Var(FOLDED, span=agg.span)
    return evolve(
        found,
        head=tuple(value if a is agg else a for a in found.head),
        goals=others,
        tests=outside,
        fold=Fold(value, agg.func, join, column),
        group=None,
    )
