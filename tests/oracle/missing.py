"""Cases with columns in which values may be missing, made of other cases.

Rules that would compute with a missing value get the test that the compiler asks for, where it
asks for it; some get a test of their own, or `none` in the place of a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from attrs import evolve

from oracle.programs import Case
from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Diagnostic, Source, Span
from streamlog.syntax.ast import (
    Atom,
    Body,
    Choice,
    Column,
    Comparison,
    Const,
    Literal,
    Module,
    Not,
    Rule,
    Statement,
    Stream,
    Table,
    Term,
    Type,
    Var,
)
from streamlog.syntax.nothing import NONE
from streamlog.syntax.parse import parse
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import variables

_REPAIRS = 12


def missing(make: Callable[[Random], Case], rng: Random) -> Case:
    while True:
        made = _made(make(rng), rng)
        if made is not None:
            return made


def _made(case: Case, rng: Random) -> Case | None:
    """None: this one cannot be made so."""
    program = compile_source(Source("random", case.text))
    source = Source("missing", case.text)
    module, _ = parse(source)
    nowhere = Span(source, 0, 0)
    declared = {s.name: s for s in module.statements if isinstance(s, Stream | Table)}
    statements = [s for s in module.statements if not isinstance(s, Stream | Table)]
    optional: dict[str, tuple[int, ...]] = {}
    for name in program.schema.inputs:
        old = declared.get(name) or _declaration(program, name, nowhere)
        if old is None:
            continue
        first = int(isinstance(old, Stream))
        chosen = tuple(i for i in range(first, len(old.columns)) if rng.random() < 0.6)
        columns = tuple(
            evolve(c, optional=True) if i in chosen and c.type is not None else c
            for i, c in enumerate(old.columns)
        )
        optional[name] = tuple(i for i, c in enumerate(columns) if c.optional)
        statements.insert(0, evolve(old, columns=columns))
    if not any(optional.values()):
        return None
    statements = [_with_none(s, rng, nowhere) if isinstance(s, Rule) else s for s in statements]
    text = _repaired(statements, nowhere)
    if text is None:
        return None

    def rows(given: dict[str, list[tuple[object, ...]]]) -> dict[str, list[tuple[object, ...]]]:
        return {
            name: sorted(
                {
                    tuple(
                        NONE if i in optional.get(name, ()) and rng.random() < 0.35 else value
                        for i, value in enumerate(row)
                    )
                    for row in some
                }
            )
            for name, some in given.items()
        }

    return Case(text, rows(case.facts), rows(case.tables))


def _declaration(program: Program, name: str, nowhere: Span) -> Stream | Table | None:
    predicate = program.schema[name]
    if name in program.schema.facts_of:
        return None
    types = [program.types.column(name, i) for i in range(predicate.arity)]
    if predicate.temporal and types[0] is None:
        types[0] = Type.INT
    columns = tuple(Column(f"c{i}", t, span=nowhere) for i, t in enumerate(types))
    kind = Stream if predicate.temporal else Table
    return kind(name, columns, (), span=nowhere)


def _with_none(rule: Rule, rng: Random, nowhere: Span) -> Rule:
    """Sometimes a test, sometimes a constant."""
    none = Const(NONE, None, span=nowhere)
    body = list(rule.body)
    goals = [g for g in body if isinstance(g, Atom)]
    names = sorted({v.name for g in goals for v in variables(g) if not v.is_anonymous} - {"T"})
    if names and rng.random() < 0.25:
        op = rng.choice(["=", "!=", "!="])
        test = Comparison(op, Var(rng.choice(names), span=nowhere), none, span=nowhere)
        body.insert(rng.randint(0, len(body)), test)
    if goals and rng.random() < 0.1:
        goal = rng.choice(goals)
        if goal.arity > 1:
            place = rng.randrange(1, goal.arity)
            args: list[Term] = list(goal.args)
            args[place] = none
            body[body.index(goal)] = evolve(goal, args=tuple(args))
    return evolve(rule, body=tuple(body))


def _repaired(statements: list[Statement], nowhere: Span) -> str | None:
    for _ in range(_REPAIRS):
        text = pretty(Module(tuple(statements), span=nowhere))
        found = compile_source(Source("missing", text)).diagnostics
        errors = [d for d in found if d.is_error]
        if not errors:
            return text
        wrong = [d for d in errors if d.code == "SL0310" and "which may be" in d.message]
        if not wrong:
            return None
        module, _ = parse(Source("missing", text))
        statements = [_tested(s, wrong) if isinstance(s, Rule) else s for s in module.statements]
    return None


def _tested(rule: Rule, wrong: list[Diagnostic]) -> Rule:
    for diagnostic in wrong:
        if rule.span.start <= diagnostic.span.start < rule.span.end:
            rule = evolve(rule, body=_body(rule.body, diagnostic))
    return rule


def _body(body: Body, wrong: Diagnostic) -> Body:
    made = tuple(_literal(x, wrong) for x in body)
    if made != body:
        return made
    name = wrong.message.split("`")[3]
    span = wrong.span
    test = Comparison("!=", Var(name, span=span), Const(NONE, None, span=span), span=span)
    return body if test in body else (*body, test)


def _literal(literal: Literal, wrong: Diagnostic) -> Literal:
    if not literal.span.start <= wrong.span.start < literal.span.end:
        return literal
    match literal:
        case Not(body):
            return evolve(literal, body=_body(body, wrong))
        case Choice(alternatives):
            made = tuple(
                _body(b, wrong) if b[0].span.start <= wrong.span.start < b[-1].span.end else b
                for b in alternatives
            )
            return evolve(literal, branches=made)
        case _:
            return literal
