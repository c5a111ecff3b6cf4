"""Why a fact holds: a derivation, found backwards over the facts that an engine remembers.

Every fact that the search comes to is expanded once, level by level, into the ways in which the
rules make it; then the smallest derivation is put together from the inputs upwards, so it rests on
inputs alone and never on itself.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from math import isclose
from typing import Any, TypeAlias

from attrs import field, frozen

from streamlog.analysis.builtins import FILTERS, TICK
from streamlog.analysis.schema import Kind
from streamlog.runtime.absence import Absence, Absences
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import END, Row
from streamlog.runtime.functions import exact_sum
from streamlog.runtime.query import Binding, QueryError, Solver, evaluate
from streamlog.syntax.ast import (
    Agg,
    Atom,
    Body,
    Comparison,
    Const,
    Not,
    Rule,
    Type,
    Var,
    branches,
)
from streamlog.syntax.walk import variables

MOST_WAYS = 100  # in which one fact is tried to be made
MOST_FACTS = 20_000  # that a search looks at
SHOWN_SOLUTIONS = 3  # of an aggregate's group

_BY_CLASS = {bool: Type.BOOL, int: Type.INT, float: Type.FLOAT, str: Type.STRING}


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
    binding: Mapping[str, int | float | str | bool] = field(eq=False)
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
    """A rule that would give the fact, were it not for what stands against it."""

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
    return _Search(engine).explain(Fact(pred, row))


@frozen(eq=False)
class _Way:
    """One way to make a fact."""

    rule: Rule
    binding: Binding
    needs: tuple[Fact, ...]
    negations: tuple[Not, ...]
    group: tuple[int, tuple[tuple[Fact, ...], ...]] | None = None


class _Search:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.schema, self.open = engine.schema, engine.program.safety.open
        self.contract = engine.program.contract
        self.rows: dict[str, Sequence[Row]] = {}
        self.sets: dict[str, frozenset[Row]] = {}
        self.solver = Solver(engine.program, self.relation)
        self.absences = Absences(engine)
        self.ways: dict[Fact, list[_Way]] = {}

    def relation(self, pred: str) -> Sequence[Row]:
        if pred not in self.rows:
            if pred == TICK:
                times = {r[0] for s in self.schema.streams for r in self.engine.facts(s)}
                self.rows[pred] = [(t,) for t in sorted(times)]
            else:
                self.rows[pred] = self.engine.facts(pred)
        return self.rows[pred]

    def holds(self, fact: Fact) -> bool:
        if self.open.get(fact.pred):
            return bool(self._ways_of(fact))
        if fact.pred not in self.sets:
            self.sets[fact.pred] = frozenset(self.relation(fact.pred))
        return fact.row in self.sets[fact.pred]

    def explain(self, fact: Fact) -> Proof | Missing:
        if not self.holds(fact):
            return Missing(fact, tuple(self._candidates(fact)), tuple(self._waits(fact)))
        if self.is_input(fact):
            return Given(fact, self.origin(fact))
        chosen = self._derivation(fact)
        return _Builder(self, chosen).proof(fact)

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
        users: dict[Fact, list[tuple[Fact, int]]] = {}
        missing: dict[tuple[Fact, int], int] = {}
        ready: list[tuple[Fact, int]] = []
        for fact, ways in self.ways.items():
            for number, way in enumerate(ways):
                needs = {n for n in way.needs if not self.is_input(n)}
                missing[fact, number] = len(needs)
                for need in needs:
                    users.setdefault(need, []).append((fact, number))
                if not needs:
                    ready.append((fact, number))
        while ready:
            above: list[tuple[Fact, int]] = []
            for fact, number in ready:
                if fact in chosen:
                    continue
                chosen[fact] = self.ways[fact][number]
                for user in users.get(fact, ()):
                    missing[user] -= 1
                    if not missing[user]:
                        above.append(user)
            ready = above
        return chosen

    def _ways_of(self, fact: Fact) -> list[_Way]:
        if fact not in self.ways:
            self.ways[fact] = []
            self.ways[fact] = list(islice(self._find_ways(fact), MOST_WAYS))
        return self.ways[fact]

    def _find_ways(self, fact: Fact) -> Iterator[_Way]:
        for rule in self.schema.rules_of.get(fact.pred, ()):
            if any(isinstance(a, Agg) for a in rule.head.args):
                yield from self._grouped(rule, fact)
                continue
            for body in branches(rule.body):
                for binding in self._solutions(rule, body, fact):
                    yield _Way(rule, binding, self.needs(body, binding), _negations(body))

    def _solutions(self, rule: Rule, body: Body, fact: Fact) -> Iterator[Binding]:
        """How a conjunction gives the fact; aggregates in the head are left open."""
        given: Binding = {}
        equations: list[Comparison] = []
        for arg, value in zip(rule.head.args, fact.row, strict=True):
            match arg:
                case Agg():
                    pass
                case Var(name) if name not in given:
                    given[name] = value
                case _:
                    const = Const(value, _BY_CLASS[type(value)], span=arg.span)
                    equations.append(Comparison("=", arg, const, span=arg.span))
        yield from self.solver.solve((*body, *equations), given, 0)

    def _grouped(self, rule: Rule, fact: Fact) -> Iterator[_Way]:
        """All solutions of the group, once each. For `min` and `max` the best is the reason."""
        solutions: dict[tuple[object, ...], tuple[Body, Binding]] = {}
        for body in branches(rule.body):
            names = sorted({v.name for x in body if not isinstance(x, Not) for v in variables(x)})
            for binding in self._solutions(rule, body, fact):
                solutions[tuple((n, binding.get(n)) for n in names)] = (body, binding)
        if not solutions:
            return
        found = list(solutions.values())
        aggregates = [(a, fact.row[i]) for i, a in enumerate(rule.head.args) if isinstance(a, Agg)]
        for agg, value in aggregates:
            values = [1 if agg.arg is None else evaluate(agg.arg, b) for _, b in found]
            if not _is_result(agg.func, values, value):
                return  # another rule of the same head has made it
        agg, value = aggregates[0]
        if agg.func in ("min", "max") and agg.arg is not None:
            arg = agg.arg
            found = [s for s in found if evaluate(arg, s[1]) == value][:1]
        samples = tuple(self.needs(body, binding) for body, binding in found[:SHOWN_SOLUTIONS])
        body, binding = found[0]
        needs = tuple(n for sample in samples for n in sample)
        yield _Way(rule, binding, needs, _negations(body), (len(solutions), samples))

    def needs(self, body: Body, binding: Binding) -> tuple[Fact, ...]:
        """The facts of a conjunction's positive goals."""
        return tuple(
            Fact(a.pred, tuple(evaluate(arg, binding) for arg in a.args))
            for a in body
            if isinstance(a, Atom) and a.pred not in FILTERS
        )

    # ------------------------------------------------------------------- what is not there

    def _candidates(self, fact: Fact) -> Iterator[Candidate]:
        """The rules whose positive goals are there."""
        for rule in self.schema.rules_of.get(fact.pred, ()):
            if any(isinstance(a, Agg) for a in rule.head.args):
                continue
            for body in branches(rule.body):
                positive = tuple(x for x in body if not isinstance(x, Not))
                try:
                    binding = next(self._solutions(rule, positive, fact), None)
                except (QueryError, KeyError):  # a variable that only a negation would bind
                    continue
                if binding is None:
                    continue
                against: list[Fact] = []
                for negation in _negations(body):
                    found = next(self.solver.solve(negation.body, dict(binding), 0), None)
                    if found is not None:
                        against += self.needs(negation.body, found)
                yield Candidate(rule, self.needs(positive, binding), tuple(against))

    def _waits(self, fact: Fact) -> Iterator[Wait]:
        """The streams that have not passed what the fact's decision needs."""
        predicate = self.schema[fact.pred]
        time = fact.row[0] if predicate.temporal and fact.row else None
        delays: Sequence[tuple[str, int | None]] = [
            (d.stream, d.by) for d in self.contract[fact.pred].delays
        ]
        if predicate.kind is Kind.STREAM:
            delays = [(fact.pred, 0)]
        for stream, by in delays:
            progress = self.engine.progress[stream].progress
            needs = time + by if isinstance(time, int) and by is not None else None
            if progress < END and (needs is None or progress <= needs):
                yield Wait(stream, needs, progress)

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


class _Builder:
    """Puts the chosen ways together; a fact that is used several times is one object."""

    def __init__(self, search: _Search, chosen: Mapping[Fact, _Way]) -> None:
        self.search, self.chosen = search, chosen
        self.made: dict[Fact, Proof] = {}

    def proof(self, target: Fact) -> Proof:
        stack = [target]
        while stack:
            fact = stack[-1]
            if fact in self.made:
                stack.pop()
                continue
            if self.search.is_input(fact):
                self.made[fact] = Given(fact, self.search.origin(fact))
                continue
            way = self.chosen[fact]
            waiting = [n for n in way.needs if n not in self.made]
            if waiting:
                stack += waiting
                continue
            self.made[fact] = self._derived(fact, way)
        return self.made[target]

    def _derived(self, fact: Fact, way: _Way) -> Derived:
        absences = tuple(self.search.absences.of(n, way.rule, way.binding) for n in way.negations)
        goals = tuple(self.made[n] for n in way.needs)
        group = None
        if way.group is not None:
            count, samples = way.group
            group = Group(count, tuple(tuple(self.made[n] for n in s) for s in samples))
        return Derived(fact, way.rule, way.binding, goals, absences, group)


def _is_result(func: str, values: list[Any], value: Any) -> bool:
    """Whether an aggregate over the values can be this one."""
    match func:
        case "count":
            return bool(len(values) == value)
        case "count_distinct":
            return bool(len(set(values)) == value)
        case "sum":
            return isclose(exact_sum(values), value)
        case "avg":
            return isclose(exact_sum(values) / len(values), value, abs_tol=1)  # durations are whole
        case _:
            return value in values


def _negations(body: Body) -> tuple[Not, ...]:
    return tuple(x for x in body if isinstance(x, Not))
