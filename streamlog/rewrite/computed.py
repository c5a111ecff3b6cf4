"""Heads that compute with aggregates, without that: one rule aggregates, another one computes.

rate(floor(T, 1h), S, sum(F) / count()) <- flow(T, S, F).
    rate_groups(floor(T, 1h), S, sum(F), count()) <- flow(T, S, F).
    rate(T, S, Sum_f / Count) <- rate_groups(T, S, Sum_f, Count).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from streamlog.diagnostics import Diagnostic, finding
from streamlog.rewrite.names import Names, free_name, predicates
from streamlog.syntax.ast import Agg, Const, Rule, Statement, Term, Var
from streamlog.syntax.walk import Node, children, map_terms, walk


def computed(statements: Iterable[Statement]) -> tuple[list[Statement], list[Diagnostic]]:
    statements = list(statements)
    taken = predicates(statements)
    result: list[Statement] = []
    diagnostics: list[Diagnostic] = []
    for statement in statements:
        if not (isinstance(statement, Rule) and any(map(_computes, statement.head.args))):
            result.append(statement)
        elif found := list(_ungrouped(statement)):
            diagnostics += found
        else:
            result += _two_rules(statement, taken)
    return result, diagnostics


def _computes(term: Term) -> bool:
    return not isinstance(term, Agg) and any(isinstance(part, Agg) for part in walk(term))


def _ungrouped(rule: Rule) -> Iterator[Diagnostic]:
    beside = (v for term in filter(_computes, rule.head.args) for v in _beside(term))
    return several_values(rule, beside, "beside an aggregate, which has one")


def several_values(rule: Rule, variables: Iterable[Var], why: str) -> Iterator[Diagnostic]:
    """What stands where a group has one value must be an argument of the head."""
    for variable in variables:
        if variable not in rule.head.args:
            yield finding(
                "SL0108",
                f"`{variable.name}` may have several values in one group",
                variable.span,
                why,
                help=f"aggregate it as well, or group by it: make `{variable.name}` an "
                "argument of the head",
            )


def _beside(term: Node) -> Iterator[Var]:
    if isinstance(term, Var):
        yield term
    elif not isinstance(term, Agg):
        for part in children(term):
            yield from _beside(part)


def _two_rules(rule: Rule, taken: set[str]) -> tuple[Rule, Rule]:
    head, names = rule.head, Names({a.name for a in rule.head.args if isinstance(a, Var)})
    pred = free_name(f"{head.pred}_groups", taken)
    variable_of: dict[Agg, Var] = {}
    grouped: list[Term] = []  # the head of the rule that aggregates
    called: list[Term] = []  # the same as the other rule calls it
    more: list[Agg] = []  # aggregates for which the head has no place
    terms: list[Term] = []
    for position, term in enumerate(head.args):
        parts = [part for part in walk(term) if isinstance(part, Agg)]
        for part in parts:
            variable_of.setdefault(part, names.variable(part, position))
        if parts:
            grouped.append(parts[0])
            called.append(variable_of[parts[0]])
            more += (part for part in parts[1:] if part not in more)
        else:
            grouped.append(term)
            called.append(term if isinstance(term, Var | Const) else names.variable(term, position))
        terms.append(
            map_terms(term, lambda t: variable_of.get(t, t) if isinstance(t, Agg) else t)
            if parts
            else called[-1]
        )
    group = evolve(head, pred=pred, args=(*grouped, *more))
    call = evolve(group, args=(*called, *(variable_of[part] for part in more)))
    return (
        evolve(rule, head=group, is_auxiliary=True),
        # A place of its own: the types of variables are known by that of their rule.
        evolve(rule, head=evolve(head, args=tuple(terms)), body=(call,), span=head.span),
    )
