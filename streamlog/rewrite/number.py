"""Rules and goals get numbers, so that what is found out about one has a key.

Desugaring lets the conjunctions of a rule share goals, and closing a program copies them; here
each becomes one of its own. Rewrites of the plan keep the numbers.
"""

from __future__ import annotations

from itertools import count

from attrs import evolve

from streamlog.syntax.ast import Atom, Body, Choice, Comparison, Literal, Module, Not, Rule


def numbered(module: Module) -> Module:
    """The desugared module with its rules, and the goals of all rules, numbered from 1 on."""
    goals, rules = count(1), count(1)

    def literal(node: Literal) -> Literal:
        match node:
            case Atom():
                return evolve(node, number=next(goals))
            case Not():
                return evolve(node, body=body(node.body))
            case Choice():
                return evolve(node, branches=tuple(map(body, node.branches)))
            case Comparison():
                return node

    def body(literals: Body) -> Body:
        return tuple(map(literal, literals))

    statements = (
        evolve(s, number=next(rules), body=body(s.body)) if isinstance(s, Rule) else s
        for s in module.statements
    )
    return evolve(module, statements=tuple(statements))
