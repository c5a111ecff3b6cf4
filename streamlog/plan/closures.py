"""Closures that a kernel makes from their base alone, by the ends of paths.

    reach(T, X, Y) <- arc(T, X, Y), not (reach(T0, X, Y), T0 < T).
    reach(T, X, Z) <- reach(T1, X, Y), reach(T2, Y, Z), T = max(T1, T2),
        not (reach(T0, X, Z), T0 < T).
            at each instant: new rows of the base lengthen the paths that end where they begin, and
            are paths themselves; each new path goes on along the rows of the base so far, until
            nothing is new

So no two paths are ever joined, a path is found once for each arc that leads to its end, and all
beginnings of the paths with one end are handled together, as a set.

Why that is the same. Let `d(T, X, Z)` be the best cost over all sequences of rows of the base that
lead from X to Z and are no later than T; without a cost, whether there is one.

- Of a closure without a cost, or one over tables, the rows are those pairs, with d: that is what
  `plan.recognise` proves of the rules. A path is a path and a row of the base: so it is enough to
  go on along those.
- Where only the earliest rows count, the timestamp of a path is the latest of its rows (`max`), and
  the rule keeps the least. Instants come in order, so the first is the least.
- Where a row is *renewed*, `p(T, X, Z, d)` holds at each T with d(T, X, Z) better than
  d(T - 1, X, Z), and nothing else of p does. By induction over T and the number of rows of a
  path: cut its last row off. Up to T the rule has found a cost for the rest that is at least as
  good as that of the rest, and one for the last row. A better part never makes a worse whole, so
  the two together are as good as the path, at the later of their timestamps; there the rule finds
  that cost, or refuses it for one as good. What it finds are costs of paths, so none is better
  than d. It does not matter whether the second part is a path or a row of the base. This needs
  `min` in the head: Example 8 as printed keeps paths that are beaten at their own instant and
  joins them to others, and is none of these.
- A row of the base that is no better than a path between its ends is not stored: the path, made
  of rows that are, stands for it.

For sums, numbers must be whole: others depend on the order in which they are added. A cycle that
makes costs better has no end, by the rules as they stand neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from streamlog.analysis.builtins import WHOLE
from streamlog.analysis.schema import Kind, Schema
from streamlog.analysis.types import TypeTable
from streamlog.plan.paths import Closure, base_rules
from streamlog.plan.recognise import recognise
from streamlog.plan.steps import Component, Plan, RulePlan
from streamlog.plan.walk import joins_of
from streamlog.syntax.ast import Agg, Term


def closures(
    components: Iterable[Component], schema: Schema, types: TypeTable
) -> dict[str, Closure]:
    """By predicate, those of a closed program."""
    return {found.pred: found for c in components for found in _closures(c, schema, types)}


def _closures(component: Component, schema: Schema, types: TypeTable) -> Iterator[Closure]:
    for renewed in (False, True):
        found = recognise(component, schema, types, renewed=renewed)
        if isinstance(found, Closure) and _can_be_made(found, schema, types):
            yield found


def _can_be_made(found: Closure, schema: Schema, types: TypeTable) -> bool:
    pred, cost = found.pred, found.cost
    if found.both_ways or pred in schema.facts_of or schema[pred].kind is not Kind.DERIVED:
        return False
    if cost is not None:
        type_ = types.column(pred, cost.column)
        if type_ is None or (cost.combine == "+" and type_ not in WHOLE):
            return False
    if not schema.is_temporal(pred):
        return True
    is_earliest = cost is not None and (cost.column, cost.best, cost.combine) == (0, "min", "max")
    return found.at_once and (found.renewed or is_earliest)


def without_recursion(plan: Plan) -> Plan:
    """The plan in which the rules of closures only make their base."""
    if not plan.closures:
        return plan
    rules: list[RulePlan] = [r for r in plan.rules if r.rule.head.pred not in plan.closures]
    for pred, closure in plan.closures.items():
        awaits = tuple(
            dict.fromkeys(a for r in plan.rules if r.rule.head.pred == pred for a in r.awaits)
        )
        rules += (
            evolve(
                rule,
                head=tuple(map(_aggregated, rule.head)),
                awaits=awaits,
                group=None,
                once=True,
                waits=bool(awaits),
            )
            for rule in base_rules(closure, plan)
        )
    rules.sort(key=lambda rule: rule.number)
    used = {j.index for r in rules for j in joins_of(r)}
    return evolve(
        plan,
        rules=tuple(rules),
        groupings=tuple(g for g in plan.groupings if g.pred not in plan.closures),
        improving={p: by for p, by in plan.improving.items() if p not in plan.closures},
        indexes=tuple(i for i in plan.indexes if i in used),
        readers={i: readers for i, readers in plan.readers.items() if i in used},
        thinned={i: old for i, old in plan.thinned.items() if i in used},
    )


def _aggregated(term: Term) -> Term:
    return term.arg if isinstance(term, Agg) and term.arg else term
