"""How each component is best evaluated on Spark, and why."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from types import MappingProxyType

from attrs import evolve, frozen

from streamlog.analysis.schema import Schema
from streamlog.plan.parts import Strategy, part, reads, rules_of, stages
from streamlog.plan.paths import Paths, Unlike
from streamlog.plan.paths import in_words as in_words_of
from streamlog.plan.pivot import Pivot, find
from streamlog.plan.sql import Context, Unsupported, Untyped, group_query, rule_query
from streamlog.plan.steps import Component, Plan, RulePlan
from streamlog.syntax.ast import Type, Var

# Up to so many rows a recursion goes into one task. There it was faster than the fixpoint wherever
# `benchmarks/paths.py` has measured both, up to three million arcs; but it must fit into memory.
SMALL = 1_000_000


@frozen
class Choice:
    strategy: Strategy
    reason: str
    is_open: bool = False  # another one, perhaps, when the data tell their types
    by_rows: bool = False  # another one for other numbers of rows


NO_PATHS: Mapping[str, Paths] = MappingProxyType({})


def choose(
    context: Context,
    wanted: Strategy | None = None,
    rows: float | None = None,
    paths: Mapping[str, Paths | Unlike] = NO_PATHS,
) -> Mapping[str, Choice]:
    """By predicate with rules. `wanted` overrides the cost rule where it can be obeyed; `rows` is
    how many complete data have, infinitely many if nobody knows, and None for batches that are to
    come; `paths` are the recursions that GraphFrames may do, and why others are not among them."""
    plan = context.plan
    result: dict[str, Choice] = {}
    for component in plan.components:
        if rules_of(plan, component.preds):
            choice = _choice(component, context, wanted, rows, paths)
            result |= dict.fromkeys(component.preds, choice)
    return result


def in_process(context: Context, wanted: Strategy | None = None) -> Mapping[str, Choice]:
    """The same where one process has DuckDB and a kernel: the program's text alone decides. A
    column that may hold values of several types is a kernel's, like recursion unless queries are
    `wanted` for it."""
    plan, chosen = context.plan, dict(choose(context, wanted))
    for component in plan.components:
        rules = rules_of(plan, component.preds)
        read = sorted(set(component.preds).union(*(reads(rule) for rule in rules)))
        is_open = [p for p in read if None in _types(context, p)]
        if rules and is_open and chosen[component.preds[0]].strategy is not Strategy.KERNEL:
            reason = f"the program leaves the type of a column of `{is_open[0]}` open"
            chosen |= dict.fromkeys(component.preds, Choice(Strategy.KERNEL, reason))
    return chosen


def _types(context: Context, pred: str) -> list[Type | None]:
    return [context.column_of(pred, i) for i in range(context.plan.arity[pred])]


def in_words(
    context: Context, schema: Schema, paths: Mapping[str, Paths] = NO_PATHS
) -> Mapping[str, list[str]]:
    """By predicate, what `choose` says whatever the number of rows, with the pivot of kernels, and
    what GraphFrames would do with the `paths`."""
    plan, choices = context.plan, choose(context)
    shared: dict[str, str] = {}
    for stage in stages(plan, {pred: choice.strategy for pred, choice in choices.items()}):
        piece = part(plan, stage.components)
        found = find(piece, schema.is_temporal, context.types.column)
        if stage.strategy is Strategy.KERNEL and found is not None:
            for rule in piece.rules:
                pred = rule.rule.head.pred
                shared.setdefault(pred, _partitioned(rule, found, context, choices[pred]))
    said = {p: [f"on Spark: {_words(c, shared.get(p, ''))}"] for p, c in choices.items()}
    for pred, shape in paths.items():
        said[pred].append(f"with GraphFrames, if asked for: graph ({in_words_of(shape)})")
    return said


def _words(choice: Choice, partitioned: str) -> str:
    if choice.by_rows:
        comma = "," if partitioned else ""
        return f"kernel{partitioned}{comma} up to {SMALL:,} rows a batch, else fixpoint (recursive)"
    unless = ", unless the data tell more" if choice.is_open else ""
    return f"{choice.strategy.value}{partitioned}{unless} ({choice.reason})"


def _partitioned(rule: RulePlan, pivot: Pivot, context: Context, choice: Choice) -> str:
    """`, partitioned by X`."""
    pred = rule.rule.head.pred
    column = pivot.columns[pred]
    match pivot.of(rule):
        case Var(name) as var if not var.is_anonymous:
            what = name
        case _:
            what = f"column {column + 1}"
    is_known = choice.is_open or context.types.column(pred, column) is not None
    return f", partitioned by {what}" + ("" if is_known else " unless it is a float")


def _choice(
    component: Component,
    context: Context,
    wanted: Strategy | None,
    rows: float | None,
    paths: Mapping[str, Paths | Unlike],
) -> Choice:
    if wanted is Strategy.KERNEL:
        return Choice(Strategy.KERNEL, "asked for")
    found = paths.get(component.preds[0]) if wanted is Strategy.GRAPH else None
    if isinstance(found, Paths) and not context.types.optional:
        return Choice(Strategy.GRAPH, f"asked for: {in_words_of(found)}")
    choice = _by_rules(component, context, wanted, rows)
    if isinstance(found, Paths):
        return evolve(choice, reason=f"{choice.reason}; values may be missing")
    return evolve(choice, reason=f"{choice.reason}; {in_words_of(found)}") if found else choice


def _by_rules(
    component: Component, context: Context, wanted: Strategy | None, rows: float | None
) -> Choice:
    """GraphFrames is never chosen by itself: see `benchmarks/paths.py`."""
    if (reason := in_order_of_time(component)) is not None:
        return Choice(Strategy.KERNEL, reason)
    if (unsupported := _unsupported(component.preds, context)) is not None:
        is_open = isinstance(unsupported, Untyped)
        return Choice(Strategy.KERNEL, f"SQL cannot do it: {unsupported}", is_open)
    if not component.is_recursive:
        return Choice(Strategy.SQL, "not recursive")
    if wanted is Strategy.FIXPOINT:
        return Choice(Strategy.FIXPOINT, "asked for")
    if rows is None:
        return Choice(Strategy.KERNEL, "recursive, batch by batch", by_rows=True)
    strategy = Strategy.KERNEL if rows <= SMALL else Strategy.FIXPOINT
    return Choice(strategy, f"recursive, {_about(rows)}", by_rows=True)


def _about(rows: float) -> str:
    """The estimate, and what it is compared with."""
    if rows == inf:
        return "over a number of rows that Spark cannot estimate"
    return f"about {rows:,.0f} rows: {'no more' if rows <= SMALL else 'more'} than {SMALL:,}"


def in_order_of_time(component: Component) -> str | None:
    """Why no query can do all timestamps at once, if none can."""
    if component.is_timer:
        return "it goes on by itself into the future"
    if component.is_ordered:
        return "it negates or aggregates within its own recursion"
    return None


def _unsupported(preds: tuple[str, ...], context: Context) -> Unsupported | None:
    """Why a predicate's rules have no queries, if they have none."""
    plan: Plan = context.plan
    try:
        for rule in rules_of(plan, preds):
            if rule.group is None:
                rule_query(rule, context)
                for number, pipeline in enumerate(rule.pipelines):
                    if pipeline.start is not None and pipeline.start.pred in preds:
                        rule_query(rule, context, delta=number)
        for grouping in plan.groupings:
            if grouping.pred in preds:
                group_query(grouping, context)
    except Unsupported as reason:
        return reason
    return None
