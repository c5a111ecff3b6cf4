"""A plan in parts: how each component is to be evaluated, and in which order.

A kernel can run any components together as one part; what the part reads from elsewhere is given
to it like the rows of a stream.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve, frozen

from streamlog.plan.steps import Component, Plan, RulePlan
from streamlog.plan.walk import joins_of


class Strategy(enum.Enum):
    """How a component is evaluated on Spark."""

    SQL = "sql"  # one query for each rule, over all the timestamps of a batch
    FIXPOINT = "fixpoint"  # such queries, until nothing is new
    GRAPH = "graph"  # by GraphFrames
    KERNEL = "kernel"  # by a kernel inside a task


@frozen
class Stage:
    """Components that are evaluated together: one, unless a kernel does it."""

    strategy: Strategy
    components: tuple[Component, ...]

    @property
    def preds(self) -> tuple[str, ...]:
        return tuple(p for c in self.components for p in c.preds)


def reads(rule: RulePlan) -> set[str]:
    """The predicates whose rows a conjunction looks at."""
    starts = {p.start.pred for p in rule.pipelines if p.start is not None}
    return starts | {j.atom.pred for j in joins_of(rule)}


def stages(plan: Plan, strategies: Mapping[str, Strategy]) -> tuple[Stage, ...]:
    """The components with rules, in an order that keeps kernels together.

    `strategies` says how each predicate is evaluated; those of one component alike.
    """
    defined = {r.rule.head.pred for r in plan.rules}
    waiting = [c for c in plan.components if c.preds[0] in defined]
    needs = {
        c: set().union(*(reads(r) for r in rules_of(plan, c.preds))) & defined - set(c.preds)
        for c in waiting
    }
    done: set[str] = set()
    result: list[Stage] = []

    def ready(in_kernel: bool) -> list[Component]:
        return [
            c
            for c in waiting
            if needs[c] <= done and (strategies[c.preds[0]] is Strategy.KERNEL) == in_kernel
        ]

    while waiting:
        for component in ready(in_kernel=False):
            result.append(Stage(strategies[component.preds[0]], (component,)))
            waiting.remove(component)
            done |= set(component.preds)
        if ready(in_kernel=False):
            continue
        together: list[Component] = []
        while found := ready(in_kernel=True):
            for component in found:
                together.append(component)
                waiting.remove(component)
                done |= set(component.preds)
        if together:
            result.append(Stage(Strategy.KERNEL, tuple(together)))
    return tuple(result)


def rules_of(plan: Plan, preds: Iterable[str]) -> list[RulePlan]:
    wanted = set(preds)
    return [r for r in plan.rules if r.rule.head.pred in wanted]


def for_answers(plan: Plan, answers: Iterable[str]) -> Plan:
    """Without the rules on which none of the answers rests, now that the plan is made."""
    wanted, waiting = set(answers), list(answers)
    while waiting:
        found = set().union(*(reads(r) for r in rules_of(plan, [waiting.pop()]))) - wanted
        wanted |= found
        waiting += found
    kept = [c for c in plan.components if wanted.intersection(c.preds)]
    if len(rules_of(plan, wanted)) == len(plan.rules):
        return plan
    return evolve(part(plan, kept), components=plan.components, arity=plan.arity)


def part(plan: Plan, components: Sequence[Component]) -> Plan:
    """The plan of some components alone. What they read is an input of it."""
    preds = {p for c in components for p in c.preds}
    rules = rules_of(plan, preds)
    given = sorted(set().union(*(reads(r) for r in rules)) - preds)
    used = {j.index for r in rules for j in joins_of(r)}
    inputs = (Component((p,), is_recursive=False, is_ordered=False, is_timer=False) for p in given)
    return evolve(
        plan,
        components=(*inputs, *components),
        rules=tuple(rules),
        groupings=tuple(g for g in plan.groupings if g.pred in preds),
        improving={p: by for p, by in plan.improving.items() if p in preds},
        indexes=tuple(i for i in plan.indexes if i in used),
        readers={
            i: tuple(r for r in readers if r.pred in preds)
            for i, readers in plan.readers.items()
            if i in used
        },
        thinned={i: old for i, old in plan.thinned.items() if i in used},
        arity={p: plan.arity[p] for p in (*given, *sorted(preds))},
        closures={p: found for p, found in plan.closures.items() if p in preds},
    )
