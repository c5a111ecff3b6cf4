"""What is legal and still worth a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from attrs import evolve

from streamlog.analysis.builtins import TICK
from streamlog.analysis.contract import Contract, Keeps
from streamlog.analysis.schema import Kind, Schema
from streamlog.analysis.strata import Strata
from streamlog.diagnostics import Diagnostic, Source, finding
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import (
    ARRIVES_WITHIN,
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
    Not,
    Rule,
    Term,
    Type,
    Var,
    branches,
)
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import atoms, variables


def advice(
    schema: Schema, strata: Strata, promised: Contract, source: Source
) -> tuple[Diagnostic, ...]:
    """`source` is the file itself: others may read what the files that it uses define."""
    return (
        *_endless(schema, strata),
        *_unread(schema, promised, source),
        *_multiplied(schema),
        *_silenced(schema, promised),
    )


def _endless(schema: Schema, strata: Strata) -> Iterator[Diagnostic]:
    """Arithmetic that can grow forever without time moving on."""
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
        time = goal.args[0]
        is_of_a_state = isinstance(time, Var) and time.is_from_core
        yield finding(
            "SL0502",
            f"every fact of `{name}` is kept forever",
            goal.span,
            f"the rule for `{rule.head.pred}` may look back at any of them",
            help=f"read the state at the time of an event, or add `for at most {far}` to it"
            if is_of_a_state
            else f"bound how far it looks back: add `{pretty(time)} >= "
            f"{pretty(rule.head.args[0])} - {far}` with the history you need",
        )


def _unread(schema: Schema, promised: Contract, source: Source) -> Iterator[Diagnostic]:
    """Once a program says what its answers are, everything should lead to one of them."""
    has_answers = bool(schema.outputs or schema.queries)
    if not schema.rules or not (has_answers or schema.exports):
        return
    read = {a.pred for r in schema.rules for a in atoms(r.body)} | {p.name for p in schema.exports}
    read |= set(promised.outputs) if has_answers else set()
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
    read |= set(map(schema.stream_of, read))
    for name, predicate in schema.predicates.items():
        if predicate.view is not None:
            continue
        if predicate.span.source is not source:
            continue
        if not has_answers and predicate.kind is not Kind.DERIVED:
            continue  # for the files that use this one
        if name not in read and (predicate.kind is Kind.DERIVED or predicate.declaration):
            derived = predicate.kind is Kind.DERIVED
            yield finding(
                "SL0504",
                f"nothing reads `{name}`",
                predicate.span,
                help=f"declare `output {name}.`, use it in a rule, or drop it"
                if derived
                else "use it in a rule, or drop the declaration",
            )


def _multiplied(schema: Schema) -> Iterator[Diagnostic]:
    """Aggregates over a window that is taken once for every row of the goal that triggers it."""
    for rule in schema.rules:
        counting = [a for a in rule.head.args if isinstance(a, Agg) and AGGREGATES[a.func].counts]
        if not counting:
            continue
        uses = Counter(v.name for v in variables(rule))
        for body in branches(rule.body):
            for goal, loose in _triggers(schema, rule, body, counting, uses):
                kept = [arg for arg in goal.args if arg not in loose]
                trigger = pretty(evolve(goal, pred=f"{goal.pred}_at", args=tuple(kept)))
                yield finding(
                    "SL0505",
                    f"`{pretty(counting[0])}` takes the window once for each `{goal.pred}` at "
                    f"`{pretty(goal.args[0])}`: several at one timestamp multiply it",
                    goal.span,
                    f"`{pretty(loose[0])}` is part of each solution",
                    help=f"trigger it by the timestamp alone: write `{trigger}` here, with the "
                    f"rule `{trigger} <- {pretty(goal)}.`",
                )


def _triggers(
    schema: Schema, rule: Rule, body: Body, counting: list[Agg], uses: Counter[str]
) -> Iterator[tuple[Atom, list[Term]]]:
    """Goals at the head's timestamp beside a goal at another one, with their variables that stand
    nowhere else. Pairs may be what is counted, so between predicates only `_` is a slip; and a
    column that no other goal has may be a key."""
    goals = [g for g in body if isinstance(g, Atom) and schema.is_temporal(g.pred)]
    aggregated = {v.name for agg in counting for v in variables(agg)}
    for goal in goals:
        others = [g for g in goals if g.args[0] != goal.args[0]]
        if goal.args[0] != rule.head.args[0] or not others:
            continue
        loose: list[Term] = [v for v in variables(goal.args) if uses[v.name] == 1]
        is_window = any(g.pred == goal.pred for g in others)
        only_blank = all(isinstance(v, Var) and v.is_anonymous for v in loose)
        named = {v.name for v in variables(goal.args[1:])} - {v.name for v in variables(loose)}
        shared = {v.name for g in others for v in variables(g)}
        if loose and (is_window or only_blank) and named <= shared - aggregated:
            yield goal, loose


def _silenced(schema: Schema, promised: Contract) -> Iterator[Diagnostic]:
    """Answers about what does not come, from the only stream that could move time on."""
    reported: set[Rule] = set()
    for name in promised.outputs:
        entry = promised[name]
        if len(entry.delays) != 1 or entry.clock is not Type.TIME:
            continue
        for delay in entry.decided:
            rule = delay.because
            ways = [schema[timeline] for timeline, _ in delay.ways]
            if any(timeline.arrives_within is not None for timeline in ways):
                continue  # the wall clock moves it on
            if len(schema.streams) > 1 and any(timeline.option("idle") for timeline in ways):
                continue  # other streams take it with them
            if rule is None or rule in reported or not delay.by or delay.by < 0:
                continue
            reported.add(rule)
            if absent := [n for n in rule.body if isinstance(n, Not)]:
                yield finding(
                    "SL0506",
                    f"`{name}` is not raised while `{delay.stream}` is silent: only its rows move "
                    "time on",
                    absent[0].span,
                    f"waits for later rows of `{delay.stream}`",
                    help=f"say how late rows of `{delay.stream}` may arrive, as in "
                    f"`{ARRIVES_WITHIN} 5s`: the wall clock then moves time on",
                )
