"""How each component is best evaluated on Spark, and why."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from streamlog.plan.parts import Strategy, rules_of
from streamlog.plan.sql import Context, Unsupported, group_query, rule_query
from streamlog.plan.steps import Component, Plan

# Up to so many rows a recursion is done in one task sooner than a round of jobs has started.
SMALL = 200_000


@frozen
class Choice:
    strategy: Strategy
    reason: str


def choose(
    context: Context, wanted: Strategy | None = None, rows: int | None = None
) -> Mapping[str, Choice]:
    """By predicate with rules. `wanted` overrides the cost rule where it can be obeyed; `rows` is
    how many the batch has, if that is known."""
    plan = context.plan
    result: dict[str, Choice] = {}
    for component in plan.components:
        if rules_of(plan, component.preds):
            choice = _choice(component, context, wanted, rows)
            result |= dict.fromkeys(component.preds, choice)
    return result


def _choice(
    component: Component, context: Context, wanted: Strategy | None, rows: int | None
) -> Choice:
    if wanted is Strategy.KERNEL:
        return Choice(Strategy.KERNEL, "asked for")
    if (reason := in_order_of_time(component)) is not None:
        return Choice(Strategy.KERNEL, reason)
    if (reason := _unsupported(component.preds, context)) is not None:
        return Choice(Strategy.KERNEL, f"SQL cannot do it: {reason}")
    if not component.is_recursive:
        return Choice(Strategy.SQL, "not recursive")
    if wanted is Strategy.FIXPOINT:
        return Choice(Strategy.FIXPOINT, "asked for")
    if rows is not None and rows > SMALL:
        return Choice(Strategy.FIXPOINT, f"recursive, over more than {SMALL:,} rows")
    return Choice(Strategy.KERNEL, f"recursive, over no more than {SMALL:,} rows a batch")


def in_order_of_time(component: Component) -> str | None:
    """Why no query can do all timestamps at once, if none can."""
    if component.is_timer:
        return "it goes on by itself into the future"
    if component.is_ordered:
        return "it negates or aggregates within its own recursion"
    return None


def _unsupported(preds: tuple[str, ...], context: Context) -> str | None:
    """Why a predicate's rules have no queries, if they have none."""
    plan: Plan = context.plan
    try:
        for rule in rules_of(plan, preds):
            if rule.group is None:
                rule_query(rule, context)
                for number in range(len(rule.pipelines)):
                    rule_query(rule, context, delta=number)
        for grouping in plan.groupings:
            if grouping.pred in preds:
                group_query(grouping, context)
    except Unsupported as reason:
        return str(reason)
    return None
