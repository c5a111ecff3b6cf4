"""What is legal and still worth a word."""

from __future__ import annotations

from collections.abc import Iterator

from streamlog.analysis.builtins import TICK
from streamlog.analysis.contract import Contract, Keeps
from streamlog.analysis.schema import Kind, Schema
from streamlog.analysis.strata import Strata
from streamlog.diagnostics import Diagnostic, finding
from streamlog.syntax.ast import (
    Agg,
    Arrive,
    Atom,
    BinOp,
    Body,
    Comparison,
    Const,
    Expect,
    ExpectFrom,
    ExpectNone,
    Rule,
    Term,
    Type,
    Var,
    branches,
)
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import atoms, variables


def advice(schema: Schema, strata: Strata, promised: Contract) -> tuple[Diagnostic, ...]:
    return (
        *_endless(schema, strata),
        *_unread(schema, promised),
    )


def _endless(schema: Schema, strata: Strata) -> Iterator[Diagnostic]:
    """Arithmetic that can grow for ever without time moving on."""
    for rule in schema.rules:
        knot = strata.knot.get(rule.head.pred, frozenset())
        for body in branches(rule.body):
            for arg in _growing(rule, body, knot):
                again = " at the same timestamp" if schema.is_temporal(rule.head.pred) else ""
                yield finding(
                    "SL0501",
                    f"`{rule.head.pred}` may never end: each round can make a new "
                    f"`{pretty(arg)}`{again}",
                    arg.span,
                    "computed from the recursion itself",
                    help=f"keep the best only, `min<{pretty(arg)}>`, or bound it by a constant",
                )


def _growing(rule: Rule, body: Body, knot: frozenset[str]) -> Iterator[Term]:
    """The head arguments that arithmetic makes from a goal of the rule's own recursion."""
    fed = {
        v.name for a in body if isinstance(a, Atom) and a.pred in knot for v in variables(a.args)
    }
    comparisons = [c for c in body if isinstance(c, Comparison)]
    bounded = {
        v.name
        for c in comparisons
        if c.op != "=" and isinstance(c.left, Const) != isinstance(c.right, Const)
        for v in variables(c)
    }
    is_temporal_head = rule.head.args[:1]
    for arg in rule.head.args:
        if isinstance(arg, Agg) or arg in is_temporal_head:
            continue
        made_by: list[Term] = [arg]
        if isinstance(arg, Var):
            made_by = [
                side
                for c in comparisons
                if c.op == "="
                for var, side in ((c.left, c.right), (c.right, c.left))
                if var == arg and arg.name not in bounded
            ]
        if any(isinstance(t, BinOp) and any(v.name in fed for v in variables(t)) for t in made_by):
            yield arg


def kept_for_ever(promised: Contract) -> Iterator[Diagnostic]:
    """A word about what grows with the stream: of the contract as executed, not before."""
    for entry in promised.predicates:
        rule = entry.kept.because
        goal = entry.kept.goal
        if entry.kept.what is not Keeps.EVERYTHING or rule is None or goal is None:
            continue
        name = entry.predicate.name
        far = "1h" if entry.clock is Type.TIME else "100"
        yield finding(
            "SL0502",
            f"every fact of `{name}` is kept for ever",
            goal.span,
            f"the rule for `{rule.head.pred}` may look back at any of them",
            help=f"bound how far it looks back: add `{pretty(goal.args[0])} >= "
            f"{pretty(rule.head.args[0])} - {far}` with the history you need",
        )


def _unread(schema: Schema, promised: Contract) -> Iterator[Diagnostic]:
    """Once a program says what its answers are, everything should lead to one of them."""
    if not schema.rules or not (schema.outputs or schema.queries):
        return
    read = {a.pred for r in schema.rules for a in atoms(r.body)} | set(promised.outputs)
    read |= {a.pred for q in schema.queries for a in atoms(q.body)}
    if TICK in read:  # it asks every stream
        read |= set(schema.streams)
    for test in schema.tests:
        for step in test.steps:
            match step:
                case Expect(expected):
                    read |= {a.pred for a in expected}
                case ExpectNone(pred) | ExpectFrom(pred):
                    read.add(pred.name)
                case Arrive() | _:
                    pass
    for name, predicate in schema.predicates.items():
        if name not in read and (predicate.kind is Kind.DERIVED or predicate.declaration):
            derived = predicate.kind is Kind.DERIVED
            yield finding(
                "SL0504",
                f"nobody reads `{name}`",
                predicate.span,
                help=f"declare `output {name}.`, use it in a rule, or drop it"
                if derived
                else "use it in a rule, or drop the declaration",
            )
