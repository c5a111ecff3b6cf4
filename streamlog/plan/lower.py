"""Rules to pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve

from streamlog.analysis.builtins import TICK
from streamlog.analysis.contract import Contract
from streamlog.analysis.dependency import Graph, Mark, is_timer
from streamlog.analysis.schema import Schema
from streamlog.analysis.strata import Strata
from streamlog.analysis.time.reach import BranchTime
from streamlog.analysis.versions import Case, Version
from streamlog.plan.conjunction import Conjunction, Surroundings, conjunction
from streamlog.plan.order import exists, in_order
from streamlog.plan.rewrites.lookups import lookups
from streamlog.plan.rewrites.selection import selected
from streamlog.plan.rewrites.windows import window
from streamlog.plan.steps import (
    Awaits,
    Component,
    Exists,
    Extend,
    Fold,
    Grouping,
    Index,
    Join,
    Pipeline,
    Plan,
    Reader,
    RulePlan,
    Step,
)
from streamlog.syntax.ast import (
    Agg,
    Body,
    Rule,
    Var,
    branches,
)
from streamlog.syntax.walk import variables


def lower(
    schema: Schema,
    times: Iterable[BranchTime],
    graph: Graph,
    strata: Strata,
    promised: Contract,
    cases: Iterable[Case],
) -> Plan:
    """The plan of a program without open predicates."""
    delays: dict[str, dict[str, int | None]] = {
        p.predicate.name: {d.stream: d.by for d in p.delays} for p in promised.predicates
    }
    delays |= {stream: {stream: 0} for stream in schema.streams}
    delays[TICK] = dict.fromkeys(schema.streams, 0)
    time_of = {(id(t.rule), id(t.body)): t for t in times}
    groups = _groupings(schema, strata)
    improving = {g.pred: strata.knot[g.pred] for g in groups.values() if g.improving}
    program = Surroundings(schema, graph.component_of, delays, improving)
    rules: list[RulePlan] = []
    for rule in schema.rules:
        bodies = branches(rule.body)
        for body in bodies:
            time = time_of.get((id(rule), id(body)))
            if time is not None and not time.can_fire:
                continue
            group = groups.get(rule.span)
            found = conjunction(program, rule, body, time, group)
            timer = time is not None and is_timer(time, graph)
            rules.append(_Lowering(len(rules), found, timer).plan())
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
    readers = _readers(rules, time_of, _old_columns(cases), strata.potential)
    timers = {p.rule.head.pred for p in rules if p.is_timer}
    return Plan(
        tuple(_components(schema, graph, strata, timers)),
        tuple(rules),
        groupings,
        improving,
        tuple(
            (step.join.index, step.column)
            for plan in rules
            for step in plan.checks
            if isinstance(step, Fold) and step.column is not None
        ),
        tuple(sorted(readers, key=lambda i: i.name)),
        {i: tuple(dict.fromkeys(r)) for i, r in readers.items()},
        {**{n: p.arity for n, p in schema.predicates.items()}, TICK: 1},
    )


def _groupings(schema: Schema, strata: Strata) -> Mapping[object, Grouping]:
    """By the place of a rule with aggregates: where its solutions go."""
    improving = {n for cycle in strata.extrema for n in strata.knot[cycle[0].head]}
    result: dict[object, Grouping] = {}
    count = 0
    for name, rules in schema.rules_of.items():
        shapes = {
            tuple((i, a.func) for i, a in enumerate(r.head.args) if isinstance(a, Agg))
            for r in rules
        }
        shared = len(shapes) == 1 and all(f in ("min", "max") for s in shapes for _, f in s)
        grouping: Grouping | None = None
        for rule in rules:
            shape = tuple((i, a.func) for i, a in enumerate(rule.head.args) if isinstance(a, Agg))
            if not shape:
                continue
            if grouping is None or not shared:
                distinct = not shared and _may_repeat(rule)
                grouping = Grouping(count, name, shape, (), name in improving, distinct)
                count += 1
            result[rule.span] = grouping
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
    schema: Schema, graph: Graph, strata: Strata, timers: set[str]
) -> Iterator[Component]:
    improving = {e for cycle in strata.extrema for e in cycle if e.mark is Mark.EXTREMUM}
    for nodes in graph.components:
        internal = [e for n in nodes for e in graph.out[n] if e.goal in nodes]
        marked = [e for e in internal if e.mark]
        names = tuple(sorted(nodes, key=lambda n: (strata.stratum.get(n, 0), n)))
        is_ordered = bool(marked or improving & set(internal))
        yield Component(names, bool(internal), is_ordered, bool(nodes & timers))


class _Lowering:
    """One conjunction, rewritten, as a plan."""

    def __init__(self, number: int, original: Conjunction, timer: bool) -> None:
        self.number = number
        self.is_timer = timer
        self.original = original
        self.found = window(lookups(original))
        self.schema = original.program.schema

    def plan(self) -> RulePlan:
        found = self.found
        bound = frozenset(v.name for x in (*found.goals, *found.tests) for v in variables(x))
        checks: list[Step] = [self._exists(x, bound, wanted=True) for x in found.lookups]
        checks += (self._exists(n.body, bound, wanted=False) for n in found.negations)
        if found.fold is not None:
            checks.append(found.fold)
        checks = [self._through_indexes(step) for step in checks]
        order = tuple(
            a.args[0]
            for a in found.goals
            if self.schema.is_temporal(a.pred)
            and isinstance(a.args[0], Var)
            and a.args[0].is_written
        )
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

    def _exists(self, body: Body, bound: frozenset[str], wanted: bool) -> Exists:
        replaced = frozenset(self.found.program.improving)
        return exists(body, bound, self.schema, wanted, replaced)

    def _through_index(self, join: Join) -> Join:
        """Of the rows with its constants; and outside its recursion, a predicate with improving
        rows is read when they are settled."""
        improving, pred = self.found.program.improving, self.found.rule.head.pred
        join = selected(join)
        if pred not in improving.get(join.index.pred, {pred}):
            return evolve(join, index=evolve(join.index, settled=True))
        return join

    def _through_indexes(self, step: Step) -> Step:
        match step:
            case Join():
                return self._through_index(step)
            case Fold(_, _, join):
                return evolve(step, join=self._through_index(join))
            case Exists(steps):
                return evolve(step, steps=tuple(map(self._through_indexes, steps)))
            case _:
                return step

    def _pipelines(self) -> Iterator[Pipeline]:
        goals, tests = self.found.goals, self.found.tests
        starts = [g for g in goals if self.schema.is_temporal(g.pred)] or list(goals)
        if not starts:
            yield Pipeline(None, in_order(tests, frozenset(), self.schema))
        for number, start in enumerate(starts):
            rest = [g for g in goals if g is not start]
            before = frozenset(id(g) for g in starts[:number] if g.pred == start.pred)
            bound = frozenset(v.name for v in variables(start))
            steps = in_order([*rest, *tests], bound, self.schema, before)
            yield Pipeline(start, tuple(map(self._through_indexes, steps)))

    def _carries(
        self, checks: list[Step], bound: frozenset[str], order: tuple[Var, ...]
    ) -> tuple[Var, ...]:
        """What must be known of a solution to decide it and to make its row."""
        group, head = self.found.group, self.found.head
        needed = [v for term in head for v in variables(term)]
        needed += (v for step in checks for v in reads(step))
        if group is not None:
            if any(func in ("first", "last") for _, func in group.aggregates):
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
        looked_up = [body[0] for body in self.found.lookups]
        for goal in self.found.time.goals if self.found.time else ():
            decides = goal.negated or self.original.group is not None
            if decides or any(goal.atom is a for a in looked_up):
                yield Awaits(goal.atom.pred, goal.ahead)

    def _is_injective(self) -> bool:
        """Whether different solutions always make different rows."""
        if self.found.group is not None:
            return True
        shown = {a.name for a in self.found.head if isinstance(a, Var)}
        return {v.name for g in self.found.goals for v in variables(g)} <= shown


def reads(step: Step) -> Iterator[Var]:
    """The variables that a step speaks about."""
    match step:
        case Join(atom, _, low, high):
            yield from variables(atom)
            for term in (low, high):
                if term is not None:
                    yield from variables(term)
        case Extend(var, term):
            yield var
            yield from variables(term)
        case Exists(steps):
            for inner in steps:
                yield from reads(inner)
        case Fold(_, _, join):
            yield from reads(join)
        case _:
            yield from variables(step.test)


def joins(steps: Iterable[Step]) -> Iterator[Join]:
    """The joins among steps, those inside tests too."""
    for step in steps:
        match step:
            case Join():
                yield step
            case Exists(inner):
                yield from joins(inner)
            case Fold(_, _, join):
                yield join
            case _:
                pass


def _readers(
    rules: Iterable[RulePlan],
    time_of: Mapping[tuple[int, int], BranchTime],
    old_columns: Mapping[int, frozenset[int] | None],
    potential: Mapping[str, int],
) -> dict[Index, list[Reader]]:
    """Who reads each index, and how far behind the progress of its own predicate."""
    back_of = {id(g.atom): g.back for t in time_of.values() for g in t.goals}
    result: dict[Index, list[Reader]] = {}
    for plan in rules:
        steps = [s for p in plan.pipelines for s in p.steps] + list(plan.checks)
        for join in joins(steps):
            head, goal = plan.rule.head.pred, id(join.atom)
            reader = Reader(head, back_of.get(goal))
            if reader.back is None:
                # A row is old when its clock is before that of every answer to come.
                old = potential.get(head, 0) - potential.get(join.atom.pred, 0)
                reader = Reader(head, None, old, old_columns.get(goal))
            result.setdefault(join.index, []).append(reader)
    return result


def _old_columns(cases: Iterable[Case]) -> dict[int, frozenset[int] | None]:
    """By goal, the columns that are read of its old facts; None where the timestamp is too."""
    result: dict[int, frozenset[int] | None] = {}
    for case in cases:
        names = [v.name for v in variables((case.time.rule.head, *case.time.body))]
        for goal in case.atoms:
            if goal.version is not Version.OLD or result.get(id(goal.atom), ()) is None:
                continue
            result[id(goal.atom)] = None
            if not case.needs_time_of(goal.atom):
                args = enumerate(goal.atom.args[1:], start=1)
                result[id(goal.atom)] = frozenset(
                    i for i, a in args if not isinstance(a, Var) or names.count(a.name) > 1
                )
    return result
