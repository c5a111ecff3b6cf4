"""The oracle: the well-founded model of a program, slow and obvious.

This knows nothing of strata, potentials, bistate, deltas or batches. It takes the desugared rules
at their word and computes Van Gelder's alternating fixpoint:

    level 0       the inputs, and nothing derived
    level n + 1   the least model of the rules, in which `not` and aggregates ask level n

until the levels repeat. If they end in one set of facts, that is the model; if they alternate
between two, the facts in which the two differ are undefined and the program has no meaning, which
must not happen to a program that the compiler accepts (`UndefinedError`).

- An **open** predicate is never enumerated. A call with its open positions bound is a table entry
  of its level, filled by the predicate's rules with the call's values put in for the head's
  variables. Negated calls ask the level below like every negation.
- An **aggregate** ranges over the distinct solutions of the whole body: over the variables outside
  of negations, `_` included. Across the branches of a `;` two solutions are the same when they
  give the same variables the same values; the variables by which desugaring replaces an
  expression in a goal (`r(T + 1)`) do not count, since nobody wrote them.
- **min and max in recursion**, where the compiler accepts it, are part of the least model: each
  group keeps its best. Everybody outside of the recursion asks the level below. When all rules of
  a predicate take the same `min` (or `max`) of the same position, recursive or not, they are one
  aggregate together; rules with other aggregates are aggregated one by one.
- A **failure** (overflow, division by zero, …) in a solution that all other literals of the body
  accept is an `EvaluationError`, whatever the order of the literals; where another literal is
  false there is no solution and so no failure. Only failures in the model itself count. A program
  may also go on without these solutions (`model_without_failures`).
- Facts in the program's text count like rows from outside, for derived predicates too; `tick` is
  every timestamp of a row of a stream, text included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeAlias

from attrs import frozen

from oracle import values
from oracle.values import Row, ValueFailure
from streamlog.analysis.builtins import FILTERS, TICK
from streamlog.analysis.schema import Kind
from streamlog.compiler import Program
from streamlog.syntax.ast import (
    Agg,
    Atom,
    BinOp,
    Body,
    Call,
    Comparison,
    Const,
    Limit,
    Literal,
    Neg,
    Not,
    Rule,
    Term,
    Type,
    Var,
    branches,
)
from streamlog.syntax.nothing import NONE
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import atoms, variables

# When a recursion counts as endless; each bound is for one level.
MOST_FACTS = 20_000
MOST_ROUNDS = 400  # in which one predicate, or one group's best, has changed
MOST_SOLUTIONS = 300_000
MOST_LEVELS = 2_000


class EvaluationError(Exception):
    """A solution of a rule has no value."""


class UndefinedError(Exception):
    """Some facts are neither true nor false."""


class EndlessError(Exception):
    """The rules derive forever, or longer than anyone wants to wait."""


def model(compilation: Program, facts: Mapping[str, Iterable[Row]]) -> dict[str, set[Row]]:
    """The rows of every predicate without open positions, inputs included."""
    found, failures = model_without_failures(compilation, facts)
    for failure in failures:
        raise EvaluationError(failure.text)
    return found


@frozen
class Failed:
    """A solution that has no value: its rule, and the values of those variables that have one."""

    text: str
    place: str
    values: Mapping[str, Any]


def model_without_failures(
    compilation: Program, facts: Mapping[str, Iterable[Row]]
) -> tuple[dict[str, set[Row]], list[Failed]]:
    """The model when solutions that fail are left out, and those."""
    program = _Program(compilation, facts)
    levels = [_Level(program, None)]
    while True:
        levels.append(_Level(program, levels[-1]))
        latest = levels[-(program.depth + 1) :]
        if len(levels) > program.depth + 1 and _agree(latest):  # level 0 knows no open calls
            break
        _check_alternation(levels, program)
        if len(levels) > MOST_LEVELS:
            raise EndlessError(f"no model after {MOST_LEVELS} levels")
    failures: list[Failed] = []
    if any(level.errors for level in levels):
        failures = _failures(program, levels)
    closed = (n for n in program.arity if n not in program.open and n != TICK)
    return {name: set(levels[-1].relation(name).rows) for name in closed}, failures


def _failures(program: _Program, levels: list[_Level]) -> list[Failed]:
    """Whether rules fail in the model too: levels may fail for what those below them assume."""
    for _ in range(program.depth + 1):
        levels.append(_Level(program, levels[-1], anew=True))
    return [failed for level in levels[-1 - program.depth :] for failed in level.errors]


def _agree(levels: list[_Level]) -> bool:
    """Whether the levels are the same, also in the open calls anyone has asked."""
    newest = levels[-1]
    if any(level.facts() != newest.facts() for level in levels):
        return False
    asked: set[_Call] = set()
    while more := {call for level in levels for call in level.tables} - asked:
        asked |= more
        for pred, pattern in more:
            rows = newest.ask(pred, pattern)
            if any(level.ask(pred, pattern) != rows for level in levels):
                return False
    return True


def _check_alternation(levels: list[_Level], program: _Program) -> None:
    often = 2 * program.depth + 8
    if program.open:
        often += 40  # open calls may settle one timestamp after the other
    latest = levels[-often:]
    if len(latest) < often or latest[-1].facts() == latest[-2].facts():
        return
    if all(a.facts() == b.facts() for a, b in zip(latest, latest[2:], strict=False)):
        one, other = latest[-1].facts(), latest[-2].facts()
        doubtful = sorted(
            f"{pred}{row}" for pred in one for row in one[pred] ^ other.get(pred, set())
        )
        raise UndefinedError(f"neither true nor false: {', '.join(doubtful[:5])}")


# ----------------------------------------------------------------------------------- program


class _Free:
    """A place of a call that nothing binds."""

    def __repr__(self) -> str:
        return "_"


FREE = _Free()
_Call: TypeAlias = tuple[str, tuple[Any, ...]]  # of an open predicate: values, or FREE
_Env: TypeAlias = dict[str, Any]
_Step: TypeAlias = tuple[Literal, frozenset[str], frozenset[str]]  # with its known and new names
FAILED = "!"  # the name under which an assignment carries its failure


class _Failure:
    """Stands for a value that an operation could not give."""

    def __init__(self, text: str) -> None:
        self.text = text


class _Program:
    """The rules by sort, the inputs, and for each conjunction an order that binds variables."""

    def __init__(self, compilation: Program, facts: Mapping[str, Iterable[Row]]) -> None:
        if not compilation.ok:
            raise ValueError("the program is refused: " + compilation.diagnostics[0].message)
        schema, types = compilation.schema, compilation.types
        strata = compilation.strata
        self.schema = schema
        self.open = {n: ps for n, ps in compilation.safety.open.items() if ps}
        self.arity = {n: p.arity for n, p in schema.predicates.items()}
        columns = [(n, i) for n, arity in self.arity.items() for i in range(arity)]
        self.floats = {c for c in columns if types.column(*c) is Type.FLOAT}
        self.durations = {c for c in columns if types.column(*c) is Type.DURATION}
        self.knot = {n: k for c in strata.extrema for k in (strata.knot[c[0].head],) for n in k}
        self.cost = {n: cost for n, rules in schema.rules_of.items() if (cost := _cost(rules))}
        self.inputs = self._inputs(facts)
        self._plans: dict[tuple[int, frozenset[str]], tuple[_Step, ...]] = {}
        self.plain: list[tuple[Rule, Body]] = []  # of predicates without open positions
        self.called: dict[str, list[tuple[Rule, Body]]] = {n: [] for n in self.open}
        self.aggregating: list[tuple[Rule, ...]] = []  # rules that are one aggregate together
        for name, rules in schema.rules_of.items():
            if name in self.knot:
                continue
            if name in self.cost:
                self.aggregating.append(rules)
                continue
            for rule in rules:
                if _aggregates(rule) or rule.limit:
                    self.aggregating.append((rule,))
                else:
                    to = self.called[name] if name in self.open else self.plain
                    to += ((rule, body) for body in branches(rule.body))
        self.depth = max((self._depth(rule) for rule in schema.rules), default=0)
        self.below = {n: self._reachable(n) for n in schema.rules_of}
        marked = {r.head.pred for r in schema.rules if self._depth(r)} | self.open.keys()
        self.monotone = {n for n, goals in self.below.items() if not goals & marked}

    def _inputs(self, facts: Mapping[str, Iterable[Row]]) -> dict[str, _Relation]:
        rows: dict[str, set[Row]] = {n: set() for n in self.arity}
        for fact in self.schema.facts:
            row = tuple(a.value for a in fact.atom.args if isinstance(a, Const))
            rows[fact.atom.pred].add(self.typed(fact.atom.pred, row))
        for name, given in facts.items():
            if self.schema[name].kind is Kind.DERIVED:
                raise ValueError(f"{name} is derived")
            rows[name] |= {self.typed(name, tuple(row)) for row in given}
        rows[TICK] = {row[:1] for stream in self.schema.streams for row in rows[stream]}
        return {name: _Relation(found) for name, found in rows.items()}

    def typed(self, name: str, row: Row) -> Row:
        assert len(row) == self.arity[name], (name, row)
        return tuple(
            float(v) if (name, i) in self.floats and v is not NONE else v for i, v in enumerate(row)
        )

    def _depth(self, rule: Rule) -> int:
        """How many levels down a rule may look."""

        def of(body: Body) -> int:
            return max((1 + of(x.body) for x in body if isinstance(x, Not)), default=0)

        return max(map(of, branches(rule.body))) + rule.groups + bool(self.knot)

    def _reachable(self, name: str) -> set[str]:
        """A predicate and all it rests on."""
        found, queue = {name}, [name]
        while queue:
            for rule in self.schema.rules_of.get(queue.pop(), ()):
                for goal in {a.pred for a in atoms(rule.body)} - found:
                    found.add(goal)
                    queue.append(goal)
        return found

    def plan(self, body: Body, bound: frozenset[str]) -> tuple[_Step, ...]:
        """The literals in an order in which each finds the variables it needs."""
        key = (id(body), bound)
        if key not in self._plans:
            self._plans[key] = tuple(self._ordered(body, set(bound)))
        return self._plans[key]

    def _ordered(self, body: Body, bound: set[str]) -> Iterator[_Step]:
        outside = bound | _names(*(x for x in body if not isinstance(x, Not)))
        waiting = list(body)
        while waiting:
            literal = min(waiting, key=lambda x: self._rank(x, bound, outside))
            if self._rank(literal, bound, outside) >= _NOT_YET:
                raise AssertionError(f"nothing binds what {pretty(literal)} needs")
            waiting.remove(literal)
            names = frozenset(_names(literal))
            yield literal, names & bound, names - bound
            if not isinstance(literal, Not):
                bound |= names

    def _rank(self, literal: Literal, bound: set[str], outside: set[str]) -> int:
        """Tests first, then what has few unknowns."""
        names = _names(literal)
        match literal:
            case Comparison(op, left, right):
                unknown = [v.name for v in variables(literal) if v.name not in bound]
                if not unknown:
                    return 0
                solvable = op == "=" and len(unknown) == 1
                linear = any(_is_linear(unknown[0], side) for side in (left, right))
                return 1 if solvable and linear else _NOT_YET
            case Not():
                return 2 if names & outside <= bound else _NOT_YET
            case Atom(pred, _) if pred in FILTERS:
                return 0 if names <= bound else _NOT_YET
            case Atom(pred, args):
                for position in self.open.get(pred, ()):
                    if not _names(args[position]) <= bound:
                        return _NOT_YET
                return 3 + 10 * len(names - bound) + (10 if not names & bound else 0)
            case _:
                raise AssertionError(literal)


_NOT_YET = 1_000_000


def _cost(rules: tuple[Rule, ...]) -> tuple[str, int] | None:
    """The `min` or `max` and its position, when all the rules have just that one aggregate."""
    found = {tuple((a.func, i) for i, a in _aggregates(rule)) for rule in rules}
    match list(found):
        case [(("min" | "max" as func, position),)]:
            return func, position
        case _:
            return None


def _comes_before(one_by: Row, one: Row, other_by: Row, other: Row, limit: Limit) -> bool:
    for order, mine, theirs in zip(limit.by, one_by, other_by, strict=True):
        if mine != theirs:
            return (mine > theirs) is order.descending
    return one < other


def _aggregates(rule: Rule) -> list[tuple[int, Agg]]:
    return [(i, arg) for i, arg in enumerate(rule.head.args) if isinstance(arg, Agg)]


def _names(*nodes: Term | Literal) -> set[str]:
    return {v.name for node in nodes for v in variables(node)}


def _is_linear(name: str, term: Term) -> bool:
    match term:
        case Var(found):
            return found == name
        case BinOp("+" | "-", left, right):
            return _is_linear(name, left) or _is_linear(name, right)
        case _:
            return False


# ------------------------------------------------------------------------------------- terms


def _value(term: Term, env: _Env) -> Any:
    """The value of a term, or a failure."""
    match term:
        case Var(name):
            return env[name]
        case Const(value):
            return value
        case Neg(operand):
            parts = (_value(operand, env),)
        case BinOp(_, left, right):
            parts = (_value(left, env), _value(right, env))
        case Call("if", (condition, then, other)):
            chosen = _value(condition, env)
            if isinstance(chosen, _Failure):
                return chosen
            return _value(then if chosen else other, env)
        case Call(_, args):
            parts = tuple(_value(arg, env) for arg in args)
        case _:
            raise AssertionError(term)
    for part in parts:
        if isinstance(part, _Failure):
            return part
    try:
        if isinstance(term, BinOp):
            return values.apply(term.op, *parts)
        return values.call(term.name, parts) if isinstance(term, Call) else values.negate(*parts)
    except ValueFailure as failure:
        return _Failure(str(failure))


def _inverse(term: Term, value: Any, unknown: str, env: _Env) -> Any:
    """The value of the unknown that makes the term have this value."""
    match term:
        case Var():
            return value
        case BinOp("+" | "-" as op, left, right) if _is_linear(unknown, left):
            other, back = _value(right, env), "-" if op == "+" else "+"
            inner, order = left, (value, other)
        case BinOp("+" | "-" as op, left, right):
            other, back = _value(left, env), "-"
            inner, order = right, (value, other) if op == "+" else (other, value)
        case _:
            raise AssertionError(term)
    for part in order:
        if isinstance(part, _Failure):
            return part
    try:
        return _inverse(inner, values.apply(back, *order), unknown, env)
    except ValueFailure as failure:
        return _Failure(str(failure))


# ------------------------------------------------------------------------------------- facts


class _Relation:
    """Rows, with an index for each set of places anyone has asked by."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows: set[Row] = set(rows)
        self._indexes: dict[tuple[int, ...], dict[Row, list[Row]]] = {}

    def add(self, new: Iterable[Row]) -> bool:
        fresh = set(new) - self.rows
        self.rows |= fresh
        for places, index in self._indexes.items():
            for row in fresh:
                index.setdefault(tuple(row[i] for i in places), []).append(row)
        return bool(fresh)

    def replace(self, rows: Iterable[Row]) -> bool:
        rows = set(rows)
        if rows == self.rows:
            return False
        self.rows = rows
        self._indexes.clear()
        return True

    def matching(self, pattern: tuple[Any, ...]) -> Iterable[Row]:
        places = tuple(i for i, v in enumerate(pattern) if v is not FREE)
        if not places:
            return tuple(self.rows)
        index = self._indexes.get(places)
        if index is None:
            index = self._indexes[places] = {}
            for row in self.rows:
                index.setdefault(tuple(row[i] for i in places), []).append(row)
        return tuple(index.get(tuple(pattern[i] for i in places), ()))


class _Level:
    """The least model of the rules when `not` and aggregates ask the level below."""

    def __init__(self, program: _Program, below: _Level | None, anew: bool = False) -> None:
        self.program = program
        self.below = below or self
        self.is_bottom = below is None
        self.tables: dict[_Call, set[Row]] = {}
        self.errors: list[Failed] = []
        self._derived: dict[str, _Relation] = {}
        self._best: dict[str, dict[Row, Row]] = {n: {} for n in program.knot}
        self._seen: dict[Any, Any] = {}  # what a rule's goals looked like when it was last tried
        self._changes: dict[str, int] = {}
        self._tried = 0
        self._is_filling = True
        self.settled = set() if anew else self._settled()
        if below is not None:
            for name, rules in program.schema.rules_of.items():
                self._derived[name] = _Relation(program.inputs[rules[0].head.pred].rows)
            for name in self.settled:
                self._derived[name] = below.relation(name)
            for rules in program.aggregating:
                name = rules[0].head.pred
                if name not in self.settled:
                    rows = self._ranked if rules[0].limit else self._aggregated
                    self._derived[name].add(rows(rules))
            self._run()
        self._is_filling = False

    def _settled(self) -> set[str]:
        """What need not be derived anew: all it rests on was the same at the last levels."""
        level, program = self.below, self.program
        same = ({*program.schema.predicates, TICK}) - program.open.keys()
        if level.is_bottom:
            return set()
        for _ in range(program.depth + 1):
            if level.is_bottom or level.below.is_bottom:
                return program.monotone
            same -= {n for n in level._derived if not level._is_as_below(n)}
            level = level.below
        return {n for n, goals in program.below.items() if goals - FILTERS.keys() <= same}

    def _is_as_below(self, name: str) -> bool:
        return name not in self.program.open and (
            self.relation(name).rows == self.below.relation(name).rows
        )

    def relation(self, name: str) -> _Relation:
        return self._derived.get(name) or self.program.inputs[name]

    def facts(self) -> dict[str, set[Row]]:
        return {name: r.rows for name, r in self._derived.items() if r.rows}

    def ask(self, pred: str, pattern: tuple[Any, ...]) -> set[Row]:
        """The rows of an open predicate that match the call."""
        if self.is_bottom:
            return set()
        call = (pred, pattern)
        if call not in self.tables:
            self.tables[call] = set(self.relation(pred).matching(pattern))
            self._change(pred)
            if not self._is_filling:
                self._is_filling = True
                self._run(only_tables=True)
                self._is_filling = False
        return self.tables[call]

    # ---------------------------------------------------------------- the least model

    def _run(self, only_tables: bool = False) -> None:
        while True:
            before = sum(self._changes.values())
            if not only_tables:
                for rule, body in self.program.plain:
                    if rule.head.pred not in self.settled and self._is_due((id(body),), body):
                        rows = set(self._heads(rule, body, {}))
                        if self._derived[rule.head.pred].add(rows):
                            self._change(rule.head.pred)
                for name in self.program.knot.keys() - self.settled:
                    self._improve(name)
            for call in tuple(self.tables):
                self._fill(call)
            if sum(self._changes.values()) == before:
                return

    def _change(self, name: str) -> None:
        self._changes[name] = self._changes.get(name, 0) + 1
        derived = sum(len(r.rows) for r in self._derived.values())
        tabled = len(self.tables) + sum(map(len, self.tables.values()))
        if max(derived, tabled) > MOST_FACTS:
            raise EndlessError(f"more than {MOST_FACTS} facts, the last of `{name}`")
        if name not in self.program.open and self._changes[name] > MOST_ROUNDS:
            raise EndlessError(f"`{name}` still changes after {MOST_ROUNDS} rounds")

    def _is_due(self, key: Any, body: Body) -> bool:
        """Whether a goal has changed since the rule was last tried."""
        now = [self._changes.get(x.pred, 0) for x in body if isinstance(x, Atom)]
        if self._seen.get(key) == now:
            return False
        self._seen[key] = now
        return True

    def _heads(self, rule: Rule, body: Body, env: _Env) -> Iterator[Row]:
        knot = self.program.knot.get(rule.head.pred, frozenset())
        for solution in self._solutions(body, env, knot):
            self._tried += 1
            if self._tried > MOST_SOLUTIONS:
                raise EndlessError(f"`{rule.head.pred}` has too many solutions")
            row = self._row(rule, solution)
            if row is not None:
                yield row

    def _row(self, rule: Rule, solution: _Env) -> Row | None:
        """The head's values; an aggregate's place has the value to aggregate."""
        failure = solution.get(FAILED)
        row = []
        for arg in rule.head.args:
            terms = arg.args if isinstance(arg, Agg) else (arg,)
            found = [_value(term, solution) for term in terms]
            failure = failure or next((v for v in found if isinstance(v, _Failure)), None)
            row.append(tuple(found) if len(found) > 1 else found[0] if found else None)
        if failure:
            text = f"{failure.text}, in the rule {pretty(rule)}"
            known = {n: v for n, v in solution.items() if not isinstance(v, _Failure)}
            self.errors.append(Failed(text, rule.span.place, known))
            return None
        if any(isinstance(arg, Agg) for arg in rule.head.args):
            return tuple(row)
        return self.program.typed(rule.head.pred, tuple(row))

    def _improve(self, name: str) -> None:
        func, place = self.program.cost[name]
        best, old = self._best[name], dict(self._best[name])
        for rule in self.program.schema.rules_of[name]:
            for body in branches(rule.body):
                if not self._is_due((id(body),), body):
                    continue
                for row in tuple(self._heads(rule, body, {})):
                    row = self.program.typed(name, row)
                    group = row[:place] + row[place + 1 :]
                    op = "<" if func == "min" else ">"
                    if group not in best or values.compare(op, row[place], best[group][place]):
                        best[group] = row
        if best != old:
            rows = chain(self.program.inputs[name].rows, best.values())
            self._derived[name].replace(rows)
            self._change(name)

    def _fill(self, call: _Call) -> None:
        pred, pattern = call
        for rule, body in self.program.called[pred]:
            if not self._is_due((id(body), pattern), body):
                continue
            env = _unified(rule.head, pattern)
            if env is None:
                continue
            rows = {row for row in self._heads(rule, body, env) if _fits(row, pattern)}
            if not rows <= self.tables[call]:
                self.tables[call] |= rows
                self._change(pred)

    # --------------------------------------------------------------------- aggregates

    def _ranked(self, rules: tuple[Rule, ...]) -> Iterator[Row]:
        """Rows that as many others of their group come before as the limit says."""
        (rule,) = rules
        limit = rule.limit
        assert limit is not None
        time = rule.head.args[:1] if self.program.schema.is_temporal(rule.head.pred) else ()
        found = set()
        for body in branches(rule.body):
            for env in self.below._solutions(body, {}, None):
                row = self._row(rule, env)
                if row is not None:
                    group = tuple(_value(term, env) for term in (*time, *limit.per))
                    by = tuple(_value(order.term, env) for order in limit.by)
                    found.add((group, by, row))
        for group, by, row in found:
            before = {
                (other_by, other_row)
                for other_group, other_by, other_row in found
                if other_group == group and _comes_before(other_by, other_row, by, row, limit)
            }
            if limit.offset <= len(before) < limit.offset + limit.count:
                yield row

    def _aggregated(self, rules: tuple[Rule, ...]) -> Iterator[Row]:
        """The rows of rules that are one aggregate together."""
        head = rules[0].head
        places = [i for i, _ in _aggregates(rules[0])]
        groups: dict[Row, list[tuple[tuple[int, ...], Row]]] = {}
        for number, rule in enumerate(rules):
            found: dict[Any, set[tuple[tuple[int, ...], Row]]] = {}
            for body in branches(rule.body):
                own = _written(body)
                clocks = [
                    x.args[0]
                    for x in body
                    if isinstance(x, Atom) and self.program.schema.is_temporal(x.pred)
                ]
                for env in self.below._solutions(body, {}, None):
                    row = self._row(rule, env)
                    if row is not None:
                        key = frozenset((n, v) for n, v in env.items() if n in own)
                        times = tuple(_value(clock, env) for clock in clocks)
                        found.setdefault((number, key), set()).add((times, row))
            for same in found.values():
                # Branches may find the same solution at different timestamps.
                times, row = min(same)
                group = tuple(v for i, v in enumerate(row) if i not in places)
                groups.setdefault(group, []).append((times, row))
        for group, solutions in groups.items():
            rest = iter(group)
            try:
                row = tuple(
                    values.aggregate(
                        arg.func,
                        [(times, row[i]) for times, row in solutions],
                        of_durations=(head.pred, i) in self.program.durations,
                    )
                    if isinstance(arg, Agg)
                    else next(rest)
                    for i, arg in enumerate(head.args)
                )
            except ValueFailure as failure:
                text = f"{failure}, in the rule {pretty(rules[0])}"
                self.errors.append(Failed(text, rules[0].span.place, {}))
                continue
            yield self.program.typed(head.pred, row)

    # ---------------------------------------------------------------------- solutions

    def _solutions(self, body: Body, env: _Env, knot: frozenset[str] | None) -> Iterator[_Env]:
        """All ways to satisfy a conjunction at this level.

        `knot` are the predicates whose best so far may be read; of other recursions through min
        and max only the level below knows the best. None: the level is complete.
        """
        steps = self.program.plan(body, frozenset(n for n in env if n != FAILED))
        return self._satisfied(steps, 0, env, knot)

    def _satisfied(
        self, steps: tuple[_Step, ...], at: int, env: _Env, knot: frozenset[str] | None
    ) -> Iterator[_Env]:
        if at == len(steps):
            yield env
            return
        for extended in self._step(steps[at], env, knot):
            yield from self._satisfied(steps, at + 1, extended, knot)

    def _step(self, step: _Step, env: _Env, knot: frozenset[str] | None) -> Iterator[_Env]:
        literal, known, new = step
        match literal:
            case Comparison(_, left, right) if new:
                (unknown,) = new
                solved, other = (left, right) if _is_linear(unknown, left) else (right, left)
                value = _inverse(solved, _value(other, env), unknown, env)
                failed = {FAILED: value} if isinstance(value, _Failure) else {}
                yield {**env, **failed, unknown: value}
            case Comparison(op, left, right):
                sides = (_value(left, env), _value(right, env))
                yield from _if(env, sides, lambda: values.compare(op, *sides))
            case Atom(pred, args) if pred in FILTERS:
                sides = tuple(_value(arg, env) for arg in args)
                yield from _if(env, sides, lambda: values.holds(pred, *sides))
            case Atom(pred, args):
                yield from self._goal(pred, args, env, knot)
            case Not(body):
                inner = {name: env[name] for name in known}
                failure = None
                for solution in self.below._solutions(body, inner, None):
                    failure = solution.get(FAILED)
                    if failure is None:
                        return
                yield env if failure is None else {**env, FAILED: failure}
            case _:
                raise AssertionError(literal)

    def _goal(
        self, pred: str, args: tuple[Term, ...], env: _Env, knot: frozenset[str] | None
    ) -> Iterator[_Env]:
        pattern = []
        for arg in args:
            value = env.get(arg.name, FREE) if isinstance(arg, Var) else _value(arg, env)
            pattern.append(FREE if isinstance(value, _Failure) else value)
        if pred in self.program.open:
            if any(pattern[i] is FREE for i in self.program.open[pred]):
                yield env  # the value to test has failed, so nobody can tell
                return
            rows: Iterable[Row] = tuple(self.ask(pred, tuple(pattern)))
        else:
            waits = knot is not None and pred in self.program.knot and pred not in knot
            level = self.below if waits else self
            rows = level.relation(pred).matching(tuple(pattern))
        for row in rows:
            extended = dict(env)
            for arg, value in zip(args, row, strict=True):
                if isinstance(arg, Var):
                    if arg.name not in extended:
                        extended[arg.name] = value
                    elif isinstance(extended[arg.name], _Failure):
                        continue
                    elif extended[arg.name] != value:
                        break
            else:
                yield extended


def _if(env: _Env, sides: tuple[Any, ...], test: Any) -> Iterator[_Env]:
    """The assignment if the test holds; with the failure if there is none to hold."""
    failure = next((s for s in sides if isinstance(s, _Failure)), None)
    if failure is None:
        try:
            if test():
                yield env
            return
        except ValueFailure as error:
            failure = _Failure(str(error))
    yield {**env, FAILED: failure}


def _unified(head: Atom, pattern: tuple[Any, ...]) -> _Env | None:
    """The call's values for the head's variables; None when they contradict the head."""
    env: _Env = {}
    for arg, value in zip(head.args, pattern, strict=True):
        match arg:
            case _ if value is FREE:
                pass
            case Var(name):
                if env.setdefault(name, value) != value:
                    return None
            case Const(constant):
                if constant != value:
                    return None
            case _:
                pass  # an expression: the body gives it a value, `_fits` compares
    return env


def _fits(row: Row, pattern: tuple[Any, ...]) -> bool:
    return all(v is FREE or v == w for w, v in zip(row, pattern, strict=True))


def _written(body: Body) -> set[str]:
    """The variables that tell solutions apart: those outside of negations that someone wrote."""
    outside = [v for x in body if not isinstance(x, Not) for v in variables(x)]
    names = [v.name for v in outside]
    return {
        v.name for v in outside if not v.is_anonymous or v.is_shared or names.count(v.name) == 1
    }
