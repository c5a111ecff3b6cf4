"""Rules to pipelines."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, frozen

from streamlog.analysis.builtins import FILTERS, TICK
from streamlog.analysis.contract import Contract
from streamlog.analysis.dependency import Graph, Mark
from streamlog.analysis.schema import Schema
from streamlog.analysis.strata import Strata
from streamlog.analysis.time.reach import BranchTime, Goal
from streamlog.plan.order import exists, in_order, range_join
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
    Store,
)
from streamlog.rewrite.close import FROM_CORE
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

Delays = dict[str, dict[str, int | None]]  # by predicate and stream, as in the contract
FOLDED = "folded"
HEAD_TIME = "head_time"  # a variable of ours: the language's start with a capital or `_`


def lower(
    schema: Schema,
    times: Iterable[BranchTime],
    graph: Graph,
    strata: Strata,
    promised: Contract,
) -> Plan:
    """The plan of a program without open predicates."""
    delays: Delays = {
        p.predicate.name: {d.stream: d.by for d in p.delays} for p in promised.predicates
    }
    delays |= {stream: {stream: 0} for stream in schema.streams}
    delays[TICK] = dict.fromkeys(schema.streams, 0)
    time_of = {(id(t.rule), id(t.body)): t for t in times}
    groups = _groupings(schema, strata)
    replaced = frozenset(g.pred for g in groups.values() if g.improving)
    program = _Program(schema, graph.component_of, delays, replaced)
    rules: list[RulePlan] = []
    for rule in schema.rules:
        bodies = branches(rule.body)
        for body in bodies:
            time = time_of.get((id(rule), id(body)))
            if time is not None and not time.can_fire:
                continue
            group = groups.get(rule.span)
            rules.append(_Lowering(program, len(rules), rule, body, time, group).plan())
    members: dict[int, list[int]] = {}
    for plan in rules:
        if plan.group is not None:
            members.setdefault(plan.group, []).append(plan.number)
    groupings = tuple(
        evolve(g, members=tuple(members[g.number]))
        for g in {g.number: g for g in groups.values()}.values()
        if g.number in members
    )
    sole = _sole_rules(rules, groupings)
    rules = [evolve(p, once=p.once and p.number in sole) for p in rules]
    readers = _readers(rules, time_of)
    return Plan(
        tuple(_components(schema, graph, strata)),
        tuple(rules),
        groupings,
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
    return len(branches(rule.body)) > 1 or any(_is_from_core(v) for v in variables(rule.body))


def _is_from_core(var: Var) -> bool:
    return var.name.startswith(FROM_CORE)


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


@frozen
class _Program:
    """What the lowering of a rule must know of the program around it."""

    schema: Schema
    component_of: Mapping[str, int]
    delays: Delays
    replaced: frozenset[str]  # predicates whose rows a better one may replace


class _Lowering:
    def __init__(
        self,
        program: _Program,
        number: int,
        rule: Rule,
        body: Body,
        time: BranchTime | None,
        group: Grouping | None,
    ) -> None:
        self.program, self.schema = program, program.schema
        self.number, self.rule, self.group = number, rule, group
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
        awaits = tuple(dict.fromkeys(self._awaits(parts)))
        window = self._window(parts)
        if window is not None:
            parts, self.group = window[0], None
        bound = frozenset(v.name for x in (*parts.goals, *parts.tests) for v in variables(x))
        checks: list[Step] = [self._exists(x, bound, wanted=True) for x in parts.lookups]
        checks += (self._exists(n.body, bound, wanted=False) for n in parts.negations)
        if window is not None:
            checks.append(window[1])
        order = tuple(
            a.args[0]
            for a in parts.goals
            if self.schema.is_temporal(a.pred)
            and isinstance(a.args[0], Var)
            and not _is_from_core(a.args[0])
        )
        carries = self._carries(checks, bound, order)
        return RulePlan(
            self.number,
            self.rule,
            self.head,
            tuple(self._pipelines(parts)),
            carries,
            tuple(checks),
            awaits,
            order,
            self.group.number if self.group else None,
            self._is_injective(parts),
        )

    def _exists(self, body: Body, bound: frozenset[str], wanted: bool) -> Exists:
        return exists(body, bound, self.schema, wanted, self.program.replaced)

    def _window(self, parts: _Parts) -> tuple[_Parts, Fold] | None:
        """An aggregate over one goal in a window of time around the others, as a fold.

        The others must make one solution for each group, and nothing but the window may speak
        about the goal's own variables.
        """
        rules = self.schema.rules_of[self.rule.head.pred]
        aggregates = [a for a in self.head if isinstance(a, Agg)]
        if self.group is None or len(rules) > 1 or len(branches(self.rule.body)) > 1:
            return None
        if len(aggregates) > 1 or self.group.improving or self.group.distinct:
            return None
        (agg,) = aggregates
        groups = {a.name for a in self.head if isinstance(a, Var)}
        for goal in parts.goals:
            others = tuple(g for g in parts.goals if g is not goal)
            bound = {v.name for g in others for v in variables(g)}
            own = {v.name for v in variables(goal)} - bound
            inside = [t for t in parts.tests if any(v.name in own for v in variables(t))]
            rest = [t for t in parts.tests if not any(t is i for i in inside)]
            readers = (*rest, *parts.negations, *(a for a in self.head if a is not agg))
            if (
                agg.func not in ("sum", "count", "avg", "min", "max")
                or id(goal) not in self.goal_of
                or not any(id(g) in self.goal_of for g in others)
                or not bound <= groups
                or any(v.name in own for r in readers for v in variables(r))
            ):
                continue
            join, used = range_join(goal, inside, bound, self.schema)
            columns = {a: i for i, a in enumerate(goal.args) if isinstance(a, Var)}
            column = columns.get(agg.arg) if isinstance(agg.arg, Var) else None
            is_range = join.index.store is Store.BY_TIME and len(used) == len(inside)
            if not is_range or (agg.func != "count" and not column):
                continue
            value = Var(FOLDED, span=agg.span)
            self.head = tuple(value if a is agg else a for a in self.head)
            fold = Fold(value, agg.func, join, None if agg.func == "count" else column)
            return _Parts(others, tuple(rest), parts.negations, parts.lookups), fold
        return None

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
            conditions = self._lookup(goal, goals, tests, (*negations, *itertools.chain(*lookups)))
            if conditions is not None:
                goals.remove(goal)
                tests = [t for t in tests if not any(t is c for c in conditions)]
                lookups.append((goal, *conditions))
        return _Parts(tuple(goals), tuple(tests), negations, tuple(lookups))

    def _lookup(
        self, goal: Atom, goals: list[Atom], tests: list[Literal], readers: tuple[Literal, ...]
    ) -> list[Literal] | None:
        """The conditions of a goal of which only the existence matters, if it is one.

        repeated(T, X) <- msg(T, X), msg(T0, X), T > T0: of the earlier messages one is enough.
        Only for goals strictly before the head and outside its recursion: they are complete
        when the head is decided.
        """
        if self.program.component_of[goal.pred] == self.program.component_of[self.rule.head.pred]:
            return None
        found = self.goal_of.get(id(goal))
        if self.group or found is None or not self._is_known_by(found, goals):
            return None
        names = {v.name for v in variables(goal)}
        bound = {v.name for g in goals if g is not goal for v in variables(g)}
        own = names - bound
        conditions = [t for t in tests if any(v.name in own for v in variables(t))]
        rest = (*self.head, *readers, *(t for t in tests if t not in conditions))
        if not own or own & {v.name for x in rest for v in variables(x)}:
            return None
        if any(isinstance(c, Comparison) and c.op == "=" for c in conditions):
            return None
        reach = {v.name for c in conditions for v in variables(c)}
        return conditions if reach <= own | bound else None

    def _is_known_by(self, goal: Goal, goals: list[Atom]) -> bool:
        """Whether another goal's row tells by its arrival that all of this goal's are there.

        A row of a stream at T is passed on when everything before T has come. So it is enough
        that this goal depends on that stream alone, strictly before T, the head's timestamp.
        """
        if goal.ahead is None:
            return False
        for other in goals:
            at = self.goal_of.get(id(other))
            if other is goal.atom or at is None or not at.ahead == 0 == at.back:
                continue
            if self.program.delays[goal.atom.pred].keys() == {other.pred}:
                delay = self.program.delays[goal.atom.pred][other.pred]
                if delay is not None and delay + goal.ahead < 0:
                    return True
        return False

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
        needed += (v for step in checks for v in reads(step))
        if self.group is not None:
            if any(func in ("first", "last") for _, func in self.group.aggregates):
                needed += order
            if self.group.distinct:
                own = (v for x in self.body if not isinstance(x, Not) for v in variables(x))
                needed += (v for v in own if not _is_from_core(v))
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


def _joins(steps: Iterable[Step]) -> Iterator[Join]:
    for step in steps:
        match step:
            case Join():
                yield step
            case Exists(inner):
                yield from _joins(inner)
            case Fold(_, _, join):
                yield join
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
