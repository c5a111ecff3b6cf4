"""Each goal on the timeline of its stream that suits it (`analysis.timelines`).

    alarm(T, A) <- detection(T, A), not (report(_, S, A), T <= S, S <= T + 2min).
        here `report` is bounded on `sys` alone: not (report.sys(S, _, A), …)

That is one on which the goal does not look ahead without bound, if possible nor back; of several
the first that the stream declares. The others count too: the goal is known as soon as one of them
has passed it (`analysis.time.reach.Goal.elsewhere`).
"""

from __future__ import annotations

from attrs import evolve

from streamlog.analysis.schema import Schema
from streamlog.analysis.time.constraints import OffsetError, Relations, TooManyCasesError
from streamlog.analysis.time.reach import Goal, branches_of
from streamlog.analysis.types import TypeTable
from streamlog.syntax.ast import Atom, Module, Rule
from streamlog.syntax.walk import Node, transform


def on_timelines(module: Module, schema: Schema, types: TypeTable, relations: Relations) -> Module:
    """The numbered module, unchanged if its goals read their streams as they are."""
    chosen: dict[int, str] = {}
    for rule in schema.rules:
        if schema.is_temporal(rule.head.pred):
            try:
                for time in branches_of(rule, schema, types, relations, sparing=False):
                    chosen |= {g.atom.number: _best(g, schema) for g in time.goals if g.elsewhere}
            except (TooManyCasesError, OffsetError):  # reported later
                continue

    def moved(node: Node) -> Node:
        if isinstance(node, Atom) and (name := chosen.get(node.number, node.pred)) != node.pred:
            return _on(node, name, schema)
        return node

    statements = tuple(
        evolve(s, body=tuple(transform(literal, moved) for literal in s.body))
        if isinstance(s, Rule)
        else s
        for s in module.statements
    )
    return module if statements == module.statements else evolve(module, statements=statements)


def _best(goal: Goal, schema: Schema) -> str:
    spans = {goal.atom.pred: (goal.ahead, goal.back)}
    spans |= {e.stream: (e.ahead, e.back) for e in goal.elsewhere}
    of = schema[goal.atom.pred].view
    stream = of.of if of is not None else goal.atom.pred
    order = (stream, *schema.views[stream])
    # `min` takes the first of those that are alike.
    return min(order, key=lambda name: (spans[name][0] is None, spans[name][1] is None))


def _on(atom: Atom, name: str, schema: Schema) -> Atom:
    args = atom.args
    if (view := schema[atom.pred].view) is not None:
        args = tuple(args[position] for position in view.back)
    if (view := schema[name].view) is not None:
        args = tuple(args[position] for position in view.order)
    return evolve(atom, pred=name, args=args)
