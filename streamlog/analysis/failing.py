"""Which tests of a program may fail, given what its columns can hold.

The numbers of each column: what is declared of inputs, and of derived predicates what their rules
can make of that. Tests that cannot fail narrow the variables of a conjunction for the others, so
nothing fails in `p(T, A // B) <- s(T, A, B), B > 0`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from fractions import Fraction

from attrs import evolve, frozen

from streamlog.analysis.builtins import FILTERS, TICK
from streamlog.analysis.equations import definitions
from streamlog.analysis.ranges import (
    CALENDAR,
    COUNTS,
    FLOATS,
    Computed,
    Range,
    Ranges,
    computed,
    may_fail,
    of_types,
)
from streamlog.analysis.schema import Kind, Predicate, Schema
from streamlog.analysis.types import TypeTable, settled
from streamlog.syntax.ast import (
    FIRST_INSTANT,
    LAST_INSTANT,
    Agg,
    Atom,
    Body,
    Call,
    Comparison,
    Const,
    Literal,
    Not,
    Query,
    Rule,
    Term,
    Type,
    Var,
    branches,
)
from streamlog.syntax.walk import variables

_INSTANTS = Range(FIRST_INSTANT, LAST_INSTANT)
# Timers stop where time does, and somewhat later what follows from them.
_TIMED = Range(FIRST_INSTANT * 3 // 2, LAST_INSTANT * 3 // 2)
_ROUNDS = 24  # for each rule of a predicate, before a range that still grows has no bounds
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}

Columns = Mapping[tuple[str, int], Range | None]


@frozen
class Failing:
    """What is known of the numbers in a program's columns."""

    schema: Schema
    types: TypeTable
    columns: Columns

    def given(self, rule: Rule, body: Body, outer: Ranges | None = None) -> Ranges:
        """The numbers of the variables of a conjunction, and of its negations, as far as goals
        say; `outer` are those of the conjunction around it."""
        known = {**self._goals(rule, body), **(outer or {})}
        inside = (x for x in body if isinstance(x, Not))
        return known | _local(rule, body, outer, (self.given(rule, x.body, known) for x in inside))

    def ranges(self, rule: Rule, body: Body, outer: Ranges | None = None) -> Ranges:
        """Those that they can have where the other tests hold that come first: tests that cannot
        fail whatever the others say, and equations that alone give a variable its value."""
        goals = self._goals(rule, body) | dict(outer or {})
        known = dict(goals)
        bound = {v.name for x in body if _is_goal(x) for v in variables(x)} | (outer or {}).keys()
        alone = Counter(v.name for v, _, _ in definitions(body))
        for _ in range(2):  # what one test says another may need
            for test in (x for x in body if isinstance(x, Comparison)):
                made = (v for v, _, _ in definitions([test]) if alone[v.name] == 1)
                if not may_fail(test, goals):
                    _narrow(test, known)
                elif any(v.name not in bound for v in made):
                    _narrow(test, known, {v for v in known if v not in bound})
        inside = (x for x in body if isinstance(x, Not))
        return known | _local(rule, body, outer, (self.ranges(rule, x.body, known) for x in inside))

    def _goals(self, rule: Rule, body: Body) -> dict[str, Range | None]:
        names = {v.name for v in variables((rule.head, *body))}
        known = {name: of_types(self.types.variable(rule, name)) for name in names}
        for atom in (x for x in body if isinstance(x, Atom) and _is_goal(x)):
            for position, arg in enumerate(atom.args):
                column = self._column(atom.pred, position)
                if isinstance(arg, Var) and column is not None:
                    known[arg.name] = (known[arg.name] or column).within(column)
        return known

    def tests(self, rule: Rule, body: Body) -> tuple[Comparison | Atom, ...]:
        """Those of a conjunction that may fail, in the order of the text."""
        known = self.ranges(rule, body)
        return tuple(x for x in _tests(body) if may_fail(x, known))

    def in_negations(
        self, rule: Rule, body: Body, outer: Ranges | None = None
    ) -> Iterator[tuple[Not, Comparison | Atom]]:
        """The tests that may fail within negations."""
        known = self.ranges(rule, body, outer)
        for negation in (x for x in body if isinstance(x, Not)):
            inner = self.ranges(rule, negation.body, known)
            for test in _tests(negation.body):
                if may_fail(test, inner):
                    yield negation, test
            yield from self.in_negations(rule, negation.body, known)

    def terms(self, rule: Rule, body: Body) -> tuple[Term, ...]:
        """The arguments of a head that may fail, or what they aggregate."""
        known = self.ranges(rule, body)
        parts = (p for a in rule.head.args for p in (a.args if isinstance(a, Agg) else (a,)))
        return tuple(part for part in parts if computed(part, known).may_fail)

    def _column(self, pred: str, position: int) -> Range | None:
        if pred == TICK:
            return _INSTANTS
        return self.columns.get((pred, position))


def fitting(term: Term, types: TypeTable, statement: Rule | Query) -> Term:
    """The term, such that it fails if its number is not one of its type's."""
    if isinstance(term, Var | Const):
        return term
    own = {v.name: types.variable(statement, v.name) for v in variables(term)}
    if any(settled(found) is None for found in own.values()):
        return term
    value = computed(term, {name: of_types(found) for name, found in own.items()}).range
    if value is None:
        return term
    return Call("!whole" if value.is_whole else "!finite", (term,), span=term.span)


def _tests(body: Body) -> Iterator[Comparison | Atom]:
    for literal in body:
        if isinstance(literal, Comparison) or (
            isinstance(literal, Atom) and literal.pred in FILTERS
        ):
            yield literal


def _is_goal(literal: Literal) -> bool:
    return isinstance(literal, Atom) and literal.pred not in FILTERS


def _local(
    rule: Rule, body: Body, outer: Ranges | None, negations: Iterable[Ranges]
) -> dict[str, Range | None]:
    """The numbers of variables that only negations have."""
    positive = (x for x in body if not isinstance(x, Not))
    others = {v.name for v in variables((rule.head, *positive))} | (outer or {}).keys()
    inside = [x for x in body if isinstance(x, Not)]
    local: dict[str, Range | None] = {}
    for negation, inner in zip(inside, negations, strict=True):
        for name in {v.name for v in variables(negation)} - others:
            one, other = local.get(name, inner[name]), inner[name]
            local[name] = one.also(other) if one is not None and other is not None else None
    return local


def _narrow(
    test: Comparison, known: dict[str, Range | None], only: Collection[str] | None = None
) -> None:
    """Let the variables that stand alone on a side have what the test allows."""
    sides = ((test.op, test.left, test.right), (_MIRRORED[test.op], test.right, test.left))
    for op, one, other in sides:
        if not isinstance(one, Var) or (only is not None and one.name not in only):
            continue
        if (old := known.get(one.name)) is not None:
            limit = computed(other, known).range
            if limit is not None:
                known[one.name] = _narrowed(old, op, limit)


def _narrowed(old: Range, op: str, limit: Range) -> Range:
    step = 1 if old.is_whole and limit.is_whole else Fraction(0)
    match op:
        case "=":
            return old.within(limit)
        case "<" | "<=":
            high = limit.high - (step if op == "<" else 0)
            found = old.within(Range(min(old.low, high), high))
            return evolve(found, has_zero=found.has_zero and (op == "<=" or high != 0 or step == 1))
        case ">" | ">=":
            low = limit.low + (step if op == ">" else 0)
            found = old.within(Range(low, max(old.high, low)))
            return evolve(found, has_zero=found.has_zero and (op == ">=" or low != 0 or step == 1))
        case _:  # !=
            return evolve(old, has_zero=old.has_zero and limit.ends != (0, 0))


# ----------------------------------------------------------------------------------- columns


def failing(schema: Schema, types: TypeTable, timers: Iterable[str]) -> Failing:
    """`timers` are the predicates that go on by themselves: they stop where time does."""
    columns: dict[tuple[str, int], Range | None] = {}
    for name, predicate in schema.predicates.items():
        if predicate.kind is not Kind.DERIVED:
            for position in range(predicate.arity):
                columns[name, position] = _given(predicate, position, types)
    known = Failing(schema, types, columns)
    rules = [(rule, body) for rule in schema.rules for body in branches(rule.body)]
    derived = {rule.head.pred for rule in schema.rules}
    for pred in derived:
        for fact in schema.facts_of.get(pred, ()):
            _add(columns, pred, [computed(arg, {}) for arg in fact.atom.args])
    going_on = frozenset(timers)
    readers: dict[str, list[int]] = {}
    for number, (_, body) in enumerate(rules):
        for goal in {x.pred for x in body if isinstance(x, Atom)} & derived:
            readers.setdefault(goal, []).append(number)
    widened: set[tuple[str, int]] = set()
    changes: Counter[str] = Counter()
    waiting = dict.fromkeys(range(len(rules)))  # in the order in which they came
    while waiting:
        number = next(iter(waiting))
        del waiting[number]
        rule, body = rules[number]
        if not _is_reached(known, body, derived):
            continue
        pred = rule.head.pred
        own = [(pred, position) for position in range(rule.head.arity)]
        before = [columns.get(column) for column in own]
        is_new = changes[pred] == 0
        _add(columns, pred, _head(known, rule, body), widened)
        grown = [c for c, old in zip(own, before, strict=True) if columns[c] != old]
        if not (grown or is_new):
            continue
        changes[pred] += 1
        if changes[pred] > _ROUNDS * len(schema.rules_of[pred]):
            for column in grown:
                is_stopped = column[1] == 0 and pred in going_on
                columns[column] = _TIMED if is_stopped else _most(types, *column)
            widened.update(grown)
        waiting |= dict.fromkeys(readers.get(pred, ()))
    return known


def _given(predicate: Predicate, position: int, types: TypeTable) -> Range | None:
    columns = predicate.columns
    if columns and (low := columns[position].low) and (high := columns[position].high):
        ends = [Fraction(v) if isinstance(v, float) else v for v in (low.value, high.value)]
        if not any(isinstance(end, str) for end in ends):
            return Range(ends[0], ends[1], types.column(predicate.name, position) is not Type.FLOAT)  # type: ignore[arg-type]
    type_ = types.column(predicate.name, position)
    if type_ is Type.TIME:
        return CALENDAR
    if predicate.temporal and position == 0:
        return _INSTANTS
    return _most(types, predicate.name, position)


def _most(types: TypeTable, pred: str, position: int) -> Range | None:
    type_ = types.column(pred, position)
    return FLOATS if type_ is None else of_types(frozenset({type_}))


def _is_reached(known: Failing, body: Body, derived: set[str]) -> bool:
    goals = (x for x in body if isinstance(x, Atom) and x.pred in derived and x.args)
    return all((goal.pred, 0) in known.columns for goal in goals)


def _head(known: Failing, rule: Rule, body: Body) -> list[Computed]:
    ranges = known.ranges(rule, body)
    return [
        _aggregate(known, rule, position, arg, ranges)
        if isinstance(arg, Agg)
        else computed(arg, ranges)
        for position, arg in enumerate(rule.head.args)
    ]


def _aggregate(
    known: Failing, rule: Rule, position: int, aggregate: Agg, ranges: Ranges
) -> Computed:
    match aggregate.func:
        case "count" | "count_distinct" | "count_if":
            return Computed(COUNTS)
        case "min" | "max" | "first" | "last" | "arg_min" | "arg_max":
            return computed(aggregate.args[0], ranges)
        case "avg" | "median" | "percentile":
            inner = computed(aggregate.args[0], ranges).range
            type_ = known.types.column(rule.head.pred, position)
            return Computed(inner and evolve(inner, is_whole=type_ is not Type.FLOAT))
        case _:
            return Computed(_most(known.types, rule.head.pred, position))


def _add(
    columns: dict[tuple[str, int], Range | None],
    pred: str,
    found: list[Computed],
    final: Collection[tuple[str, int]] = (),
) -> None:
    """What a rule gives, added to what is known, except where that is final."""
    for position, value in enumerate(found):
        key, new = (pred, position), value.range
        if key not in final:
            old = columns.get(key, new)
            columns[key] = old.also(new) if old is not None and new is not None else None
