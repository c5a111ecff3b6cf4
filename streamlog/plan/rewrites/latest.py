"""The latest row before a time is looked up, not found among all that were there before.

    now(T, S, D) <- ask(T, S), trend(T0, S, D), T0 <= T, not (trend(T1, S, _), T0 < T1, T1 <= T).
        for each ask(T, S): T0 is the latest time of a trend(T1, S, _) with T1 up to T;
        then trend(T0, S, D)

    now(T, S, last(D)) <- ask(T, S), trend(T0, S, D), T0 <= T.
        likewise

So no pair of a question and a trend is ever made. The highest or lowest of another column goes
the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from streamlog.analysis.better_row import BetterRow, better_rows
from streamlog.plan.conjunction import Conjunction
from streamlog.plan.order import range_join
from streamlog.plan.steps import Fold, Store
from streamlog.syntax.ast import Agg, Atom, Comparison, Literal, Term, Var, branches
from streamlog.syntax.walk import map_terms, variables


def latest(found: Conjunction) -> Conjunction:
    """The first goal of which only the best row matters is looked up when that is known."""
    if found.group is not None and (found.group.improving or found.group.distinct):
        return found
    if found.ranked is not None:
        return found
    for goal in found.goals:
        if (own := looked_up_alone(goal, found)) is None:
            continue
        for changed in (_survivor(own, found), _by_order(own, found)):
            if changed is not None:
                return changed
    return found


@frozen
class Own:
    """A goal that can be looked up when a candidate is decided, with what depends on it."""

    goal: Atom
    bound: set[str]  # by the other goals
    names: set[str]  # bound by this one, or computed from what is
    tests: Sequence[Literal]  # that speak of them


def looked_up_alone(goal: Atom, found: Conjunction) -> Own | None:
    """A goal of another component can wait until a candidate is decided, if the candidate's
    timestamp is known without it."""
    component_of = found.program.component_of
    others = [g for g in found.goals if g is not goal]
    if (
        found.time_of(goal) is None
        or component_of[goal.pred] == component_of[found.rule.head.pred]
        or all(found.time_of(g) is None for g in others)
    ):
        return None
    bound = _names(others)
    names = _names([goal]) - bound
    while more := _names(t for t in found.tests if _names([t]) & names) - bound - names:
        names |= more
    if names & _names(found.head[:1]):
        return None
    return Own(goal, bound, names, [t for t in found.tests if _names([t]) & names])


def _survivor(own: Own, found: Conjunction) -> Conjunction | None:
    """If a negation rules out all rows but the best."""
    for negation in found.negations:
        for better in better_rows(own.goal, negation.body, own.bound | own.names):
            value = own.goal.args[better.column]
            if not isinstance(value, Var) or value.name not in own.names:
                continue
            if not _is_awaited(own.goal, better.rival, found) or not _is_one_of(own, better):
                continue
            bounds: list[Literal] = list(better.bounds)
            join, used = range_join(better.rival, bounds, own.bound, found.program.schema)
            if join.index.store is Store.BY_TIME and len(used) == len(bounds):
                fold = Fold(value, "max" if better.highest else "min", join, better.column)
                left = tuple(n for n in found.negations if n is not negation)
                return _looked_up(own, fold, evolve(found, negations=left))
    return None


def _is_awaited(goal: Atom, rival: Atom, found: Conjunction) -> bool:
    """Whether all rows of the goal have come when the negation is decided. Of the earliest row
    that is not so: it is known before later ones have come."""
    mine, its = found.time_of(goal), found.time_of(rival)
    if mine is None or its is None or mine.ahead is None or its.ahead is None:
        return False
    return mine.ahead <= its.ahead


def _is_one_of(own: Own, better: BetterRow) -> bool:
    """Whether each row of the goal is its rival's too, but for the column; and nothing is asked
    of the rival that is not known before."""
    rival = better.rival
    if _names(rival.args[position] for position in better.group) & own.names:
        return False
    mine, its = own.goal.args[0], rival.args[0]

    def as_mine(term: Term) -> Term:
        return mine if term == its else term

    wanted = [map_terms(bound, as_mine) for bound in better.bounds]
    return all(any(_implies(t, w) for t in own.tests) for w in wanted)


def _implies(test: Literal, wanted: Comparison) -> bool:
    """`T0 < T` implies `T0 <= T`."""
    if not isinstance(test, Comparison):
        return False
    ops = {test.op, f"{test.op}="} if test.op in ("<", ">") else {test.op}
    return wanted.op in ops and (test.left, test.right) == (wanted.left, wanted.right)


def _by_order(own: Own, found: Conjunction) -> Conjunction | None:
    """If an aggregate takes the value that came first, or last."""
    time = own.goal.args[0]
    rules = found.program.schema.rules_of[found.rule.head.pred]
    match [a for a in found.head if isinstance(a, Agg)]:
        case [Agg("first" | "last" as func)]:
            pass
        case _:
            return None
    others = [a for a in found.head if not isinstance(a, Agg)]
    join, used = range_join(own.goal, list(own.tests), own.bound, found.program.schema)
    if (
        len(rules) > 1
        or len(branches(found.rule.body)) > 1
        or not isinstance(time, Var)
        or not time.is_written
        or join.index.store is not Store.BY_TIME
        or len(used) < len(own.tests)
        or own.names & _names([*others, *found.negations])
    ):
        return None
    return _looked_up(own, Fold(time, "max" if func == "last" else "min", join, 0), found)


def _looked_up(own: Own, fold: Fold, found: Conjunction) -> Conjunction:
    return evolve(
        found,
        goals=tuple(g for g in found.goals if g is not own.goal),
        tests=tuple(t for t in found.tests if not any(t is o for o in own.tests)),
        fold=fold,
        after=(own.goal, *own.tests),
    )


def _names(nodes: Iterable[Term | Literal]) -> set[str]:
    return {v.name for node in nodes for v in variables(node)}
