"""The order of the steps: what is bound decides what comes next, and through which index.

Tests and equations come as soon as their variables are bound. Then comes the goal with the most
bound columns; comparisons that bound its timestamp on one side or both turn into a range.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from types import MappingProxyType

from attrs import evolve

from streamlog.analysis.bounds import time_bound
from streamlog.analysis.builtins import FILTERS
from streamlog.analysis.equations import solve
from streamlog.analysis.ranges import FLOATS, INTEGERS, Range, Ranges, may_fail
from streamlog.analysis.safety import OpenPositions, bound_variables
from streamlog.analysis.schema import Schema
from streamlog.plan.steps import Exists, Extend, Filter, Index, Join, Step, Store
from streamlog.syntax.ast import (
    FIRST_INSTANT,
    LAST_INSTANT,
    Atom,
    BinOp,
    Call,
    Choice,
    Comparison,
    Const,
    Literal,
    Neg,
    Not,
    Term,
    Var,
)
from streamlog.syntax.walk import variables, walk

CLOSED: OpenPositions = MappingProxyType({})
UNKNOWN: Ranges = MappingProxyType({})  # any number
_INSTANTS = Range(FIRST_INSTANT, LAST_INSTANT)


def in_order(
    literals: Iterable[Literal],
    bound: frozenset[str],
    schema: Schema,
    not_itself: Collection[int] = (),
    open_positions: OpenPositions = CLOSED,
    ranges: Ranges = UNKNOWN,
    skips: Ranges | None = None,
) -> tuple[Step, ...]:
    """Steps that satisfy all the literals, when the variables in `bound` have values; `ranges` are
    those of all variables, and tell what may fail. What may fail within the ranges `skips` holds
    for nothing then.

    `not_itself` has the numbers of goals that must not match the row the pipeline started from;
    `open_positions` must be bound before a goal is looked up.
    """
    literals = tuple(literals)
    goals = [x for x in literals if isinstance(x, Atom) and x.pred not in FILTERS]
    # What may fail comes last: others may rule it out.
    tests, relying, risky = _by_risk(literals, goals, bound, ranges)
    known = set(bound)
    steps: list[Step] = []

    def worth(goal: Atom) -> tuple[bool, int, bool]:
        """All columns bound, else most of them; and rather a table."""
        unknown = sum(isinstance(a, Var) and a.name not in known for a in goal.args)
        return not unknown, goal.arity - unknown, not schema.is_temporal(goal.pred)

    while goals or tests or relying or risky:
        asking = [goal for goal in goals if _can_ask(goal, known, open_positions)]
        later = [x for x in relying if not _is_at_risk(x, goals, tests, known)]
        if ready := _ready([*tests, *(later if asking else (*relying, *risky))], known):
            literal, step = ready
            steps.append(evolve(step, skips=True) if _is_skipped(literal, skips) else step)
            tests = [x for x in tests if x is not literal]
            relying = [x for x in relying if x is not literal]
            risky = [x for x in risky if x is not literal]
            known |= _binds(step)
            continue
        if not asking:
            raise ValueError("a variable is bound nowhere")
        goal = max(asking, key=worth)
        goals = [x for x in goals if x is not goal]
        # A range cannot fail.
        limits = [x for x in (*tests, *relying, *risky) if not _is_skipped(x, skips)]
        join, used = range_join(goal, limits, known, schema)
        tests = [x for x in tests if not any(x is u for u in used)]
        relying = [x for x in relying if not any(x is u for u in used)]
        risky = [x for x in risky if not any(x is u for u in used)]
        steps.append(evolve(join, not_itself=goal.number in not_itself))
        known |= _names(goal)
    return tuple(steps)


def _can_ask(goal: Atom, known: Set[str], open_positions: OpenPositions) -> bool:
    return all(_names(goal.args[p]) <= known for p in open_positions.get(goal.pred, ()))


def _names(literal: Literal | Term) -> set[str]:
    return {v.name for v in variables(literal)}


def _binds(step: Step) -> set[str]:
    return {step.var.name} if isinstance(step, Extend) else set()


def _ready(rest: list[Literal], known: set[str]) -> tuple[Literal, Filter | Extend] | None:
    for literal in rest:
        match literal:
            case Comparison():
                unknown = _names(literal) - known
                if not unknown:
                    return literal, Filter(literal)
                if literal.op == "=" and len(unknown) == 1:
                    solved = solve(literal, unknown.pop())
                    if solved is not None:
                        return literal, Extend(*solved)
            case Atom(pred) if pred in FILTERS and _names(literal) <= known:
                return literal, Filter(literal)
            case Atom() | Not() | Choice():
                pass
    return None


def _is_at_risk(
    test: Literal, goals: Sequence[Atom], tests: Sequence[Literal], known: Set[str]
) -> bool:
    """Whether something to come says what values a test may meet: a goal, or another test."""
    met, to_come = _names(test) & known, {name for goal in goals for name in _names(goal)}
    return bool(met & to_come) or any(
        met & _names(other) and _names(other) - known <= to_come for other in tests
    )


def _by_risk(
    literals: Iterable[Literal], goals: Sequence[Atom], bound: Iterable[str], ranges: Ranges
) -> tuple[list[Literal], list[Literal], list[Literal]]:
    """The tests that cannot fail, then sums that give a goal its key; those that rely on other
    goals and tests not to fail, as `6 // N` does on `N > 0`; and those that may fail."""
    given = set(bound).union(*map(_names, goals))
    tests = [x for x in literals if not any(x is g for g in goals)]
    risky = [x for x in tests if _may_fail(x, ranges)]
    keys = [x for x in risky if _is_sum(x) and _names(x) <= given]
    safe = [x for x in tests if not any(x is r for r in risky)]
    whole = {n: r and (INTEGERS if r.is_whole else FLOATS) for n, r in ranges.items()}
    of_rows = {n: r and (_INSTANTS if r.is_whole else FLOATS) for n, r in ranges.items()}
    relying = [x for x in safe if _may_fail(x, of_rows if _adds_only(x) else whole)]
    safe = [x for x in safe if not any(x is r for r in relying)]
    return [*safe, *keys], relying, [x for x in risky if not any(x is k for k in keys)]


def _is_sum(literal: Literal) -> bool:
    """Whether it fails at most for numbers beyond 64 bits, which no row has."""
    return isinstance(literal, Comparison) and literal.op == "=" and _adds_only(literal)


def _adds_only(literal: Literal) -> bool:
    if not isinstance(literal, Comparison):
        return False
    parts = walk((literal.left, literal.right))
    return all(
        isinstance(t, Var | Const | Neg) or (isinstance(t, BinOp) and t.op in ("+", "-"))
        for t in parts
    )


def _may_fail(literal: Literal, ranges: Ranges) -> bool:
    return isinstance(literal, Comparison | Atom) and may_fail(literal, ranges)


def _is_skipped(literal: Literal, skips: Ranges | None) -> bool:
    return skips is not None and _may_fail(literal, skips)


def range_join(
    goal: Atom, rest: list[Literal], known: set[str], schema: Schema
) -> tuple[Join, list[Literal]]:
    """The goal through an index, and the comparisons that its range makes superfluous."""
    key = tuple(
        i
        for i, arg in enumerate(goal.args)
        if isinstance(arg, Const) or (isinstance(arg, Var) and arg.name in known)
    )
    time = goal.args[0] if goal.args else None
    if not schema.is_temporal(goal.pred) or 0 in key or not isinstance(time, Var):
        return Join(goal, Index(goal.pred, key, Store.ROWS)), []
    bounds: dict[str, list[Term]] = {"low": [], "high": []}
    used: list[Literal] = []
    for literal in rest:
        found = time_bound(literal, time, known)
        if found is not None:
            bounds[found[0]].append(found[1])
            used.append(literal)
    if not used:
        return Join(goal, Index(goal.pred, key, Store.ROWS)), []
    low, high = _strongest(bounds["low"], "max"), _strongest(bounds["high"], "min")
    return Join(goal, Index(goal.pred, key, Store.BY_TIME), low, high), used


def _strongest(terms: list[Term], function: str) -> Term | None:
    if len(terms) < 2:
        return terms[0] if terms else None
    return Call(function, tuple(terms), span=terms[0].span)


def exists(
    literals: Iterable[Literal],
    bound: frozenset[str],
    schema: Schema,
    wanted: bool,
    open_positions: OpenPositions = CLOSED,
    ranges: Ranges = UNKNOWN,
    skips: Ranges | None = None,
) -> Exists:
    """Whether a conjunction has a solution; its other variables are its own."""

    def ordered(some: Iterable[Literal], known: frozenset[str]) -> tuple[Step, ...]:
        return in_order(some, known, schema, (), open_positions, ranges, skips)

    literals = tuple(literals)
    negations = [x for x in literals if isinstance(x, Not)]
    positive = [x for x in literals if not isinstance(x, Not)]
    plain, risky = split_risky(positive, bound, ranges)
    sure = bound_variables(plain, bound, open_positions)
    goals = [x for x in plain if isinstance(x, Atom)]
    if not all(_can_ask(goal, sure, open_positions) for goal in goals):
        plain, risky = (*plain, *risky), ()
    steps = list(ordered(plain if negations else (*plain, *risky), bound))
    known = bound | {n for x in plain for n in _names(x)}
    inside = known | {n for x in risky for n in _names(x)}
    waiting = [n for n in negations if _names(n) & (inside - known)]

    def none(negation: Not) -> Exists:
        return exists(negation.body, inside, schema, False, open_positions, ranges, skips)

    steps += (none(n) for n in negations if n not in waiting)
    if negations:
        steps += ordered(risky, known)
    steps += map(none, waiting)
    return Exists(tuple(steps), wanted)


def split_risky(
    literals: Iterable[Literal], bound: Iterable[str], ranges: Ranges
) -> tuple[tuple[Literal, ...], tuple[Literal, ...]]:
    """What can be decided first, and the tests that may fail, which come after all others, with
    the tests of what they compute."""
    literals = tuple(literals)
    goals = [x for x in literals if isinstance(x, Atom) and x.pred not in FILTERS]
    first: list[Literal] = [*goals]
    safe, relying, risky = _by_risk(literals, goals, bound, ranges)
    safe += relying
    known = set(bound) | {n for x in first for n in _names(x)}
    while ready := _ready(safe, known):
        literal, step = ready
        first.append(literal)
        safe = [x for x in safe if x is not literal]
        known |= _binds(step)
    return tuple(first), (*safe, *risky)
