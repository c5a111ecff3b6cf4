"""Rows of which a few are wanted, by how many later ones exceed them, are not counted in pairs.

    newer(T, O, N, count(M)) <- traded(T, O), trade(U, N, O, _), trade(V, M, O, _),
        T - 1d <= U, U <= V, V < T, N < M.
    book(T, O, N, C) <- traded(T, O), trade(U, N, O, C), T - 1d <= U, U < T,
        newer(T, O, N, K), K < 4.
        for each traded(T, O): the rows trade(U, N, O, C) with U from T - 1d to T - 1us whose N
        fewer than four rows exceed that are not earlier; K is how many

    book(T, O, N, C) <- traded(T, O), trade(U, N, O, C), T - 1d <= U, U < T, not newer(T, O, N, _).
        likewise, of which none does

A row that so many exceed is never wanted again: those that exceed it leave the window after it. So
only the others are remembered, and each new row is compared with those. Several rows with one N are
counted together, as `newer` does.

The rule must have the goals and the window of the rule that counts; then a row of that rule's first
goal is one of its own, and that there is no count means that it is zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve, frozen

from streamlog.analysis.schema import Kind
from streamlog.plan.conjunction import Conjunction
from streamlog.plan.order import range_join
from streamlog.plan.steps import Join, Ranked, Store
from streamlog.syntax.ast import (
    Agg,
    Atom,
    BinOp,
    Body,
    Comparison,
    Const,
    Literal,
    Not,
    Term,
    Var,
    branches,
)
from streamlog.syntax.walk import map_terms, variables

COUNTED = "counted"  # the number, where the rule has no name for it


def ranks(found: Conjunction) -> Conjunction:
    """The first count that is asked for in this way goes, with the goal whose rows it is of."""
    if found.group is not None or found.fold is not None or found.time is None:
        return found
    for call, negation in _calls(found):
        for counting in _counting(call, found):
            for goal in found.goals:
                changed = _ranked(goal, call, negation, counting, found)
                if changed is not None:
                    return changed
    return found


def _calls(found: Conjunction) -> Iterator[tuple[Atom, Not | None]]:
    yield from ((goal, None) for goal in found.goals)
    for negation in found.negations:
        match negation.body:
            case (Atom() as call,):
                yield call, negation
            case _:
                pass


@frozen
class _Counting:
    """A rule that counts, in the variables of a call."""

    around: tuple[Atom, ...]
    counted: Atom  # the goal whose rows are counted for
    column: int  # of the value that others exceed
    highest: bool
    same_time: bool  # one of the same instant may exceed it too
    at: int  # where a call has the number
    window: Join  # the rows of that goal, up to the latest that may exceed them


def _counting(call: Atom, found: Conjunction) -> Iterator[_Counting]:
    schema, component_of = found.program.schema, found.program.component_of
    rules = schema.rules_of.get(call.pred, ())
    if (
        len(rules) != 1
        or call.pred in schema.facts_of
        or schema[call.pred].kind is not Kind.DERIVED
        or component_of[call.pred] == component_of[found.rule.head.pred]
    ):
        return
    (rule,) = rules
    bodies = branches(rule.body)
    counts = [i for i, a in enumerate(rule.head.args) if isinstance(a, Agg)]
    if len(bodies) != 1 or len(counts) != 1 or any(v.is_from_core for v in variables(rule.body)):
        return
    (at,) = counts
    aggregate = rule.head.args[at]
    pairs = [
        (h, c) for i, (h, c) in enumerate(zip(rule.head.args, call.args, strict=True)) if i != at
    ]
    if not isinstance(aggregate, Agg) or aggregate.func != "count":
        return
    shown = [h for h, _ in pairs if isinstance(h, Var)]
    given = [c for _, c in pairs if isinstance(c, Var)]
    if len(set(shown)) < len(pairs) or len(set(given)) < len(pairs):
        return
    put = dict(zip(shown, given, strict=True))
    own = set(variables(bodies[0])) - set(shown)
    # What only the counting rule has must not be taken for something of this one.
    put |= {v: evolve(v, name=f"{v.name}_of_{call.pred}") for v in own if not v.is_anonymous}

    def renamed(term: Term) -> Term:
        return put.get(term, term) if isinstance(term, Var) else term

    body: Body = tuple(map_terms(x, renamed) for x in bodies[0])
    goals = [x for x in body if isinstance(x, Atom)]
    tests: list[Literal] = [x for x in body if isinstance(x, Comparison)]
    if len(goals) + len(tests) < len(body):
        return
    for mine in goals:
        for other in goals:
            if mine is not other and mine.pred == other.pred:
                around = tuple(g for g in goals if g is not mine and g is not other)
                counting = _pair(mine, other, around, tests, set(given), found)
                if counting is not None:
                    yield evolve(counting, at=at)


def _pair(
    mine: Atom,
    other: Atom,
    around: tuple[Atom, ...],
    tests: list[Literal],
    shown: set[Var],
    found: Conjunction,
) -> _Counting | None:
    """If `other` are the rows that exceed those of `mine`, and are not earlier."""
    schema = found.program.schema
    names = _names(around)
    if not schema.is_temporal(mine.pred) or not names <= {v.name for v in shown}:
        return None
    key = [i for i, a in enumerate(mine.args) if isinstance(a, Var) and a.name in names]
    free = [i for i in range(mine.arity) if i not in key]
    if not all(isinstance(a, Var) for a in (*mine.args, *other.args)) or 0 not in free:
        return None
    values = [i for i in free if mine.args[i] in shown]
    apart = [a for atom in (mine, other) for i, a in enumerate(atom.args) if i in free]
    if (
        len(values) != 1
        or any(mine.args[i] != other.args[i] for i in key)
        or len(set(apart)) < len(apart)
        or {a.name for a in apart if isinstance(a, Var)} & names
    ):
        return None
    (column,) = values
    exceeds, order = _between(mine, other, column, tests), _between(mine, other, 0, tests)
    if exceeds is None or order is None or exceeds[1] not in ("<", ">") or order[1][0] != "<":
        return None
    rest = [t for t in tests if t is not exceeds[0] and t is not order[0]]
    low, low_tests = range_join(mine, rest, names, schema)
    high, high_tests = range_join(other, rest, names, schema)
    window = evolve(low, high=high.high)
    if (
        len(low_tests) + len(high_tests) < len(rest)
        or window.index.store is not Store.BY_TIME
        or low.high is not None
        or high.low is not None
        or high.high is None
    ):
        return None
    return _Counting(around, mine, column, exceeds[1] == "<", order[1] == "<=", -1, window)


def _between(
    mine: Atom, other: Atom, column: int, tests: Iterable[Literal]
) -> tuple[Literal, str] | None:
    """The one test that compares the two in a column, and how: `mine < other`."""
    one, two = mine.args[column], other.args[column]
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    found = []
    for test in tests:
        if isinstance(test, Comparison) and test.op in mirrored:
            if (test.left, test.right) == (one, two):
                found.append((test, test.op))
            elif (test.left, test.right) == (two, one):
                found.append((test, mirrored[test.op]))
    return found[0] if len(found) == 1 else None


def _ranked(
    goal: Atom, call: Atom, negation: Not | None, counting: _Counting, found: Conjunction
) -> Conjunction | None:
    mine, column = counting.counted, counting.column
    others = tuple(g for g in found.goals if g is not goal and g is not call)
    bound, own = _names(others), _names([goal])
    key = set(counting.window.index.key)
    count = call.args[counting.at]
    if (
        goal.pred != mine.pred
        or goal is call
        or not all(
            any((g.pred, g.args) == (o.pred, o.args) for o in others) for g in counting.around
        )
        or goal.args[column] != mine.args[column]
        or any(goal.args[i] != mine.args[i] for i in key)
        or not isinstance(count, Var)
        or count.name in bound | own
        or (negation is not None and count.name in _names([*found.tests, *found.head]))
        or call.args[0] != found.head[0]
        or not _is_free(goal, key, bound)
    ):
        return None
    tests = [t for t in found.tests if _names([t]) & (own - bound | {count.name})]
    window, used = range_join(goal, list(found.tests), bound, found.program.schema)
    if (window.low, window.high) != (counting.window.low, counting.window.high):
        return None
    if not all(_moves_with(found.head[0], bound) for bound in (window.low, window.high) if bound):
        return None
    limit = 1 if negation is not None else _limit(count, tests)
    if limit is None:
        return None
    # Which rows must be kept is a matter of counting, so the goal is that of the rule that counts.
    atom = evolve(goal, number=mine.number)
    step = Ranked(
        count if negation is None else Var(COUNTED, span=count.span),
        evolve(window, atom=atom),
        column,
        counting.highest,
        counting.same_time,
        1 if negation is None else 0,
        limit,
    )
    return evolve(
        found,
        goals=others,
        tests=tuple(t for t in found.tests if not any(t is o for o in (*tests, *used))),
        negations=tuple(n for n in found.negations if n is not negation),
        ranked=step,
        after=tuple(t for t in tests if not any(t is u for u in used)),
        awaited=(goal,),
    )


def _moves_with(time: Term, bound: Term) -> bool:
    """Whether a bound is some distance from the timestamp: windows then move on, never back."""
    match bound:
        case BinOp("+" | "-", inner, Const(int())):
            return _moves_with(time, inner)
        case _:
            return bound == time


def _is_free(goal: Atom, key: set[int], bound: set[str]) -> bool:
    """Whether any row with the key fits."""
    free = [a for i, a in enumerate(goal.args) if i not in key]
    names = [a.name for a in free if isinstance(a, Var) and a.name not in bound]
    return len(set(names)) == len(free)


def _limit(count: Var, tests: Iterable[Literal]) -> int | None:
    """The number that the count is less than."""
    limits = []
    for test in tests:
        match test:
            case Comparison("<", left, Const(int() as most)) if left == count:
                limits.append(most)
            case Comparison("<=", left, Const(int() as most)) if left == count:
                limits.append(most + 1)
            case Comparison(">", Const(int() as most), right) if right == count:
                limits.append(most)
            case Comparison(">=", Const(int() as most), right) if right == count:
                limits.append(most + 1)
            case _:
                pass
    return min(limits, default=None)


def _names(nodes: Iterable[Term | Literal]) -> set[str]:
    return {v.name for node in nodes for v in variables(node)}
