"""Open predicates taken out: each call becomes the core and the residual of its rules.

    first(T, X) <- msg(T, X), not previous(T, X).
        first(T, X) <- msg(T, X), not (msg(_#1, X), _#1 < T).

Afterwards every predicate can be enumerated, so executors need not know of open positions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count

from attrs import evolve

from streamlog.analysis.builtins import GOALS
from streamlog.diagnostics import Diagnostic
from streamlog.rewrite.desugar import desugar
from streamlog.rewrite.open_predicates import OpenRule
from streamlog.syntax.ast import (
    Atom,
    Body,
    Choice,
    Column,
    Comparison,
    Literal,
    Module,
    Not,
    Output,
    Query,
    Rule,
    Statement,
    Stream,
    Table,
    Term,
    Test,
    Var,
)
from streamlog.syntax.walk import atoms, map_body_terms, map_terms, walk


def close(
    module: Module, open_rules: Iterable[OpenRule], in_place: Collection[str] = ()
) -> tuple[Module, tuple[Diagnostic, ...]]:
    """The module without open predicates; the same object when it has none.

    Of predicates `in_place` the whole body stands where they are called, instead of a core.
    Nothing is shared then, but no timestamp of a core can make a rule look further ahead than it
    does.
    """
    by_name: dict[str, list[OpenRule]] = {}
    for open_rule in open_rules:
        by_name.setdefault(open_rule.rule.head.pred, []).append(open_rule)
    if not by_name:
        return module, ()
    closer = _Closer(by_name, in_place)
    statements: list[Statement] = []
    for statement in module.statements:
        match statement:
            case Rule(head, body) if head.pred not in by_name:
                statements.append(evolve(statement, body=closer.body(body)))
            case Rule() | Query() | Test():
                pass
            case Output(preds):
                kept = tuple(p for p in preds if p.name not in by_name)
                if kept:
                    statements.append(evolve(statement, preds=kept))
            case _:
                statements.append(statement)
    for open_rule in (r for rules in by_name.values() for r in rules):
        core = open_rule.core
        if isinstance(core, Rule) and open_rule.rule.head.pred not in closer.in_place:
            statements.append(evolve(core, body=closer.body(core.body)))
    statements += _inputs_left_behind(module, statements)
    return desugar(evolve(module, statements=tuple(statements)))


def _inputs_left_behind(module: Module, kept: list[Statement]) -> Iterator[Stream]:
    """The undeclared inputs that only open predicates read: they still arrive, and tick."""
    known = {s.name for s in kept if isinstance(s, Stream | Table)}
    known |= {a.pred for a in walk(kept) if isinstance(a, Atom)} | GOALS.keys()
    known |= {s.head.pred for s in module.statements if isinstance(s, Rule)}
    for atom in walk(s for s in module.statements if isinstance(s, Rule | Query)):
        if isinstance(atom, Atom) and atom.args and atom.pred not in known:
            known.add(atom.pred)
            columns = (Column(f"c{i}", span=atom.span) for i in range(atom.arity))
            yield Stream(atom.pred, tuple(columns), (), span=atom.span)


# Variables that a caller does not know of: they tell no two solutions apart.
FROM_CORE = "_#c"


class _Closer:
    def __init__(self, open_rules: Mapping[str, list[OpenRule]], in_place: Collection[str]) -> None:
        self.open_rules = open_rules
        self.in_place = {n for n in open_rules if n in in_place and not self._calls_itself(n)}
        self.fresh = (f"{FROM_CORE}{n}" for n in count(1))

    def _calls_itself(self, name: str) -> bool:
        reached: set[str] = set()
        queue = [name]
        for pred in queue:
            called = {a.pred for r in self.open_rules[pred] for a in atoms(r.rule.body)}
            queue += sorted(called & self.open_rules.keys() - reached)
            reached |= called
        return name in reached

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
            case Atom() | Comparison():
                yield literal

    def _unfolded(self, call: Atom, open_rule: OpenRule) -> Body:
        """The core and the residual with the caller's terms for the head's variables."""
        core = open_rule.core
        body: Body = (core if isinstance(core, Atom) else core.head, *open_rule.residual)
        if isinstance(core, Rule) and call.pred in self.in_place:
            body = (*core.body, *open_rule.residual)
        bindings: dict[str, Term] = {}
        others: list[tuple[Term, Term]] = []
        for parameter, argument in zip(open_rule.rule.head.args, call.args, strict=True):
            if isinstance(parameter, Var) and parameter.name not in bindings:
                bindings[parameter.name] = argument
            else:
                others.append((argument, parameter))

        def renamed(term: Term) -> Term:
            if not isinstance(term, Var):
                return term
            if term.name not in bindings:
                bindings[term.name] = Var(next(self.fresh), span=term.span)
            return bindings[term.name]

        equations = (
            Comparison("=", argument, map_terms(parameter, renamed), span=call.span)
            for argument, parameter in others
        )
        return (*map_body_terms(self.body(body), renamed), *equations)
