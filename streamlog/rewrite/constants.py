"""Constants of a query pushed into the rules, down to the inputs.

    ?first(T, red).
    first(T, X) <- msg(T, X), not (msg(T0, X), T0 < T).
        first(T, red) <- msg(T, red), not (msg(T0, red), T0 < T).

An argument is settled when every use of its predicate, by the answers and by the rules that they
rest on, has the same constant there. Rules are then made for this value alone, through recursion
too where each call hands the argument on; rules that cannot make it, or on which no answer
rests, go. So this is for runs that show answers and nothing else: other predicates lack rows.

Left alone are timestamps: a constant among them would change what waits for what.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve

from streamlog.analysis.schema import Schema
from streamlog.analysis.types import TypeTable
from streamlog.syntax.ast import (
    INT64_MIN,
    Agg,
    Atom,
    Const,
    Module,
    Query,
    Rule,
    Statement,
    Term,
    Test,
    Type,
    Var,
)
from streamlog.syntax.nothing import NONE, as_float
from streamlog.syntax.walk import atoms, map_terms, variables

# What is asked of each argument of a predicate: a value, or anything.
_Asked = tuple[Const | None, ...]


def constants(
    module: Module,
    schema: Schema,
    types: TypeTable,
    answers: Iterable[str],
    queries: Iterable[Query],
) -> Module:
    """The module for its answers alone; the same when nothing can be left out.

    `answers` are the predicates that are shown; where there are queries, only the rows that these
    ask for.
    """
    asked = _Demand(schema, types, frozenset(answers), tuple(queries)).settled()
    made: list[Statement] = []
    changed = False
    for statement in module.statements:
        if not isinstance(statement, Rule):
            made.append(statement)
            continue
        pred = statement.head.pred
        rule = _made_for(statement, asked[pred], schema) if pred in asked else None
        changed |= rule is not statement
        made += [rule] if rule else []
    if not changed:
        return module
    return evolve(module, statements=tuple(s for s in made if not isinstance(s, Test)))


class _Demand:
    """The greatest solution: all arguments are settled until a use says otherwise."""

    def __init__(
        self, schema: Schema, types: TypeTable, answers: frozenset[str], queries: tuple[Query, ...]
    ) -> None:
        self.schema, self.types = schema, types
        self.asked: dict[str, _Asked] = {}
        self.waiting: list[str] = []
        goals = [(goal, query) for query in queries for goal in atoms(query.body)]
        for name in sorted(answers):
            if not queries:
                self._use(name, (None,) * schema[name].arity)
        for goal, query in goals:
            if goal.pred in answers:
                # Beside others a goal is only a part of what is asked: all its rows are shown.
                alone = len(query.body) == 1 and query.body[0] is goal
                self._use(goal.pred, self._values(goal) if alone else (None,) * goal.arity)

    def settled(self) -> Mapping[str, _Asked]:
        while self.waiting:
            name = self.waiting.pop()
            for rule in self.schema.rules_of.get(name, ()):
                made = _made_for(rule, self.asked[name], self.schema)
                for goal in atoms(made.body) if made is not None else ():
                    if goal.pred in self.schema.rules_of:
                        self._use(goal.pred, self._values(goal))
        return self.asked

    def _values(self, goal: Atom) -> _Asked:
        first = int(self.schema.is_temporal(goal.pred))
        return tuple(
            self._typed(goal.pred, position, arg)
            if isinstance(arg, Const)
            and position >= first
            and arg.value != INT64_MIN  # `-X` has none
            else None
            for position, arg in enumerate(goal.args)
        )

    def _typed(self, pred: str, position: int, const: Const) -> Const:
        if self.types.column(pred, position) is Type.FLOAT:
            value = as_float(const.value)
            return evolve(const, value=value, type=None if value is NONE else Type.FLOAT)
        return const

    def _use(self, pred: str, values: _Asked) -> None:
        known = self.asked.get(pred)
        if known is not None:
            values = tuple(a if a == b else None for a, b in zip(known, values, strict=True))
        if values != known:
            self.asked[pred] = values
            self.waiting.append(pred)


def _made_for(rule: Rule, asked: _Asked, schema: Schema) -> Rule | None:
    """The rule for the values asked for; None when it makes others only."""
    clocks = {
        a.args[0].name
        for a in (rule.head, *atoms(rule.body))
        if schema.is_temporal(a.pred) and isinstance(a.args[0], Var)
    }
    values: dict[str, Const] = {}
    for arg, value in zip(rule.head.args, asked, strict=True):
        if value is None:
            continue
        if isinstance(arg, Var) and arg.name not in clocks:
            if values.setdefault(arg.name, value) != value:
                return None
        elif isinstance(arg, Const) and arg.value != value.value:
            return None
    if not values:
        return rule

    def replaced(term: Term) -> Term:
        value = values.get(term.name) if isinstance(term, Var) else None
        return term if value is None else evolve(value, span=term.span)

    counted = {v.name for a in rule.head.args if isinstance(a, Agg) for v in variables(a)}
    if rule.limit is not None:  # among all of a group, only what tells groups apart may be fixed
        counted = {v.name for v in variables(rule)} - {v.name for v in variables(rule.limit.per)}
    return rule if counted & values.keys() else map_terms(rule, replaced)
