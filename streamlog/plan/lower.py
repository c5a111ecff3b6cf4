"""Rules to pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, frozen

from streamlog.analysis.builtins import FILTERS, TICK
from streamlog.analysis.dependency import Graph, Mark
from streamlog.analysis.schema import Schema
from streamlog.analysis.strata import Strata
from streamlog.analysis.time.reach import BranchTime, Goal
from streamlog.plan.order import exists, in_order
from streamlog.plan.steps import (
    Awaits,
    Component,
    Exists,
    Extend,
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
    Atom,
    Body,
    Comparison,
    Literal,
    Not,
    Rule,
    Term,
    Var,
    branches,
)
from streamlog.syntax.walk import variables

HEAD_TIME = "head_time"  # a variable of ours: the language's start with a capital or `_`


def lower(schema: Schema, times: Iterable[BranchTime], graph: Graph, strata: Strata) -> Plan:
    """The plan of a program without open predicates."""
    time_of = {(id(t.rule), id(t.body)): t for t in times}
    groups = _groupings(schema, strata)
    rules: list[RulePlan] = []
    for rule in schema.rules:
        bodies = branches(rule.body)
        for body in bodies:
            time = time_of.get((id(rule), id(body)))
            if time is not None and not time.can_fire:
                continue
            group = groups.get(rule.span)
            rules.append(_Lowering(len(rules), rule, body, time, schema, group).plan())
    members: dict[int, list[int]] = {}
    for plan in rules:
        if plan.group is not None:
            members.setdefault(plan.group, []).append(plan.number)
    groupings = tuple(
        evolve(g, members=tuple(members.get(g.number, ())))
        for g in {g.number: g for g in groups.values()}.values()
    )
    sole = _sole_rules(rules, groupings)
    rules = [evolve(p, once=p.once and p.number in sole) for p in rules]
    readers = _readers(rules, time_of)
    return Plan(
        tuple(_components(schema, graph, strata)),
        tuple(rules),
        groupings,
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
                several = not shared and len(branches(rule.body)) > 1
                grouping = Grouping(count, name, shape, (), name in improving, several)
                count += 1
            result[rule.span] = grouping
    return result


def _sole_rules(rules: list[RulePlan], groupings: tuple[Grouping, ...]) -> set[int]:
    """The conjunctions that alone make the rows of their predicate."""
    sources: dict[str, set[tuple[str, int]]] = {}
    for plan in rules:
        source = ("rule", plan.number) if plan.group is None else ("group", plan.group)
        sources.setdefault(plan.rule.head.pred, set()).add(source)
    return {p.number for p in rules if len(sources[p.rule.head.pred]) == 1}


def _components(schema: Schema, graph: Graph, strata: Strata) -> Iterator[Component]:
    improving = {e for cycle in strata.extrema for e in cycle if e.mark is Mark.EXTREMUM}
    for nodes in graph.components:
        internal = [e for n in nodes for e in graph.out[n] if e.goal in nodes]
        marked = [e for e in internal if e.mark]
        names = tuple(sorted(nodes, key=lambda n: (strata.stratum.get(n, 0), n)))
        yield Component(names, bool(internal), bool(marked or improving & set(internal)))


@frozen
class _Parts:
    """A conjunction's literals by the role they play."""

    goals: tuple[Atom, ...]  # positive, with rows to enumerate
    tests: tuple[Literal, ...]  # comparisons and built-in tests
    negations: tuple[Not, ...]
    lookups: tuple[Body, ...]  # positive goals of which only the existence matters


class _Lowering:
    def __init__(
        self,
        number: int,
        rule: Rule,
        body: Body,
        time: BranchTime | None,
        schema: Schema,
        group: Grouping | None,
    ) -> None:
        self.number, self.rule, self.schema, self.group = number, rule, schema, group
        self.body, self.time = body, time
        self.goal_of = {id(g.atom): g for g in time.goals} if time else {}
        head = rule.head.args
        self.extra: tuple[Literal, ...] = ()
        if time is not None and not isinstance(head[0], Var):
            stamp = Var(HEAD_TIME, span=head[0].span)
            self.extra = (Comparison("=", stamp, head[0], span=head[0].span),)
            head = (stamp, *head[1:])
        self.head = head

    def plan(self) -> RulePlan:
        parts = self._parts()
        bound = frozenset(v.name for x in (*parts.goals, *parts.tests) for v in variables(x))
        checks: list[Step] = [exists(x, bound, self.schema, wanted=True) for x in parts.lookups]
        checks += (exists(n.body, bound, self.schema, wanted=False) for n in parts.negations)
        order = tuple(
            a.args[0]
            for a in parts.goals
            if self.schema.is_temporal(a.pred) and isinstance(a.args[0], Var)
        )
        carries = self._carries(checks, bound, order)
        return RulePlan(
            self.number,
            self.rule,
            self.head,
            tuple(self._pipelines(parts)),
            carries,
            tuple(checks),
            tuple(dict.fromkeys(self._awaits(parts))),
            order,
            self.group.number if self.group else None,
            self._is_injective(parts),
        )

    def _parts(self) -> _Parts:
        goals = [a for a in self.body if isinstance(a, Atom) and a.pred not in FILTERS]
        tests: list[Literal] = [
            x
            for x in self.body
            if isinstance(x, Comparison) or (isinstance(x, Atom) and x.pred in FILTERS)
        ]
        tests += self.extra
        negations = tuple(x for x in self.body if isinstance(x, Not))
        lookups: list[Body] = []
        for goal in tuple(goals):
            conditions = self._lookup(goal, goals, tests, negations)
            if conditions is not None:
                goals.remove(goal)
                tests = [t for t in tests if not any(t is c for c in conditions)]
                lookups.append((goal, *conditions))
        return _Parts(tuple(goals), tuple(tests), negations, tuple(lookups))

    def _lookup(
        self, goal: Atom, goals: list[Atom], tests: list[Literal], negations: tuple[Not, ...]
    ) -> list[Literal] | None:
        """The conditions of a goal of which only the existence matters, if it is one.

        repeated(T, X) <- msg(T, X), msg(T0, X), T > T0: of the earlier messages one is enough.
        Only for goals strictly before the head, which are complete when the head is decided.
        """
        found = self.goal_of.get(id(goal))
        if self.group or found is None or found.ahead is None or found.ahead >= 0:
            return None
        others = [g for g in goals if g is not goal and id(g) in self.goal_of]
        if not any(self._is_at_head(self.goal_of[id(g)]) for g in others):
            return None
        names = {v.name for v in variables(goal)}
        elsewhere = {
            v.name
            for x in (*self.head, *(g for g in goals if g is not goal), *negations)
            for v in variables(x)
        }
        own = names - elsewhere
        conditions = [t for t in tests if any(v.name in own for v in variables(t))]
        reach = {v.name for c in conditions for v in variables(c)} - own
        assigned = {
            t.left.name
            for t in tests
            if isinstance(t, Comparison) and t.op == "=" and isinstance(t.left, Var)
        }
        if not own or any(isinstance(c, Comparison) and c.op == "=" for c in conditions):
            return None
        return conditions if reach <= elsewhere | assigned else None

    def _is_at_head(self, goal: Goal) -> bool:
        return goal.ahead == 0 == goal.back

    def _pipelines(self, parts: _Parts) -> Iterator[Pipeline]:
        starts = [g for g in parts.goals if self.schema.is_temporal(g.pred)]
        if not starts:
            starts = list(parts.goals)
        if not starts:
            yield Pipeline(None, in_order(parts.tests, frozenset(), self.schema))
        for number, start in enumerate(starts):
            rest = [g for g in parts.goals if g is not start]
            before = frozenset(id(g) for g in starts[:number] if g.pred == start.pred)
            bound = frozenset(v.name for v in variables(start))
            steps = in_order([*rest, *parts.tests], bound, self.schema, before)
            yield Pipeline(start, steps)

    def _carries(
        self, checks: list[Step], bound: frozenset[str], order: tuple[Var, ...]
    ) -> tuple[Var, ...]:
        """What must be known of a solution to decide it and to make its row."""
        needed = list(self._of(self.head))
        needed += (v for step in checks for v in _reads(step))
        if self.group is not None:
            needed += order
            if self.group.distinct:
                needed += (v for x in self.body if not isinstance(x, Not) for v in variables(x))
        found = {v.name: v for v in needed if v.name in bound}
        first = self.head[0] if self.time is not None else None
        rest = [v for n, v in found.items() if not (isinstance(first, Var) and n == first.name)]
        if self.group is not None and self.group.distinct:
            rest.sort(key=lambda v: v.name)
        return (first, *rest) if isinstance(first, Var) else tuple(rest)

    def _of(self, terms: Iterable[Term]) -> Iterator[Var]:
        for term in terms:
            yield from variables(term)

    def _awaits(self, parts: _Parts) -> Iterator[Awaits]:
        looked_up = {id(body[0]) for body in parts.lookups}
        for goal in self.time.goals if self.time else ():
            if goal.negated or self.group is not None or id(goal.atom) in looked_up:
                yield Awaits(goal.atom.pred, goal.ahead)

    def _is_injective(self, parts: _Parts) -> bool:
        """Whether different solutions always make different rows."""
        if self.group is not None:
            return True
        shown = {a.name for a in self.head if isinstance(a, Var)}
        return {v.name for g in parts.goals for v in variables(g)} <= shown


def _reads(step: Step) -> Iterator[Var]:
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
                yield from _reads(inner)
        case _:
            yield from variables(step.test)


def _joins(steps: Iterable[Step]) -> Iterator[Join]:
    for step in steps:
        match step:
            case Join():
                yield step
            case Exists(inner):
                yield from _joins(inner)
            case _:
                pass


def _readers(
    rules: Iterable[RulePlan], time_of: Mapping[tuple[int, int], BranchTime]
) -> dict[Index, list[Reader]]:
    """Who reads each index, and how far behind the progress of its own predicate."""
    back_of = {id(g.atom): g.back for t in time_of.values() for g in t.goals}
    result: dict[Index, list[Reader]] = {}
    for plan in rules:
        steps = [s for p in plan.pipelines for s in p.steps] + list(plan.checks)
        for join in _joins(steps):
            reader = Reader(plan.rule.head.pred, back_of.get(id(join.atom)))
            result.setdefault(join.index, []).append(reader)
    return result
