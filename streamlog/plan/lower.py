"""Rules to pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve

from streamlog.analysis.builtins import TICK
from streamlog.analysis.contract import Contract
from streamlog.analysis.dependency import Graph, Mark, instead_of
from streamlog.analysis.failing import Failing
from streamlog.analysis.retention import Retentions
from streamlog.analysis.schema import Schema
from streamlog.analysis.strata import Strata
from streamlog.analysis.time.reach import BranchTime
from streamlog.analysis.timers import timers
from streamlog.analysis.types import TypeTable
from streamlog.plan.closures import closures
from streamlog.plan.conjunction import Conjunction, Surroundings, conjunction
from streamlog.plan.keeping import read, thinned
from streamlog.plan.order import exists, in_order, split_risky
from streamlog.plan.rewrites import rewritten
from streamlog.plan.steps import (
    Awaits,
    Component,
    Exists,
    Grouping,
    Join,
    Pipeline,
    Plan,
    RulePlan,
    Step,
)
from streamlog.plan.walk import bindings, reads
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import (
    Agg,
    Atom,
    Body,
    Literal,
    Not,
    Rule,
    Var,
    branches,
)
from streamlog.syntax.walk import variables


def lower(
    schema: Schema,
    types: TypeTable,
    times: Iterable[BranchTime],
    graph: Graph,
    strata: Strata,
    promised: Contract,
    retained: Retentions,
    failing: Failing,
    skips: bool = False,
) -> Plan:
    """The plan of a program without open predicates; with `skips`, solutions that cannot be
    computed are left out."""
    delays: dict[str, dict[str, int | None]] = {
        p.predicate.name: {d.stream: d.by for d in p.delays} for p in promised.predicates
    }
    delays |= {stream: {stream: 0} for stream in schema.timelines}
    delays[TICK] = dict.fromkeys(schema.streams, 0)
    time_of = {t.place: t for t in times}
    going_on = timers(time_of.values())
    groups = _groupings(schema, strata)
    improving = {g.pred: strata.knot[g.pred] for g in groups.values() if g.improving}
    program = Surroundings(schema, types, graph.component_of, delays, improving, failing, skips)
    rules: list[RulePlan] = []
    for rule in schema.rules:
        for which, body in enumerate(branches(rule.body)):
            time = time_of.get((rule.number, which))
            if time is not None and not time.can_fire:
                continue
            group = groups.get(rule.number)
            found = conjunction(program, rule, body, time, group)
            is_timer = any(time is t for t in going_on)
            rules.append(_Lowering(len(rules), found, is_timer).plan())
    members: dict[int, list[int]] = {}
    for plan in rules:
        if plan.group is not None:
            members.setdefault(plan.group, []).append(plan.number)
    groupings = tuple(
        evolve(g, members=tuple(members[g.number]))
        for g in {g.number: g for g in groups.values()}.values()
        if g.number in members
    )
    sole = _sole_rules(rules, schema)
    rules = [evolve(p, once=p.once and p.number in sole) for p in rules]
    arity = {**{n: p.arity for n, p in schema.predicates.items()}, TICK: 1}
    readers = read(rules, retained)
    old = thinned(rules, readers, retained, schema)
    going_on_by_themselves = {p.rule.head.pred for p in rules if p.is_timer}
    components = tuple(_components(schema, graph, strata, going_on_by_themselves))
    draft = Plan(
        components,
        tuple(rules),
        groupings,
        improving,
        tuple(readers),
        readers,
        arity,
        old,
        closures(components, schema, types),
    )
    made: Plan = rewritten(draft, Plan, program)
    return made


def _groupings(schema: Schema, strata: Strata) -> Mapping[int, Grouping]:
    """By the number of a rule with aggregates: where its solutions go."""
    improving = {n for cycle in strata.extrema for n in strata.knot[cycle[0].head]}
    result: dict[int, Grouping] = {}
    count = 0
    for name, rules in schema.rules_of.items():
        shapes = {
            tuple((i, a.func) for i, a in enumerate(r.head.args) if isinstance(a, Agg))
            for r in rules
        }
        shared = len(shapes) == 1 and all(AGGREGATES[f].best for s in shapes for _, f in s)
        grouping: Grouping | None = None
        for rule in rules:
            shape = tuple((i, a.func) for i, a in enumerate(rule.head.args) if isinstance(a, Agg))
            if rule.limit is not None:
                time = rule.head.args[:1] if schema.is_temporal(name) else ()
                limit = evolve(rule.limit, per=(*time, *rule.limit.per))
                result[rule.number] = Grouping(count, name, (), (), False, False, limit)
                count += 1
            if not shape:
                continue
            if grouping is None or not shared:
                distinct = not shared and _may_repeat(rule)
                grouping = Grouping(count, name, shape, (), name in improving, distinct)
                count += 1
            result[rule.number] = grouping
    return result


def _may_repeat(rule: Rule) -> bool:
    """Whether the conjunctions of a rule may find one solution several times."""
    return len(branches(rule.body)) > 1 or any(v.is_from_core for v in variables(rule.body))


def _sole_rules(rules: list[RulePlan], schema: Schema) -> set[int]:
    """The conjunctions that alone make the rows of their predicate."""
    sources: dict[str, set[tuple[str, int]]] = {}
    for plan in rules:
        source = ("rule", plan.number) if plan.group is None else ("group", plan.group)
        sources.setdefault(plan.rule.head.pred, set()).add(source)
    given = schema.facts_of.keys()
    return {
        p.number
        for p in rules
        if len(sources[p.rule.head.pred]) == 1 and p.rule.head.pred not in given
    }


def _components(
    schema: Schema, graph: Graph, strata: Strata, going_on: set[str]
) -> Iterator[Component]:
    improving = {e for cycle in strata.extrema for e in cycle if e.mark is Mark.EXTREMUM}
    for nodes in graph.components:
        internal = [e for n in nodes for e in graph.out[n] if e.goal in nodes]
        marked = [e for e in internal if e.mark]
        names = tuple(sorted(nodes, key=lambda n: (strata.stratum.get(n, 0), n)))
        is_ordered = bool(marked or improving & set(internal))
        yield Component(names, bool(internal), is_ordered, bool(nodes & going_on))


class _Lowering:
    """One conjunction, rewritten, as a plan."""

    def __init__(self, number: int, original: Conjunction, timer: bool) -> None:
        self.number = number
        self.is_timer = timer
        self.original = original
        self.schema = original.program.schema
        self.found, self.risky = self._without_risky(rewritten(original, Conjunction))

    def plan(self) -> RulePlan:
        found, skips = self.found, self.found.skips
        bound = frozenset(v.name for x in (*found.goals, *found.tests) for v in variables(x))
        checks: list[Step] = [self._exists(x, bound, wanted=True) for x in found.lookups]
        folded = bound | ({found.fold.var.name} if found.fold is not None else set())
        chosen: tuple[Literal, ...] = ()
        if found.ranked is not None:
            chosen = (found.ranked.join.atom,)
            folded |= {v.name for v in bindings(found.ranked)}
        after, more = split_risky(found.after, folded, found.ranges)
        risky = (*self.risky, *more)
        # A negation is decided when its variables are known, before anything that may fail.
        negations = list(found.negations)
        checks += self._none_of(negations, bound, (*chosen, *after, *risky))
        checks += (step for step in (found.fold, found.ranked) if step is not None)
        later = in_order(after, folded, self.schema, ranges=found.ranges, skips=skips)
        checks += map(self._latest, later)
        known = folded | {v.name for x in after for v in variables(x)}
        checks += self._none_of(negations, known, risky)
        checks += in_order(risky, known, self.schema, ranges=found.ranges, skips=skips)
        known |= {v.name for x in risky for v in variables(x)}
        checks += self._none_of(negations, known, ())
        checks = list(self._rewritten(checks))
        stamps = (
            self.schema.timestamps(a)[0]
            for a in self.original.goals
            if self.schema.is_temporal(a.pred)
        )
        order = tuple(t for t in stamps if isinstance(t, Var) and t.is_written)
        return RulePlan(
            self.number,
            found.rule,
            found.head,
            tuple(self._pipelines()),
            self._carries(checks, bound, order),
            tuple(checks),
            tuple(dict.fromkeys(self._awaits())),
            order,
            found.group.number if found.group else None,
            self._is_injective(),
            self.is_timer,
        )

    def _latest(self, step: Step) -> Step:
        return evolve(step, latest=self.found.latest) if isinstance(step, Join) else step

    def _without_risky(self, found: Conjunction) -> tuple[Conjunction, tuple[Literal, ...]]:
        """Without the tests that may fail, if something else is decided first that may rule them
        out; a candidate's timestamp, and its value where a better one counts, must be known."""
        if not (found.negations or found.lookups or found.fold or found.ranked or found.latest):
            return found, ()
        first, risky = split_risky((*found.goals, *found.tests), (), found.ranges)
        wanted = found.head[: 1 if found.time else 0]
        if found.group and found.group.improving:
            wanted = found.head
        bound = {v.name for x in first for v in variables(x)}
        if any(v.name not in bound for term in wanted for v in variables(term)):
            return found, ()
        kept = tuple(t for t in found.tests if any(t is f for f in first))
        return evolve(found, tests=kept), risky

    def _none_of(
        self, negations: list[Not], bound: frozenset[str], later: Iterable[Literal]
    ) -> Iterator[Step]:
        """The negations that can be decided before `later` is known; others are left."""
        unknown = {v.name for x in later for v in variables(x)} - bound
        for negation in list(negations):
            if not any(v.name in unknown for v in variables(negation)):
                negations.remove(negation)
                yield self._exists(negation.body, bound, wanted=False)

    def _exists(self, body: Body, bound: frozenset[str], wanted: bool) -> Exists:
        return exists(
            body,
            bound,
            self.schema,
            wanted,
            ranges=self.original.ranges,
            skips=self.original.skips,
        )

    def _rewritten(self, steps: Iterable[Step]) -> tuple[Step, ...]:
        made: tuple[Step, ...] = rewritten(tuple(steps), Step, self.found)
        return made

    def _pipelines(self) -> Iterator[Pipeline]:
        goals, tests = self.found.goals, self.found.tests
        ranges, skips = self.found.ranges, self.found.skips
        starts = [g for g in goals if self.schema.is_temporal(g.pred)] or list(goals)
        if not starts:
            yield Pipeline(
                None, in_order(tests, frozenset(), self.schema, ranges=ranges, skips=skips)
            )
        for number, start in enumerate(starts):
            rest = [g for g in goals if g is not start]
            before = frozenset(g.number for g in starts[:number] if g.pred == start.pred)
            bound = frozenset(v.name for v in variables(start))
            steps = in_order(
                [*rest, *tests], bound, self.schema, before, ranges=ranges, skips=skips
            )
            yield Pipeline(start, self._rewritten(steps))

    def _carries(
        self, checks: list[Step], bound: frozenset[str], order: tuple[Var, ...]
    ) -> tuple[Var, ...]:
        """What must be known of a solution to decide it and to make its row."""
        group, head = self.found.group, self.found.head
        needed = [v for term in head for v in variables(term)]
        needed += variables(self.found.rule.limit) if self.found.rule.limit else ()
        needed += (v for step in checks for v in reads(step))
        if group is not None:
            if any(AGGREGATES[func].by_order for _, func in group.aggregates):
                needed += order
            if group.distinct:
                literals = (*self.found.goals, *self.found.tests)
                own = sorted({v.name: v for x in literals for v in variables(x)}.items())
                needed = [v for _, v in own if v.is_written] + needed
        found = {v.name: v for v in needed if v.name in bound}
        first = head[0] if self.found.time is not None else None
        rest = [v for n, v in found.items() if not (isinstance(first, Var) and n == first.name)]
        return (first, *rest) if isinstance(first, Var) else tuple(rest)

    def _awaits(self) -> Iterator[Awaits]:
        looked_up = [*(body[0] for body in self.found.lookups), *self.found.awaited]
        for goal in self.found.time.goals if self.found.time else ():
            decides = goal.negated or self.original.group is not None
            if decides or any(goal.atom is a for a in looked_up):
                yield Awaits(goal.atom.pred, goal.ahead, instead_of(goal))

    def _is_injective(self) -> bool:
        """Whether different solutions always make different rows."""
        if self.found.group is not None and self.found.group.limit is None:
            return True
        if self.found.ranked is not None:
            return False
        shown = {a.name for a in self.found.head if isinstance(a, Var)}
        if self.found.fold is not None:
            shown.add(self.found.fold.var.name)  # the others tell it
        goals = (*self.found.goals, *(x for x in self.found.after if isinstance(x, Atom)))
        return {v.name for g in goals for v in variables(g)} <= shown
