"""How each component is best evaluated on Spark, and why."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from attrs import frozen

from streamlog.analysis.schema import Schema
from streamlog.plan.parts import Strategy, part, rules_of, stages
from streamlog.plan.paths import Paths
from streamlog.plan.paths import in_words as in_words_of
from streamlog.plan.pivot import Pivot, find
from streamlog.plan.sql import Context, Unsupported, Untyped, group_query, rule_query
from streamlog.plan.steps import Component, Plan, RulePlan
from streamlog.syntax.ast import Var

# Up to so many rows a recursion is done in one task sooner than a round of jobs has started.
SMALL = 200_000


@frozen
class Choice:
    strategy: Strategy
    reason: str
    is_open: bool = False  # another one, perhaps, when the data tell their types


FEW = Choice(Strategy.KERNEL, f"recursive, over no more than {SMALL:,} rows a batch")
MANY = Choice(Strategy.FIXPOINT, f"recursive, over more than {SMALL:,} rows")


NO_PATHS: Mapping[str, Paths] = MappingProxyType({})


def choose(
    context: Context,
    wanted: Strategy | None = None,
    rows: int | None = None,
    paths: Mapping[str, Paths] = NO_PATHS,
) -> Mapping[str, Choice]:
    """By predicate with rules. `wanted` overrides the cost rule where it can be obeyed; `rows` is
    how many the batch has, if that is known; `paths` are those that GraphFrames can do."""
    plan = context.plan
    result: dict[str, Choice] = {}
    for component in plan.components:
        if rules_of(plan, component.preds):
            choice = _choice(component, context, wanted, rows, paths)
            result |= dict.fromkeys(component.preds, choice)
    return result


def in_words(
    context: Context, schema: Schema, paths: Mapping[str, Paths] = NO_PATHS
) -> Mapping[str, list[str]]:
    """By predicate, what `choose` says whatever the number of rows, with the pivot of kernels, and
    whether or not GraphFrames will be there for the `paths`."""
    plan, choices = context.plan, choose(context)
    dealt: dict[str, str] = {}
    for stage in stages(plan, {pred: choice.strategy for pred, choice in choices.items()}):
        piece = part(plan, stage.components)
        found = find(piece, schema.is_temporal, context.types.column)
        if stage.strategy is Strategy.KERNEL and found is not None:
            for rule in piece.rules:
                pred = rule.rule.head.pred
                dealt.setdefault(pred, _dealt(rule, found, context, choices[pred]))
    said = {p: [f"on Spark: {_words(c, dealt.get(p, ''))}"] for p, c in choices.items()}
    for pred, shape in paths.items():
        what = f"complete data of more than {SMALL:,} rows"
        said[pred].append(f"with GraphFrames: graph over {what} ({in_words_of(shape)})")
    return said


def _words(choice: Choice, dealt: str) -> str:
    if choice == FEW:
        comma = "," if dealt else ""
        return f"kernel{dealt}{comma} up to {SMALL:,} rows a batch, else fixpoint (recursive)"
    unless = ", unless the data tell more" if choice.is_open else ""
    return f"{choice.strategy.value}{dealt}{unless} ({choice.reason})"


def _dealt(rule: RulePlan, pivot: Pivot, context: Context, choice: Choice) -> str:
    """`, dealt out by X`."""
    pred = rule.rule.head.pred
    column = pivot.columns[pred]
    match pivot.of(rule):
        case Var(name) as var if not var.is_anonymous:
            what = name
        case _:
            what = f"column {column + 1}"
    is_known = choice.is_open or context.types.column(pred, column) is not None
    return f", dealt out by {what}" + ("" if is_known else " unless it is a float")


def _choice(
    component: Component,
    context: Context,
    wanted: Strategy | None,
    rows: int | None,
    paths: Mapping[str, Paths],
) -> Choice:
    if wanted is Strategy.KERNEL:
        return Choice(Strategy.KERNEL, "asked for")
    if (found := paths.get(component.preds[0])) is not None:
        is_large = rows is not None and rows > SMALL
        if wanted is Strategy.GRAPH or (wanted is None and is_large):
            return Choice(Strategy.GRAPH, in_words_of(found))
    if (reason := in_order_of_time(component)) is not None:
        return Choice(Strategy.KERNEL, reason)
    if (unsupported := _unsupported(component.preds, context)) is not None:
        is_open = isinstance(unsupported, Untyped)
        return Choice(Strategy.KERNEL, f"SQL cannot do it: {unsupported}", is_open)
    if not component.is_recursive:
        return Choice(Strategy.SQL, "not recursive")
    if wanted is Strategy.FIXPOINT:
        return Choice(Strategy.FIXPOINT, "asked for")
    if rows is not None and rows > SMALL:
        return MANY
    return FEW


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
