"""Open predicates taken out: each call becomes the core and the residual of its rules.

    first(T, X) <- msg(T, X), not previous(T, X).
        first(T, X) <- msg(T, X), not (msg(_#1, X), _#1 < T).

Afterwards every predicate can be enumerated, so executors need not know of open positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from attrs import evolve

from streamlog.rewrite.desugar import desugar
from streamlog.rewrite.open_predicates import OpenRule
from streamlog.syntax.ast import (
    Atom,
    Body,
    Choice,
    Comparison,
    Literal,
    Module,
    Not,
    Output,
    Query,
    Rule,
    Statement,
    Term,
    Var,
)
from streamlog.syntax.walk import map_body_terms


def close(module: Module, open_rules: Iterable[OpenRule]) -> Module:
    """The module without open predicates; the same object when it has none."""
    by_name: dict[str, list[OpenRule]] = {}
    for open_rule in open_rules:
        by_name.setdefault(open_rule.rule.head.pred, []).append(open_rule)
    if not by_name:
        return module
    closer = _Closer(by_name)
    statements: list[Statement] = []
    for statement in module.statements:
        match statement:
            case Rule(head, body) if head.pred not in by_name:
                statements.append(evolve(statement, body=closer.body(body)))
            case Rule() | Query():
                pass
            case Output(preds):
                kept = tuple(p for p in preds if p.name not in by_name)
                if kept:
                    statements.append(evolve(statement, preds=kept))
            case _:
                statements.append(statement)
    for open_rule in (r for rules in by_name.values() for r in rules):
        if isinstance(open_rule.core, Rule):
            core = open_rule.core
            statements.append(evolve(core, body=closer.body(core.body)))
    closed, _ = desugar(evolve(module, statements=tuple(statements)))
    return closed


class _Closer:
    def __init__(self, open_rules: Mapping[str, list[OpenRule]]) -> None:
        self.open_rules = open_rules
        self.fresh = (f"_#c{n}" for n in count(1))

    def body(self, body: Body) -> Body:
        return tuple(x for literal in body for x in self._literal(literal))

    def _literal(self, literal: Literal) -> Iterator[Literal]:
        match literal:
            case Atom(pred) if pred in self.open_rules:
                bodies = tuple(self._unfolded(literal, rule) for rule in self.open_rules[pred])
                if len(bodies) == 1:
                    yield from bodies[0]
                else:
                    yield Choice(bodies, span=literal.span)
            case Not(inner):
                yield evolve(literal, body=self.body(inner))
            case Choice(alternatives):
                yield evolve(literal, branches=tuple(map(self.body, alternatives)))
            case _:
                yield literal

    def _unfolded(self, call: Atom, open_rule: OpenRule) -> Body:
        """The core and the residual with the caller's terms for the head's variables."""
        core = open_rule.core if isinstance(open_rule.core, Atom) else open_rule.core.head
        body: Body = (core, *open_rule.residual)
        bindings: dict[str, Term] = {}
        equations: list[Literal] = []
        for parameter, argument in zip(open_rule.rule.head.args, call.args, strict=True):
            if isinstance(parameter, Var) and parameter.name not in bindings:
                bindings[parameter.name] = argument
            else:
                equations.append(Comparison("=", argument, parameter, span=call.span))

        def renamed(term: Term) -> Term:
            if not isinstance(term, Var):
                return term
            if term.name not in bindings:
                bindings[term.name] = Var(next(self.fresh), span=term.span)
            return bindings[term.name]

        return map_body_terms((*self.body(body), *equations), renamed)
