"""A program that goes on where a solution cannot be computed, and says so.

What may fail becomes a test of the body, which holds for no solution without a value; and an
additional rule finds the solutions for which that is so:

    p(T, A / B) <- s(T, A, B).
        p(T, _#e1) <- s(T, A, B), _#e1 = A / B.
        p_errors(T, Reason, Values) <- s(T, A, B), Reason = (why A / B fails), Reason != "",
            Values = (T, A and B as a JSON text).

So an error is a fact like others: of one rule and the values of its variables there is one, it
comes when the rule's other goals are decided, and it counts once in all engines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, frozen

from streamlog.analysis.builtins import FAILURE, FITS, INTERNAL, VALUES
from streamlog.analysis.equations import solve
from streamlog.analysis.failing import Failing, fitting
from streamlog.analysis.safety import bound_variables
from streamlog.analysis.types import settled
from streamlog.diagnostics import Span
from streamlog.rewrite.names import free_name
from streamlog.syntax.ast import (
    Atom,
    BinOp,
    Body,
    Call,
    Choice,
    Comparison,
    Const,
    Literal,
    Module,
    Not,
    Rule,
    Statement,
    Term,
    Type,
    Var,
    branches,
)
from streamlog.syntax.walk import map_terms, variables


def skipping(
    module: Module, failing: Failing, executed: Iterable[Span]
) -> tuple[Module, Mapping[str, Rule]]:
    """The module with rules for the errors of those rules that are executed, and these rules by
    the predicates of their errors. The same object where nothing may fail."""
    taken = set(failing.schema.predicates)
    places = set(executed)
    statements: list[Statement] = []
    found: dict[str, Rule] = {}
    for statement in module.statements:
        if not isinstance(statement, Rule) or statement.span not in places:
            statements.append(statement)
            continue
        rule = _without_terms(statement, failing)
        statements.append(rule)
        for body, original in zip(branches(rule.body), branches(statement.body), strict=True):
            conjunction = _Conjunction.of(rule, body, statement, original, failing)
            if conjunction.fallible:
                pred = free_name(f"{rule.head.pred}_errors", taken)
                found[pred] = statement
                statements.append(conjunction.errors(pred))
    return (evolve(module, statements=tuple(statements)) if found else module), found


def _without_terms(rule: Rule, failing: Failing) -> Rule:
    """With a variable and an equation for each argument of the head that may fail."""
    if rule.groups:
        return rule
    bodies = branches(rule.body)
    fallible = {term for body in bodies for term in failing.terms(rule, body)}
    if not fallible:
        return rule
    args: list[Term] = []
    equations: list[Literal] = []
    for position, arg in enumerate(rule.head.args):
        if arg in fallible:
            variable = Var(f"_#eh{position}", span=arg.span)
            equations.append(Comparison("=", variable, arg, span=arg.span))
            arg = variable
        args.append(arg)
    longer = tuple((*body, *equations) for body in bodies)
    made: Body = longer[0] if len(longer) == 1 else (Choice(longer, span=rule.span),)
    return evolve(rule, head=evolve(rule.head, args=tuple(args)), body=made)


@frozen
class _Conjunction:
    rule: Rule  # without terms in its head that may fail
    original: Rule
    failing: Failing
    certain: tuple[Literal, ...]  # what can be decided in any case
    fallible: tuple[Comparison | Atom, ...]  # what may fail, and tests of what that computes
    bound: frozenset[str]  # by what is certain

    @staticmethod
    def of(rule: Rule, body: Body, original: Rule, before: Body, failing: Failing) -> _Conjunction:
        may_fail = [*failing.tests(original, before), *body[len(before) :]]
        if rule.groups:
            may_fail = []
        rest = [x for x in body if not any(x is f for f in may_fail)]
        bound = frozenset(bound_variables(_positive(rest), frozenset(), {}))
        inside = {v.name for v in variables(_positive(body))}
        certain = [x for x in rest if {v.name for v in variables(x)} & inside <= bound]
        fallible = [
            x for x in body if isinstance(x, Comparison | Atom) and not any(x is c for c in certain)
        ]
        return _Conjunction(
            rule, original, failing, tuple(certain), tuple(fallible) if may_fail else (), bound
        )

    def errors(self, pred: str) -> Rule:
        """The rule that finds the solutions with errors."""
        span = self.rule.span
        reason, values = Var("_#er", span=span), Var("_#ev", span=span)
        args: tuple[Term, ...] = (reason, values)
        if self.failing.schema.is_temporal(self.rule.head.pred):
            args = (self._time(), *args)
        why = Call(FAILURE, tuple(self._parts()), span=span)
        none = Const("", Type.STRING, span=span)
        body: Body = (
            *self.certain,
            Comparison("=", reason, why, span=span),
            Comparison("!=", reason, none, span=span),
            Comparison("=", values, Call(VALUES, tuple(self._values()), span=span), span=span),
        )
        return Rule(Atom(pred, args, span=span), body, span=span, is_auxiliary=True)

    def _time(self) -> Term:
        """When an error is known: at the time of the head, if there is one."""
        own = self.rule.head.args[0]
        if {v.name for v in variables(own)} <= self.bound:
            return own
        goals = [x for x in self.certain if isinstance(x, Atom)]
        clocks = [g.args[0] for g in goals if self.failing.schema.is_temporal(g.pred)]
        return clocks[0] if len(clocks) == 1 else Call("max", tuple(clocks), span=own.span)

    def _values(self) -> Iterator[Term]:
        """The names, types and values of the variables, except those that a computed value has
        led to."""
        span = self.rule.span
        equations = (x for x in self.fallible if isinstance(x, Comparison) and x.op == "=")
        sides = (side for e in equations for side in (e.left, e.right))
        computed = {side.name for side in sides if isinstance(side, Var)}
        given = [x for x in self.certain if computed.isdisjoint(v.name for v in variables(x))]
        shown = bound_variables(_positive(given), frozenset(), {})
        own = {v.name: v for v in variables(self.original) if v.name in shown}
        for name, variable in own.items():
            if not variable.is_anonymous:
                type_ = settled(self.failing.types.variable(self.original, name))
                yield Const(f"{name} {type_ or ''}".strip(), Type.STRING, span=span)
                yield variable

    def _parts(self) -> Iterator[Term]:
        """What may fail, each part with the terms of the variables that another one computes."""
        known: dict[str, Term] = {}
        waiting = list(self.fallible)
        while waiting:
            part, solved = next(found for x in waiting if (found := self._ready(x, known)))
            waiting = [x for x in waiting if x is not part]
            if solved is None:
                yield self._test(part, known)
                continue
            variable, term = solved
            known[variable.name] = self._fitting(term, known)
            yield Call(FITS, (known[variable.name],), span=part.span)

    def _ready(
        self, part: Comparison | Atom, known: Mapping[str, Term]
    ) -> tuple[Comparison | Atom, tuple[Var, Term] | None] | None:
        """A test whose variables are known, or an equation for the one that is not."""
        unknown = {v.name for v in variables(part)} - self.bound - known.keys()
        if not unknown:
            return part, None
        if len(unknown) > 1 or not isinstance(part, Comparison) or part.op != "=":
            return None
        solved = solve(part, unknown.pop())
        return None if solved is None else (part, solved)

    def _fitting(self, term: Term, known: Mapping[str, Term]) -> Term:
        return _inserted(fitting(term, self.failing.types, self.original), known)

    def _test(self, part: Comparison | Atom, known: Mapping[str, Term]) -> Term:
        if isinstance(part, Comparison):
            left, right = (self._fitting(side, known) for side in (part.left, part.right))
            return BinOp(part.op, left, right, span=part.span)
        return Call(
            f"{INTERNAL}{part.pred}", tuple(_inserted(a, known) for a in part.args), span=part.span
        )


def _positive(body: Iterable[Literal]) -> Body:
    return tuple(x for x in body if not isinstance(x, Not))


def _inserted(term: Term, known: Mapping[str, Term]) -> Term:
    return map_terms(term, lambda t: known.get(t.name, t) if isinstance(t, Var) else t)
