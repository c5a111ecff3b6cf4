"""The queries of a plan as a script: what Spark would run, each below the rules it comes from.

Relations have the names of their predicates; `delta_p` has the rows of `p` that the last round of a
recursion has added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from attrs import evolve, frozen

from streamlog.plan.explain import in_a_line
from streamlog.plan.parts import rules_of
from streamlog.plan.sql import (
    Context,
    Query,
    Unsupported,
    Untyped,
    Version,
    group_query,
    named,
    predicate_query,
    render,
    rule_query,
)
from streamlog.plan.steps import Component, RulePlan
from streamlog.plan.strategies import in_order_of_time
from streamlog.syntax.pretty import pretty


@frozen
class Statement:
    """A query, or why there is none."""

    pred: str
    rules: tuple[str, ...]
    sql: str | None
    note: str | None = None  # when a recursion runs it; without a query, why there is none

    @property
    def text(self) -> str:
        comments = "".join(f"-- {line}\n" for line in (*self.rules, self.note) if line)
        return f"{comments}{self.sql};" if self.sql else comments.rstrip()


def statements(context: Context) -> tuple[Statement, ...]:
    """In the order of evaluation."""
    context = evolve(
        context,
        table=lambda pred, v: named(f"delta_{pred}" if v is Version.DELTA else pred),
    )
    return tuple(s for c in context.plan.components for s in _of_component(c, context))


def _of_component(component: Component, context: Context) -> Iterator[Statement]:
    rules = rules_of(context.plan, component.preds)
    reason = in_order_of_time(component)
    for pred in component.preds:
        mine = [r for r in rules if r.rule.head.pred == pred]
        if not mine:
            continue
        if reason is not None:
            yield Statement(pred, _texts(mine), None, f"no SQL: {reason}")
        elif component.is_recursive:
            for rule in mine:
                yield from _rounds(rule, component, context)
        else:
            yield from _at_once(pred, mine, context)


def _at_once(pred: str, rules: list[RulePlan], context: Context) -> Iterator[Statement]:
    """One query, unless some rule has none."""
    whole = _statement(pred, rules, partial(predicate_query, pred, context))
    if whole.sql is not None:
        yield whole
        return
    for rule in rules:
        if rule.group is None:
            yield _statement(pred, [rule], partial(rule_query, rule, context))
    for grouping in context.plan.groupings:
        if grouping.pred == pred:
            members = [r for r in rules if r.group == grouping.number]
            yield _statement(pred, members, partial(group_query, grouping, context))


def _rounds(rule: RulePlan, component: Component, context: Context) -> Iterator[Statement]:
    """What a recursion begins with, and how it goes on."""
    pred = rule.rule.head.pred
    yield _statement(pred, [rule], partial(rule_query, rule, context), "in the first round")
    for number, pipeline in enumerate(rule.pipelines):
        if pipeline.start is not None and pipeline.start.pred in component.preds:
            make = partial(rule_query, rule, context, delta=number)
            note = f"in later rounds, from each new {pretty(pipeline.start)}"
            yield _statement(pred, [rule], make, note)


def _statement(
    pred: str, rules: list[RulePlan], make: Callable[[], Query], note: str | None = None
) -> Statement:
    try:
        return Statement(pred, _texts(rules), render(make(), "spark", pretty=True), note)
    except Untyped as reason:
        return Statement(pred, _texts(rules), None, f"no SQL until the data tell more: {reason}")
    except Unsupported as reason:
        return Statement(pred, _texts(rules), None, f"no SQL: {reason}")


def _texts(rules: list[RulePlan]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(in_a_line(r.rule) for r in rules))
