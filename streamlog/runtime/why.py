"""Why a fact holds: a derivation, found backwards over the facts that an engine remembers.

Every fact that the search comes to is expanded once, level by level, into the ways in which the
rules make it; then the smallest derivation is put together from the inputs upwards, so it rests on
inputs alone and never on itself.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from math import isclose
from typing import Any, TypeAlias

from attrs import evolve, field, frozen

from streamlog.analysis.builtins import FILTERS, TICK
from streamlog.analysis.schema import Kind
from streamlog.runtime.absence import Absence, Absences
from streamlog.runtime.aggregates import function, ranked
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import END, Row
from streamlog.runtime.query import Binding, Solver, computing
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import (
    Agg,
    Atom,
    Body,
    Const,
    Limit,
    Not,
    Rule,
    Term,
    Type,
    Value,
    Var,
    branches,
)
from streamlog.syntax.walk import variables

MOST_WAYS = 100  # in which one fact is tried to be made
MOST_FACTS = 20_000  # that a search looks at
SHOWN_SOLUTIONS = 3  # of an aggregate's group


@frozen
class Fact:
    pred: str
    row: Row


class Origin(enum.Enum):
    """Where a fact that no rule makes comes from."""

    PROGRAM = "given in the program"
    ARRIVED = "arrived"
    TABLE = "a row of its table"
    TICK = "something arrived then"


@frozen
class Given:
    """A fact from outside."""

    fact: Fact
    origin: Origin


@frozen
class Derived:
    """A fact by a rule. `goals` are its positive goals, in the order of the rule."""

    fact: Fact
    rule: Rule
    binding: Mapping[str, Value] = field(eq=False)
    goals: tuple[Proof, ...]
    absences: tuple[Absence, ...]
    group: Group | None = None


@frozen
class Group:
    """What an aggregate ranges over: how many solutions, and the goals of the first few."""

    count: int
    samples: tuple[tuple[Proof, ...], ...]


Proof: TypeAlias = Given | Derived


@frozen
class Wait:
    """A stream that must pass a time before a fact can be decided."""

    stream: str
    needs: int | None  # None: it must end
    progress: int


@frozen
class Candidate:
    """A rule that would give the fact, were it not for what contradicts it."""

    rule: Rule
    goals: tuple[Fact, ...]
    against: tuple[Fact, ...]  # facts that a negated goal excludes; none: only time is missing


@frozen
class Missing:
    """A fact that does not hold, or not yet."""

    fact: Fact
    candidates: tuple[Candidate, ...]
    waits: tuple[Wait, ...]


class NoProofError(Exception):
    """A fact that holds for reasons that could not be found within the limits."""


def why(engine: Engine, pred: str, row: Row) -> Proof | Missing:
    """The smallest derivation of a fact, or what is known about its absence."""
    with computing():
        return _Search(engine).explain(Fact(pred, row))


class _Conjunction:
    """The solutions of a rule's conjunction that give a fact of its head; an aggregate in the
    head is left open. `ValueError`: a variable is bound nowhere."""

    def __init__(self, solver: Solver, rule: Rule, body: Body) -> None:
        plain = tuple(x for x in body if not isinstance(x, Not))
        self.rule, self.negations = rule, _negations(body)
        self.goals = _goals(plain)
        self.variables = {v.name: v for x in (rule.head, *plain) for v in variables(x)}
        self.aggregates = [(i, a) for i, a in enumerate(rule.head.args) if isinstance(a, Agg)]
        self._given = [i for i, a in enumerate(rule.head.args) if not isinstance(a, Agg)]
        if rule.limit is not None:
            time = rule.head.args[:1] if solver.schema.is_temporal(rule.head.pred) else ()
            groups = (*time, *rule.limit.per)
            self._given = [i for i, a in enumerate(rule.head.args) if a in groups]
        one = Const(1, Type.INT, span=rule.span)
        values = (a.args or (one,) for _, a in self.aggregates)
        shown = (*self.variables.values(), *(term for terms in values for term in terms))
        self._solve = solver.by_head(rule, body, self._given, shown)

    def solutions(self, fact: Fact) -> Iterator[_Way]:
        for row in self._solve(*(fact.row[i] for i in self._given)):
            binding = dict(zip(self.variables, row, strict=False))
            values = iter(row[len(binding) :])
            made = tuple(
                (next(values), next(values)) if agg.by is not None else next(values)
                for _, agg in self.aggregates
            )
            yield _Way(self, binding, made, _facts(self.goals, binding))


@frozen(eq=False)
class _Way:
    """One way to make a fact: a solution of a conjunction. An aggregate has several, of which this
    is the first: their number, and what the first few need."""

    conjunction: _Conjunction
    binding: Binding
    values: tuple[Value | tuple[Value, Value], ...]  # to aggregate
    needs: tuple[Fact, ...]
    group: tuple[int, tuple[tuple[Fact, ...], ...]] | None = None

    @property
    def key(self) -> tuple[tuple[str, Value], ...]:
        """What tells it from other solutions, whichever alternative has found it."""
        written = (n for n, v in self.conjunction.variables.items() if v.is_written)
        return tuple((n, self.binding[n]) for n in sorted(written))


class _Search:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.schema, self.open = engine.schema, engine.program.safety.open
        self.types = engine.program.types
        self.sets: dict[str, frozenset[Row]] = {}
        self.solver = Solver(engine.program, self.types, engine.relation)
        self.conjunctions: dict[Rule, list[_Conjunction]] = {}
        self.absences = Absences(engine)
        self.ways: dict[Fact, list[_Way]] = {}

    def holds(self, fact: Fact) -> bool:
        if self.open.get(fact.pred):
            return bool(self._ways_of(fact))
        if fact.pred not in self.sets:
            self.sets[fact.pred] = frozenset(self.engine.relation(fact.pred))
        return fact.row in self.sets[fact.pred]

    def explain(self, fact: Fact) -> Proof | Missing:
        if not self.holds(fact):
            return Missing(fact, tuple(self._candidates(fact)), tuple(self._waits(fact)))
        if self.is_input(fact):
            return Given(fact, self.origin(fact))
        return self._proof(fact, self._derivation(fact))

    def is_input(self, fact: Fact) -> bool:
        """Whether it needs no rule. A predicate that rules define may have facts of its own."""
        if fact.pred == TICK or self.schema[fact.pred].kind is not Kind.DERIVED:
            return True
        return fact.row in self._given.get(fact.pred, ())

    # -------------------------------------------------------------------------- search

    def _derivation(self, target: Fact) -> dict[Fact, _Way]:
        """The way chosen for each fact that the smallest derivation of the target needs."""
        frontier, level = [target], 0
        while frontier:
            following: dict[Fact, None] = {}
            for fact in frontier:
                for way in self._ways_of(fact):
                    following.update(
                        (n, None) for n in way.needs if n not in self.ways and not self.is_input(n)
                    )
            frontier, level = list(following), level + 1
            # A derivation of height h needs no fact further away than h.
            if not frontier or level & (level - 1) == 0:
                chosen = self._settled()
                if target in chosen:
                    return chosen
            if len(self.ways) > MOST_FACTS:
                break
        raise NoProofError(
            f"no derivation was found among {len(self.ways)} facts; "
            "its reasons may reach further back"
        )

    def _settled(self) -> dict[Fact, _Way]:
        """From the inputs upwards, in the order of height: for each fact the lowest way."""
        chosen: dict[Fact, _Way] = {}
        users: dict[Fact, list[tuple[Fact, _Way]]] = {}
        missing: dict[_Way, int] = {}
        ready: list[tuple[Fact, _Way]] = []
        for fact, ways in self.ways.items():
            for way in ways:
                needs = {n for n in way.needs if not self.is_input(n)}
                missing[way] = len(needs)
                for need in needs:
                    users.setdefault(need, []).append((fact, way))
                if not needs:
                    ready.append((fact, way))
        for fact, way in ready:
            if fact not in chosen:
                chosen[fact] = way
                for user in users.get(fact, ()):
                    missing[user[1]] -= 1
                    if not missing[user[1]]:
                        ready.append(user)
        return chosen

    def _proof(self, target: Fact, chosen: Mapping[Fact, _Way]) -> Proof:
        """The chosen ways put together; a fact that is used several times is one object."""
        queue = [target]
        needed = {target}
        for fact in queue:
            more = {n for n in chosen[fact].needs if n in chosen} - needed
            needed |= more
            queue += more
        made: dict[Fact, Proof] = {}

        def proofs(facts: Iterable[Fact]) -> tuple[Proof, ...]:
            return tuple(made.get(f) or Given(f, self.origin(f)) for f in facts)

        for fact, way in chosen.items():
            if fact in needed:
                rule, negations = way.conjunction.rule, way.conjunction.negations
                absences = tuple(self.absences.of(n.body, rule, way.binding) for n in negations)
                group = way.group and Group(way.group[0], tuple(map(proofs, way.group[1])))
                made[fact] = Derived(fact, rule, way.binding, proofs(way.needs), absences, group)
        return made[target]

    def _ways_of(self, fact: Fact) -> list[_Way]:
        if fact not in self.ways:
            self.ways[fact] = []
            self.ways[fact] = list(islice(self._find_ways(fact), MOST_WAYS))
        return self.ways[fact]

    def _find_ways(self, fact: Fact) -> Iterator[_Way]:
        for rule in self.schema.rules_of.get(fact.pred, ()):
            found = (s for c in self._conjunctions(rule) for s in c.solutions(fact))
            if rule.limit is not None:
                yield from self._ranked(rule, rule.limit, found, fact)
            elif rule.groups:
                yield from self._grouped(found, fact)
            else:
                yield from found

    def _conjunctions(self, rule: Rule) -> list[_Conjunction]:
        if rule not in self.conjunctions:
            bodies = branches(rule.body)
            self.conjunctions[rule] = [_Conjunction(self.solver, rule, body) for body in bodies]
        return self.conjunctions[rule]

    def _grouped(self, solutions: Iterable[_Way], fact: Fact) -> Iterator[_Way]:
        """All solutions of the group, once each. For `min` and `max` the best is the reason."""
        found = list({s.key: s for s in solutions}.values())
        if not found:
            return
        timed = self.schema.is_temporal
        orders: Any = [tuple(n.row[0] for n in s.needs if timed(n.pred)) for s in found]
        count, aggregates = len(found), found[0].conjunction.aggregates
        for number, (position, agg) in enumerate(aggregates):
            result = function(agg.func, self.types.column(fact.pred, position))
            value: Any = fact.row[position]
            made = result([s.values[number] for s in found], orders)
            if not (isclose(made, value) if isinstance(value, float) else made == value):
                return  # another rule of the same head has made it
        position, agg = aggregates[0]
        if AGGREGATES[agg.func].best:  # any of the best will do, unless it rests on the fact itself
            for way in (s for s in found if s.values[0] == fact.row[position]):
                yield evolve(way, group=(count, (way.needs,)))
            return
        samples = tuple(s.needs for s in found[:SHOWN_SOLUTIONS])
        needs = tuple(n for sample in samples for n in sample)
        yield evolve(found[0], needs=needs, group=(count, samples))

    def _ranked(
        self, rule: Rule, limit: Limit, solutions: Iterable[_Way], fact: Fact
    ) -> Iterator[_Way]:
        """The solutions of a group that give the fact, if they are in the places of the limit."""

        def by(way: _Way) -> Row:
            return tuple(_value(order.term, way.binding) for order in limit.by)

        def per(way: _Way) -> Row:
            return tuple(_value(term, way.binding) for term in limit.per)

        groups: dict[Row, dict[tuple[Row, Row], _Way]] = {}
        for way in solutions:
            row = tuple(_value(term, way.binding) for term in rule.head.args)
            groups.setdefault(per(way), {})[by(way), row] = way
        for ways in groups.values():
            for key in ranked(limit, ways):
                if key[1] == fact.row:
                    yield evolve(ways[key], group=(len(ways), (ways[key].needs,)))

    # ------------------------------------------------------------------- what is not there

    def _candidates(self, fact: Fact) -> Iterator[Candidate]:
        """The rules whose positive goals are there."""
        for rule in self.schema.rules_of.get(fact.pred, ()):
            if rule.groups:
                continue
            for body in branches(rule.body):
                positive = tuple(x for x in body if not isinstance(x, Not))
                try:
                    conjunction = _Conjunction(self.solver, rule, positive)
                except ValueError:  # a variable that only a negation would bind
                    continue
                solution = next(conjunction.solutions(fact), None)
                if solution is not None:
                    negations = _negations(body)
                    against = (f for n in negations for f in self._excluding(n, solution))
                    yield Candidate(rule, solution.needs, tuple(against))

    def _excluding(self, negation: Not, solution: _Way) -> tuple[Fact, ...]:
        """The facts of the first solution that the negated goals have."""
        goals = _goals(negation.body)
        own = {v.name: v for goal in goals for v in variables(goal)}
        rule, given = solution.conjunction.rule, solution.conjunction.variables.values()
        solve = self.solver.solutions(rule, negation.body, given, own.values())
        row = next(solve(*solution.binding.values()), None)
        return () if row is None else _facts(goals, dict(zip(own, row, strict=True)))

    def _waits(self, fact: Fact) -> Iterator[Wait]:
        """The streams that have not passed what the fact's decision needs."""
        time = fact.row[0] if self.schema.is_temporal(fact.pred) else None
        for delay in self.absences.delays[fact.pred]:
            waits = [
                Wait(
                    timeline,
                    time + by if isinstance(time, int) and by is not None else None,
                    self.engine.progress[timeline].progress,
                )
                for timeline, by in delay.ways
            ]
            if all(w.progress < END and (w.needs is None or w.progress <= w.needs) for w in waits):
                yield waits[0]

    def origin(self, fact: Fact) -> Origin:
        if fact.pred == TICK:
            return Origin.TICK
        if fact.row in self._given.get(fact.pred, ()):
            return Origin.PROGRAM
        is_stream = self.schema[fact.pred].kind is Kind.STREAM
        return Origin.ARRIVED if is_stream else Origin.TABLE

    @cached_property
    def _given(self) -> Mapping[str, set[tuple[object, ...]]]:
        return {name: {fact.row for fact in facts} for name, facts in self.schema.facts_of.items()}


def _negations(body: Body) -> tuple[Not, ...]:
    return tuple(x for x in body if isinstance(x, Not))


def _goals(body: Body) -> tuple[Atom, ...]:
    return tuple(x for x in body if isinstance(x, Atom) and x.pred not in FILTERS)


def _facts(goals: Iterable[Atom], binding: Binding) -> tuple[Fact, ...]:
    return tuple(Fact(g.pred, tuple(_value(a, binding) for a in g.args)) for g in goals)


def _value(argument: Term, binding: Binding) -> Value:
    assert isinstance(argument, Var | Const)  # goals are desugared
    return binding[argument.name] if isinstance(argument, Var) else argument.value
