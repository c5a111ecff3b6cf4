"""The conjunctions of a recursive predicate with their equations used up.

cost(X, Z, min<C>) <- cost(X, Y, A), road(Y, Z, B, K), C = A + B, K = open.
    cost(X, Z, min<A + B>) <- cost(X, Y, A), road(Y, Z, B, open).
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from streamlog.analysis.better_row import better_rows
from streamlog.analysis.builtins import FILTERS
from streamlog.analysis.equations import definitions
from streamlog.analysis.schema import Kind, Schema
from streamlog.rewrite.desugar import printable
from streamlog.syntax.ast import (
    Agg,
    Atom,
    Body,
    Call,
    Comparison,
    Const,
    Literal,
    Not,
    Query,
    Rule,
    Term,
    Var,
    branches,
)
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import atoms, map_body_terms, map_terms, variables


class UnlikeError(Exception):
    """The recursion is not path-shaped; `rule` is the one that says so, if one does."""

    def __init__(self, reason: str, rule: Rule | None) -> None:
        super().__init__(reason)
        self.reason, self.rule = reason, rule


@frozen
class Branch:
    rule: Rule
    head: tuple[Term, ...]  # the term itself for an aggregate of it
    aggregates: tuple[tuple[int, str], ...]
    calls: tuple[Atom, ...]  # goals of the head's own predicate
    goals: tuple[Atom, ...]  # the other positive goals with rows
    rest: tuple[Literal, ...]  # conditions that no equation took away

    def variables_of(self, call: Atom) -> tuple[Var, ...]:
        """The arguments of a call that any row of the predicate fits."""
        args = tuple(a for a in call.args if isinstance(a, Var))
        if len(args) < call.arity:
            raise UnlikeError("only rows with a certain constant go on", self.rule)
        if len(set(args)) < len(args):
            raise UnlikeError("only rows with two equal columns go on", self.rule)
        return args


def branches_of(pred: str, schema: Schema) -> tuple[Branch, ...]:
    """In the order of the rules."""
    return tuple(
        _branch(rule, body) for rule in schema.rules_of[pred] for body in branches(rule.body)
    )


def _branch(rule: Rule, body: Body) -> Branch:
    head = tuple(a.arg if isinstance(a, Agg) and a.arg else a for a in rule.head.args)
    head, body = _solved(head, body)
    positive = [a for a in body if isinstance(a, Atom) and a.pred not in FILTERS]
    return Branch(
        rule,
        head,
        tuple((i, a.func) for i, a in enumerate(rule.head.args) if isinstance(a, Agg)),
        tuple(a for a in positive if a.pred == rule.head.pred),
        tuple(a for a in positive if a.pred != rule.head.pred),
        tuple(x for x in body if x not in positive),
    )


def _solved(head: tuple[Term, ...], body: Body) -> tuple[tuple[Term, ...], Body]:
    """Equations that give a variable its value, put in wherever the variable stands."""
    for var, value, equation in definitions(body):
        # A goal can have another variable or a constant in its place, but no expression.
        bound = any(var in a.args for a in atoms(body)) or var in set(variables(value))
        if bound and not isinstance(value, Var | Const):
            continue

        def put(term: Term, var: Var = var, value: Term = value) -> Term:
            return value if term == var else term

        others = tuple(x for x in body if x is not equation)
        return _solved(tuple(map_terms(t, put) for t in head), map_body_terms(others, put))
    return head, body


def cost_of(pred: str, made: Iterable[Branch]) -> tuple[int, str] | None:
    """The column and function of the one aggregate, if there is one."""
    found = {b.aggregates for b in made}
    match list(found):
        case [()]:
            return None
        case [((position, "min" | "max" as function),)]:
            return position, function
        case _:
            wrong = next(b.rule for b in made if b.aggregates)
            raise UnlikeError(f"`{pred}` has other aggregates than one `min` or `max`", wrong)


def only_the_earliest(
    pred: str, schema: Schema, made: tuple[Branch, ...]
) -> tuple[Branch, ...] | None:
    """Without `not` an earlier row of the same values, when each conjunction says it."""
    if not schema.is_temporal(pred) or pred in schema.facts_of:
        return None
    if schema[pred].kind is not Kind.DERIVED or any(b.aggregates for b in made):
        return None
    result = []
    for branch in made:
        rest = tuple(x for x in branch.rest if not _none_earlier(x, branch))
        if len(rest) == len(branch.rest):
            return None
        result.append(evolve(branch, rest=rest))
    return tuple(result)


def _none_earlier(literal: Literal, branch: Branch) -> bool:
    """`not (p(T0, X, Y), T0 < T)` in a rule for `p(T, X, Y)`."""
    if not isinstance(literal, Not):
        return False
    made = evolve(branch.rule.head, args=branch.head)
    outside = {v.name for v in variables((*branch.calls, *branch.goals, *branch.head))}
    return any(
        (found.column, found.highest, found.bounds) == (0, False, ())
        and found.rival.args[1:] == branch.head[1:]
        for found in better_rows(made, literal.body, outside)
    )


def only_renewals(pred: str, schema: Schema, made: tuple[Branch, ...]) -> tuple[Branch, ...]:
    """Without `not` an earlier row that is as good, when each conjunction says it, and a path comes
    when the later of its two parts does:

    near(T, X, Z, min<A + B>) <- near(T1, X, Y, A), near(T2, Y, Z, B), T = max(T1, T2),
        not (near(T0, X, Z, D0), D0 <= A + B, T0 < T).
    """
    cost = cost_of(pred, made)
    if cost is None or not schema.is_temporal(pred):
        raise UnlikeError(f"`{pred}` has no timestamp, or no `min` or `max`", None)
    steps = [b for b in made if b.calls and b.goals]
    result = []
    for branch in made:
        rest = tuple(x for x in branch.rest if not _none_as_good(x, branch, *cost))
        if len(rest) == len(branch.rest):
            raise UnlikeError("it does not refuse what is no better than before", branch.rule)
        together = (*branch.calls, *branch.goals)
        if branch.calls or steps:
            if not all(schema.is_temporal(a.pred) for a in together) or len(together) > 2:
                raise UnlikeError("its timestamp is not that of the path's parts", branch.rule)
            times = {a.args[0] for a in together}
            match branch.head[0]:
                case Call("max", parts) if branch.calls and {*parts} == times and len(times) == 2:
                    pass
                case time if not branch.calls and {time} == times:
                    pass
                case _:
                    raise UnlikeError("a path does not come with its last part", branch.rule)
        result.append(evolve(branch, rest=rest))
    return tuple(result)


def _none_as_good(literal: Literal, branch: Branch, cost: int, best: str) -> bool:
    """`not (p(T0, X, Y, D0), D0 <= D, T0 < T)` in a rule for `p(T, X, Y, min<D>)`."""
    if not isinstance(literal, Not):
        return False
    match [x for x in literal.body if not isinstance(x, Comparison)]:
        case [Atom(pred, args)] if pred == branch.rule.head.pred:
            pass
        case _:
            return False
    time, value = args[0], args[cost]
    outside = {v.name for v in variables((*branch.calls, *branch.goals, *branch.head))}
    others = [i for i in range(len(args)) if i not in (0, cost)]
    if (
        not (isinstance(time, Var) and isinstance(value, Var))
        or {time.name, value.name} & outside
        or any(args[i] != branch.head[i] for i in others)
    ):
        return False
    pair = (value, branch.head[cost])
    as_good = ("<=", *(pair if best == "min" else reversed(pair)))
    tests = [_upwards(x) for x in literal.body if isinstance(x, Comparison)]
    return len(tests) == 2 and {*tests} == {("<", time, branch.head[0]), as_good}


def _upwards(test: Comparison) -> tuple[str, Term, Term]:
    """With the larger side on the right."""
    if test.op in (">", ">="):
        return test.op.replace(">", "<"), test.right, test.left
    return test.op, test.left, test.right


def check(pred: str, made: Iterable[Branch]) -> None:
    """Whether all recursion is through positive goals, and nothing else is tested there."""
    for branch in made:
        if branch.calls and len(branch.goals) > 1:
            names = " and ".join(f"`{a.pred}`" for a in branch.goals)
            raise UnlikeError(f"its step joins {names}", branch.rule)
        for literal in branch.rest:
            if any(a.pred == pred for a in atoms(literal)):
                raise UnlikeError(f"it asks for `{pred}` under `not`", branch.rule)
            if branch.calls:
                shown = printable(Query((literal,), span=literal.span))
                text = pretty(shown).removeprefix("?").removesuffix(".")
                raise UnlikeError(f"it also tests `{text}`", branch.rule)
        if len(branch.calls) > 2:
            raise UnlikeError(f"it calls `{pred}` {len(branch.calls)} times", branch.rule)
