"""The same program written differently, and programs that differ in one place."""

from __future__ import annotations

import re
from random import Random

from attrs import evolve

from streamlog.compiler import compile_source
from streamlog.diagnostics import Source
from streamlog.syntax.ast import Body, Choice, Comparison, Literal, Module, Not, Rule, Var
from streamlog.syntax.parse import parse
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import map_terms, variables

_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}


def parsed(text: str) -> Module:
    module, wrong = parse(Source("random.slog", text))
    assert not wrong
    return module


def written_differently(text: str, random: Random) -> str:
    """Variables renamed, rules, alternatives and goals moved, comparisons turned, comments."""
    module = parsed(text)
    statements = [_rewritten(s, random) if isinstance(s, Rule) else s for s in module.statements]
    random.shuffle(statements)
    return "".join(f"% moved\n{pretty(statement)}  // here\n" for statement in statements)


def _rewritten(rule: Rule, random: Random) -> Rule:
    names = sorted({v.name for v in variables(rule) if not v.is_anonymous})
    new = [f"{letter}_{n}" for n, letter in enumerate("KLMNOPQRSTUVWXYZABCDEFGHIJ" * 4)]
    renamed = dict(zip(names, random.sample(new, len(names)), strict=True))
    rule = map_terms(
        rule,
        lambda t: evolve(t, name=renamed.get(t.name, t.name)) if isinstance(t, Var) else t,
    )
    return evolve(rule, body=_moved(rule.body, random))


def _moved(body: Body, random: Random) -> Body:
    goals = [_turned(goal, random) for goal in body]
    return tuple(random.sample(goals, len(goals)))


def _turned(goal: Literal, random: Random) -> Literal:
    match goal:
        case Comparison(op, left, right) if random.random() < 0.5:
            return evolve(goal, op=_TURNED[op], left=right, right=left)
        case Not(body):
            return evolve(goal, body=_moved(body, random))
        case Choice(alternatives):
            moved = [_moved(body, random) for body in alternatives]
            return evolve(goal, branches=tuple(random.sample(moved, len(moved))))
        case _:
            return goal


def changed(text: str, random: Random) -> str:
    """A goal left out, a number raised, a comparison sharpened, a rule dropped or taken twice."""
    kind = random.choice(("goal", "number", "comparison", "rule", "negation"))
    if kind == "number":
        found = list(re.finditer(r"(?<= [-+] )\d+", text))
        if found:
            number = random.choice(found)
            return f"{text[: number.start()]}{int(number[0]) + 1}{text[number.end() :]}"
    if kind == "comparison":
        found = list(re.finditer(r" (<=|<|>=|>) ", text))
        if found:
            one = random.choice(found)
            other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}[one[1]]
            return f"{text[: one.start(1)]}{other}{text[one.end(1) :]}"
    statements = list(parsed(text).statements)
    places = [n for n, s in enumerate(statements) if isinstance(s, Rule)]
    place = random.choice(places)
    rule = statements[place]
    assert isinstance(rule, Rule)
    if kind == "rule" and len(places) > 1:
        del statements[place]
    elif kind == "negation":
        goal = parsed("p(T) <- not s(T, 7).").statements[0]
        assert isinstance(goal, Rule)
        head = rule.head.args[0]
        if isinstance(head, Var):
            (added,) = map_terms(goal, lambda t: head if isinstance(t, Var) else t).body
            statements[place] = evolve(rule, body=(*rule.body, added))
    elif len(rule.body) > 1:
        gone = random.randrange(len(rule.body))
        statements[place] = evolve(rule, body=rule.body[:gone] + rule.body[gone + 1 :])
    return "".join(f"{pretty(statement)}\n" for statement in statements)


def compiles(text: str) -> bool:
    return compile_source(Source("random.slog", text)).ok
