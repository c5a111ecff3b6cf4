"""Why a negated goal holds: what is not there, over which time, and the progress that closed it."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from streamlog.analysis.builtins import FILTERS, TICK
from streamlog.analysis.equations import solve
from streamlog.analysis.types import settled
from streamlog.rewrite.desugar import printable
from streamlog.runtime.engine import Engine
from streamlog.runtime.frontier import delays
from streamlog.runtime.query import Binding, evaluate
from streamlog.syntax.ast import (
    Agg,
    Atom,
    BinOp,
    Body,
    Call,
    Comparison,
    Const,
    Literal,
    Neg,
    Rule,
    Term,
    Type,
    Value,
    Var,
    branches,
)
from streamlog.syntax.nothing import Nothing
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import map_terms, variables

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_BY_CLASS = {bool: Type.BOOL, int: Type.INT, float: Type.FLOAT, str: Type.STRING}


@frozen
class Bound:
    """An end of a stretch of time; `open`: not itself a part of it."""

    at: int
    open: bool


@frozen
class Gone:
    """A goal of which there is no fact with these values in this stretch of time."""

    pred: str
    known: tuple[tuple[str, Value, Type | None], ...]  # column, value and type
    low: Bound | None
    high: Bound | None
    clock: Type | None


@frozen
class Closed:
    """A stream that has passed all that a negated goal looks at."""

    stream: str
    needed: int | None  # the time to pass; None: it had to end, or nothing to wait for
    progress: int
    clock: Type | None


@frozen
class Absence:
    """A conjunction without a solution. An open predicate is seen through its rules."""

    goals: tuple[Gone, ...]
    conditions: tuple[str, ...]
    closed: tuple[Closed, ...]
    through: tuple[tuple[Rule, Absence], ...] = ()


class Absences:
    """Explains negated goals of an engine's program."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.schema = engine, engine.schema
        self.types, self.safety = engine.program.types, engine.program.safety
        self.delays = delays(engine.program.contract, engine.schema)

    def of(self, body: Body, rule: Rule, binding: Binding) -> Absence:
        """Of a conjunction that has no solution with these values."""
        known, rest = _solved(body, binding)
        atoms = [x for x in rest if isinstance(x, Atom) and x.pred not in FILTERS]
        goals, used = [], []
        for atom in atoms:
            low, high, comparisons = _stretch(atom, rest, known)
            used += comparisons
            goals.append(self._gone(atom, known, low, high))
        conditions = tuple(
            self._text(x, rule, known) for x in rest if not any(x is y for y in (*atoms, *used))
        )
        through = tuple(t for a in atoms for t in self._through(a, known))
        streams = {c.stream: c for goal in goals for c in self._closed(goal)}
        # What is seen through a rule is closed there.
        closed = () if through else tuple(streams[s] for s in sorted(streams))
        return Absence(tuple(goals), conditions, closed, through)

    def _gone(self, atom: Atom, known: Binding, low: Bound | None, high: Bound | None) -> Gone:
        temporal = self.schema.is_temporal(atom.pred)
        names = ("T",) if atom.pred == TICK else self.schema.column_names[atom.pred]
        values = tuple(
            (names[i], value, self.types.column(atom.pred, i))
            for i, arg in enumerate(atom.args)
            if (value := _value(arg, known)) is not None and not (temporal and i == 0)
        )
        clock = self.engine.clock(atom.pred) if temporal else None
        return Gone(atom.pred, values, low, high, clock)

    def _closed(self, goal: Gone) -> Iterator[Closed]:
        """The streams that the goal rests on, how far they had to come and have come."""
        high = None if goal.high is None else goal.high.at - goal.high.open
        for delay in self.delays[goal.pred]:
            ways = [
                Closed(
                    timeline,
                    None if high is None or by is None else high + by,
                    self.engine.progress[timeline].progress,
                    self.engine.clock(timeline),
                )
                for timeline, by in delay.ways
            ]
            # One that has passed it, if there is one.
            yield next((w for w in ways if w.needed is not None and w.progress > w.needed), ways[0])

    def _through(self, atom: Atom, known: Binding) -> Iterator[tuple[Rule, Absence]]:
        if atom.pred == TICK or not self.safety.is_open(atom.pred):
            return
        for rule in self.schema.rules_of.get(atom.pred, ()):
            given: Binding = {}
            for parameter, arg in zip(rule.head.args, atom.args, strict=True):
                value = _value(arg, known)
                if isinstance(parameter, Var) and value is not None:
                    given[parameter.name] = value
            for body in branches(rule.body):
                yield rule, self.of(body, rule, given)

    def _text(self, literal: Literal, rule: Rule, known: Binding) -> str:
        def valued(term: Term) -> Term:
            if not isinstance(term, Var) or term.name not in known:
                return term
            value = known[term.name]
            type_ = settled(self.types.variable(rule, term.name))
            if isinstance(value, Nothing):
                type_ = None
            elif type_ is Type.FLOAT:
                value = float(value)
            elif type_ not in (Type.TIME, Type.DURATION):  # a number may be either
                type_ = _BY_CLASS[type(value)]
            # As a name: `-X` takes no number.
            return Var(pretty(Const(value, type_, span=term.span)), span=term.span)

        return pretty(printable(map_terms(literal, valued)))


def _value(term: Term, known: Binding) -> Value | None:
    match term:
        case Const(value):
            return value
        case Var(name):
            return known.get(name)
        case Neg() | BinOp() | Call() | Agg():
            return None


def _solved(body: Body, binding: Binding) -> tuple[Binding, list[Literal]]:
    """What the equations say about variables of the negation itself; and the other literals."""
    known, rest = dict(binding), list(body)
    while found := _solution(rest, known):
        equation, (var, term) = found
        known[var.name] = evaluate(term, known)
        rest = [x for x in rest if x is not equation]
    return known, rest


def _solution(rest: list[Literal], known: Binding) -> tuple[Comparison, tuple[Var, Term]] | None:
    for literal in rest:
        if isinstance(literal, Comparison) and literal.op == "=":
            unknown = {v.name for v in variables(literal)} - known.keys()
            if len(unknown) == 1 and (solved := solve(literal, unknown.pop())):
                return literal, solved
    return None


def _stretch(
    atom: Atom, rest: list[Literal], known: Binding
) -> tuple[Bound | None, Bound | None, list[Literal]]:
    """The times that the comparisons leave to a goal, and those comparisons."""
    if not atom.args:
        return None, None, []
    value = _value(atom.args[0], known)
    if value is not None:
        at = Bound(value, False) if type(value) is int else None
        return at, at, []
    lows: list[Bound] = []
    highs: list[Bound] = []
    used: list[Literal] = []
    for literal in rest:
        if not isinstance(literal, Comparison) or literal.op not in _MIRRORED:
            continue
        op, left, right = literal.op, literal.left, literal.right
        if left != atom.args[0]:
            op, left, right = _MIRRORED[op], right, left
        if left == atom.args[0] and all(v.name in known for v in variables(right)):
            limit = evaluate(right, known)
            if type(limit) is int:
                (lows if op.startswith(">") else highs).append(Bound(limit, "=" not in op))
                used.append(literal)
    low = max(lows, key=lambda b: (b.at, b.open), default=None)
    high = min(highs, key=lambda b: (b.at, not b.open), default=None)
    return low, high, used
