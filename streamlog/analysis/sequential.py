"""Streamlog's classes: what a rule says about the order of time."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from attrs import frozen

from streamlog.analysis.time.reach import BranchTime
from streamlog.syntax.ast import Rule


class Class(enum.Enum):
    """From the freest to the slowest; a predicate and a program are as slow as their slowest."""

    STATIC = "static"  # no timestamps
    STRICTLY_SEQUENTIAL = "strictly sequential"  # rests on earlier timestamps only
    SEQUENTIAL = "sequential"  # rests on its own and earlier timestamps
    WAITS = "waits"  # rests on later timestamps, up to a bound
    BLOCKING = "blocking"  # rests on later timestamps without bound

    @property
    def rank(self) -> int:
        return list(Class).index(self)


@frozen
class RuleClass:
    """`waits` is how far a waiting rule looks ahead.

    `relaxed` rules negate or aggregate at their own timestamp, outside the recursion: legal by
    section 6 of the paper, and the reason why answers come when the timestamp closes.
    """

    rule: Rule
    kind: Class
    waits: int = 0
    relaxed: bool = False


def classify(rule: Rule, times: Iterable[BranchTime], strict: Mapping[str, bool]) -> RuleClass:
    """`strict` tells which predicates are strictly sequential in all their rules."""
    goals = [g for t in times for g in t.goals]
    if any(g.ahead is None for g in goals):
        return RuleClass(rule, Class.BLOCKING)
    furthest = max((g.ahead for g in goals if g.ahead is not None), default=0)
    if furthest > 0:
        return RuleClass(rule, Class.WAITS, furthest)
    if goals and furthest < 0:
        return RuleClass(rule, Class.STRICTLY_SEQUENTIAL)
    relaxed = any(g.negated and g.ahead == 0 and not strict.get(g.atom.pred) for g in goals)
    return RuleClass(rule, Class.SEQUENTIAL, relaxed=relaxed)


def classify_all(
    rules: Iterable[Rule], times: Iterable[BranchTime], is_temporal: Mapping[str, bool]
) -> tuple[RuleClass, ...]:
    by_rule: dict[int, list[BranchTime]] = {}
    for time in times:
        by_rule.setdefault(time.rule.number, []).append(time)
    rules = tuple(rules)
    strict: dict[str, bool] = {}
    for rule in rules:
        mine = by_rule.get(rule.number, [])
        is_strict = all(g.ahead is not None and g.ahead < 0 for t in mine for g in t.goals)
        strict[rule.head.pred] = strict.get(rule.head.pred, True) and is_strict
    return tuple(
        classify(rule, by_rule.get(rule.number, []), strict)
        if is_temporal.get(rule.head.pred)
        else RuleClass(rule, Class.STATIC)
        for rule in rules
    )
