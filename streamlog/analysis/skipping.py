"""Whether solutions that cannot be computed may be left out: only where nothing that is false, or
counted, could become another by that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from streamlog.analysis.failing import Failing
from streamlog.diagnostics import Span
from streamlog.syntax.ast import Atom, Body, Comparison, Literal, Not, Rule, Term, branches
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import atoms


class SkipError(Exception):
    """Leaving out what cannot be computed could change an answer."""


@frozen
class _Cause:
    """What may fail."""

    rule: Rule
    node: Term | Literal


def check_skipping(failing: Failing, rules: Mapping[Span, Rule]) -> None:
    """Raise `SkipError` if leaving solutions out could change a negation or an aggregate. `rules`
    are those that are executed, by their places."""
    own = [r for r in failing.schema.rules if r.span in rules]
    incomplete = _incomplete(failing, own)
    for rule in own:
        for body in branches(rule.body):
            for negation, test in failing.in_negations(rule, body):
                raise _refused(_Cause(rule, test), f"it stands in {_negation(negation, rule)}")
            for negation in (x for x in body if isinstance(x, Not)):
                for goal in atoms(negation):
                    if cause := incomplete.get(goal.pred):
                        what = f"`{goal.pred}` is asked for in {_negation(negation, rule)}"
                        raise _refused(cause, what)
            if not rule.groups:
                continue
            where = f"the aggregate of {_of(rule)}, `{pretty(rule.head)}`"
            if rule.limit is not None:
                where = f"the limit of {_of(rule)}, `{pretty(rule.limit)}`"
            for node in _failing(failing, rule, body):
                raise _refused(_Cause(rule, node), f"it stands in {where}")
            for goal in (x for x in body if isinstance(x, Atom)):
                if cause := incomplete.get(goal.pred):
                    raise _refused(cause, f"`{goal.pred}` goes into {where}")


def _failing(failing: Failing, rule: Rule, body: Body) -> Iterator[Term | Comparison | Atom]:
    yield from failing.terms(rule, body)
    yield from failing.tests(rule, body)


def _incomplete(failing: Failing, rules: list[Rule]) -> Mapping[str, _Cause]:
    """The predicates that may lack rows, and because of what."""
    found: dict[str, _Cause] = {}
    bodies = [(rule, body) for rule in rules for body in branches(rule.body)]
    for rule, body in bodies:
        for node in _failing(failing, rule, body):
            found.setdefault(rule.head.pred, _Cause(rule, node))
    while True:
        more = {
            rule.head.pred: found[goal.pred]
            for rule, body in bodies
            for goal in body
            if isinstance(goal, Atom) and goal.pred in found and rule.head.pred not in found
        }
        if not more:
            return found
        found |= more


def _negation(negation: Not, rule: Rule) -> str:
    return f"a negation of {_of(rule)}, `{pretty(negation)}`"


def _of(rule: Rule) -> str:
    return f"the rule at {rule.span.place}"


def _refused(cause: _Cause, what: str) -> SkipError:
    return SkipError(
        f"a solution that cannot be computed cannot be skipped here: `{pretty(cause.node)}` in "
        f"{_of(cause.rule)} may fail, and {what}, whose outcome would be another without it. "
        "Declare the ranges of its columns so that it cannot fail, or test its values before "
        "they are used"
    )
