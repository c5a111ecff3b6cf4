"""How each component is best evaluated on Spark, and why."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from streamlog.plan.parts import Strategy, rules_of
from streamlog.plan.sql import Context, Unsupported, group_query, rule_query
from streamlog.plan.steps import Component

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
    if component.is_timer:
        return Choice(Strategy.KERNEL, "it goes on by itself into the future")
    if component.is_ordered:
        return Choice(Strategy.KERNEL, "it negates or aggregates within its own recursion")
    if (reason := _unsupported(component, context)) is not None:
        return Choice(Strategy.KERNEL, f"SQL cannot do it: {reason}")
    if not component.is_recursive:
        return Choice(Strategy.SQL, "not recursive")
    if wanted is Strategy.FIXPOINT:
        return Choice(Strategy.FIXPOINT, "asked for")
    if rows is not None and rows > SMALL:
        return Choice(Strategy.FIXPOINT, f"recursive, over more than {SMALL:,} rows")
    return Choice(Strategy.KERNEL, f"recursive, over no more than {SMALL:,} rows a batch")


def _unsupported(component: Component, context: Context) -> str | None:
    """Why a component's rules have no queries, if they have none."""
    try:
        for rule in rules_of(context.plan, component.preds):
            if rule.group is None:
                rule_query(rule, context)
        for grouping in context.plan.groupings:
            if grouping.pred in component.preds:
                group_query(grouping, context)
    except Unsupported as reason:
        return str(reason)
    return None
