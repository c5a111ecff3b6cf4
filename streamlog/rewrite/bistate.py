"""The bistate program: what happens at one instant of the clock.

    shorter(T, X, D) <- path(T1, X, D1), D1 <= D, T1 < T.
        shorter_new(X, D) <- path_old(X, D1), D1 <= D.

Goals of the same instant become `_new`, earlier ones `_old`, one rule for each combination that
the comparisons allow (`analysis.versions`). A new fact needs no timestamp, it is `now`; an old
one keeps its timestamp only where some rule asks for it. After each instant, what is new is added
to what is old. The result is a program without time, written with tables: valid `.slog` text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import frozen

from streamlog.analysis.builtins import FILTERS, TICK
from streamlog.analysis.dependency import mark_of
from streamlog.analysis.schema import Kind, Predicate, Schema
from streamlog.analysis.strata import Strata
from streamlog.analysis.time.reach import HEAD
from streamlog.analysis.types import TypeTable
from streamlog.analysis.versions import (
    Case,
    Version,
    VersionedAtom,
    VersionedBody,
    VersionedNot,
)
from streamlog.diagnostics import Span
from streamlog.rewrite.desugar import printable
from streamlog.syntax.ast import (
    Atom,
    BinOp,
    Body,
    Choice,
    Column,
    Comparison,
    Const,
    Literal,
    Module,
    Not,
    Rule,
    Statement,
    Table,
    Term,
    Type,
    Var,
)
from streamlog.syntax.walk import atoms, map_body_terms, variables

NOW = "now"


@frozen
class Bistate:
    module: Module
    strata: tuple[tuple[str, ...], ...]  # stratum 0 holds what is old or has no time
    timed: frozenset[str]  # old relations that keep their timestamp
    arity: Mapping[str, int]  # of the timestamped predicates it speaks about
    potential: Mapping[str, int]  # what their clock is ahead of their timestamp


def bistate(
    span: Span, schema: Schema, types: TypeTable, strata: Strata, cases: Iterable[Case]
) -> Bistate:
    """`span` is the whole program: the place of what stands nowhere in its text."""
    return _Builder(span, schema, types, strata, tuple(cases)).build()


class _Builder:
    def __init__(
        self,
        span: Span,
        schema: Schema,
        types: TypeTable,
        strata: Strata,
        cases: tuple[Case, ...],
    ) -> None:
        self.span = span
        self.schema, self.types, self.strata, self.cases = schema, types, strata, cases
        self.timed = {
            goal.atom.pred
            for case in cases
            for goal in case.atoms
            if goal.version is Version.OLD and case.needs_time_of(goal.atom)
        }
        self.reads: dict[str, tuple[str, Version]] = {}  # by name here: predicate and version
        self.clock: Type | None = None

    def build(self) -> Bistate:
        rules: list[Rule] = []
        for rule in self.schema.rules:
            mine = [c for c in self.cases if c.time.rule is rule]
            if mine:
                rules += self._rules(rule, mine)
            elif not self.schema.is_temporal(rule.head.pred):
                rules.append(rule)
        rules += self._ticks()
        defined = {r.head.pred for r in rules}
        called = {a.pred for r in rules for a in atoms(r.body)}
        tables = [self._table(name) for name in sorted(called & self.reads.keys() - defined)]
        if NOW in called:
            column = Column("t", self.clock, span=self.span)
            tables.insert(0, Table(NOW, (column,), (), span=self.span))
        statics = [
            p.declaration or self._declared(p)
            for p in self.schema.predicates.values()
            if p.kind is Kind.TABLE
        ]
        facts = [f for f in self.schema.facts if not self.schema.is_temporal(f.atom.pred)]
        statements: tuple[Statement, ...] = (*statics, *tables, *facts, *map(printable, rules))
        return Bistate(
            Module(statements, span=self.span),
            self._strata(rules),
            frozenset(self.timed),
            {n: p.arity for n, p in self.schema.predicates.items() if p.temporal},
            self.strata.potential,
        )

    # -------------------------------------------------------------------- rules

    def _rules(self, rule: Rule, cases: list[Case]) -> Iterator[Rule]:
        head = Atom(
            self._name(rule.head.pred, Version.NEW), rule.head.args[1:], span=rule.head.span
        )
        bodies = list(dict.fromkeys(self._body(case) for case in cases))
        if mark_of(rule) and len(bodies) > 1:
            # One aggregate over all the cases, not one for each.
            yield Rule(head, (Choice(tuple(bodies), span=rule.span),), span=rule.span)
            return
        for body in bodies:
            yield Rule(head, body, span=rule.span)

    def _body(self, case: Case) -> Body:
        rule = case.time.rule
        span = rule.head.span
        now = _fresh("Now", rule)
        time = rule.head.args[0]
        name = time.name if isinstance(time, Var) else now
        goals = self._literals(case, case.body, Var(name, span=span))
        shift = self.strata.potential.get(rule.head.pred, 0)
        known: Body = ()
        if any(v.name in (name, HEAD) for v in variables(goals)):
            if shift and name != now:
                clock = self._clock(case)
                later = _plus(Var(name, span=span), shift, clock, span)
                known = (
                    Atom(NOW, (Var(now, span=span),), span=span),
                    Comparison("=", Var(now, span=span), later, span=span),
                )
            else:
                known = (Atom(NOW, (Var(name, span=span),), span=span),)
            self.clock = self._clock(case)

        def renamed(term: Term) -> Term:
            if isinstance(term, Var) and term.name == HEAD:
                instant = Var(now, span=term.span)
                return _plus(instant, -shift, self.clock, term.span) if shift else instant
            return term

        body = (*known, *map_body_terms(goals, renamed))
        return body or (Comparison("=", _zero(span), _zero(span), span=span),)

    def _clock(self, case: Case) -> Type | None:
        return self.types.column(case.time.rule.head.pred, 0)

    def _literals(self, case: Case, body: VersionedBody, time: Var) -> Body:
        result: list[Literal] = []
        for literal in body:
            match literal:
                case VersionedAtom(atom, None):
                    result.append(atom)
                case VersionedAtom(atom, version) if version is not None:
                    result += self._goal(case, atom, version, time)
                case VersionedNot(bodies):
                    for inner in bodies:
                        goals = _without_idle(self._literals(case, inner, time), _clocks(inner))
                        if goals:
                            result.append(Not(goals, span=goals[0].span))
                case Comparison():
                    result.append(literal)
                case _:
                    raise AssertionError(literal)
        return tuple(result)

    def _goal(self, case: Case, atom: Atom, version: Version, time: Var) -> Iterator[Literal]:
        name = self._name(atom.pred, version)
        clock, *data = atom.args
        if version is Version.OLD and atom.pred in self.timed:
            used = case.needs_time_of(atom)
            stamp = clock if used else Var("_", span=clock.span)
            yield Atom(name, (stamp, *data), span=atom.span)
            return
        yield Atom(name, tuple(data), span=atom.span)
        if version is Version.NEW and case.needs_time_of(atom) and clock != time:
            shift = -self.strata.potential.get(atom.pred, 0)
            if isinstance(case.time.rule.head.args[0], Var):  # `time` is the head's, else it is now
                shift += self.strata.potential.get(case.time.rule.head.pred, 0)
            value = _plus(time, shift, self._clock(case), clock.span)
            yield Comparison("=", clock, value, span=clock.span)

    def _name(self, pred: str, version: Version) -> str:
        name = f"{pred}_{version.value}"
        while name in self.schema.predicates:
            name += "_"
        self.reads[name] = (pred, version)
        return name

    def _ticks(self) -> Iterator[Rule]:
        """`tick` at this instant: something is new in some stream."""
        if not any(pred == TICK for pred, _ in self.reads.values()):
            return
        head = self._name(TICK, Version.NEW)
        for stream in self.schema.streams:
            predicate = self.schema[stream]
            span = predicate.span
            columns = tuple(Var("_", span=span) for _ in range(predicate.arity - 1))
            goal = Atom(self._name(stream, Version.NEW), columns, span=span)
            yield Rule(Atom(head, (), span=span), (goal,), span=span)

    # ------------------------------------------------------------------- tables

    def _declared(self, predicate: Predicate) -> Table:
        """A table that the program does not declare; here its use alone might not show it."""
        names = self.schema.column_names[predicate.name]
        columns = tuple(self._column(predicate, i, name) for i, name in enumerate(names))
        return Table(predicate.name, columns, (), span=predicate.span)

    def _column(self, predicate: Predicate, position: int, name: str) -> Column:
        type_ = self.types.column(predicate.name, position)
        optional = type_ is not None and (predicate.name, position) in self.types.optional
        return Column(name, type_, optional=optional, span=predicate.span)

    def _table(self, name: str) -> Table:
        """A relation the instant starts with: what has arrived, or what was there before."""
        pred, version = self.reads[name]
        if pred == TICK:
            stamp = (Column("t", self.clock, span=self.span),) if pred in self.timed else ()
            return Table(name, stamp, (), span=self.span)
        predicate = self.schema[pred]
        names = self.schema.column_names[pred]
        first = 0 if version is Version.OLD and pred in self.timed else 1
        columns = tuple(self._column(predicate, i, names[i]) for i in range(first, predicate.arity))
        return Table(name, columns, (), span=predicate.span)

    # ------------------------------------------------------------------- strata

    def _strata(self, rules: list[Rule]) -> tuple[tuple[str, ...], ...]:
        """Old and static relations at 0; what is new above, a negation or aggregate higher."""
        level: dict[str, int] = {}
        for name, (_, version) in self.reads.items():
            level[name] = 1 if version is Version.NEW else 0
        for rule in rules:
            level.setdefault(rule.head.pred, 0)
        for _ in range(len(level) + 1):
            changed = False
            for rule in rules:
                least = max(
                    (level.get(a.pred, 0) + marked for a, marked in _signed(rule)), default=0
                )
                if least > level[rule.head.pred]:
                    level[rule.head.pred] = least
                    changed = True
            if not changed:
                break
        for atom in (a for r in rules for a in atoms(r.body)):
            if atom.pred not in level and atom.pred not in FILTERS:
                level[atom.pred] = 0
        count = max(level.values(), default=0) + 1
        return tuple(tuple(sorted(n for n, at in level.items() if at == k)) for k in range(count))


def _signed(rule: Rule) -> Iterator[tuple[Atom, int]]:
    """The goals of a rule, with 1 for those that must be complete first."""
    recursive = mark_of(rule) is not None
    for literal in rule.body:
        for atom in atoms(literal):
            is_self = atom.pred == rule.head.pred  # min and max may recurse
            yield atom, int(isinstance(literal, Not) or (recursive and not is_self))


def _clocks(body: VersionedBody) -> set[Term]:
    """The timestamps of the goals of a body."""
    return {x.atom.args[0] for x in body if isinstance(x, VersionedAtom) and x.version}


def _without_idle(body: Body, clocks: set[Term]) -> Body:
    """A negated body without equations for timestamps that nothing else in it reads."""
    body = tuple(dict.fromkeys(body))
    uses = [v.name for v in variables(body)]
    return tuple(
        literal
        for literal in body
        if not (
            isinstance(literal, Comparison)
            and literal.op == "="
            and isinstance(literal.left, Var)
            and literal.left in clocks
            and uses.count(literal.left.name) == 1
        )
    )


def _plus(term: Term, shift: int, clock: Type | None, span: Span) -> Term:
    if shift == 0:
        return term
    kind = Type.DURATION if clock is Type.TIME else Type.INT
    return BinOp("+" if shift > 0 else "-", term, Const(abs(shift), kind, span=span), span=span)


def _zero(span: Span) -> Const:
    return Const(0, Type.INT, span=span)


def _fresh(name: str, rule: Rule) -> str:
    used = {v.name for v in variables(rule)}
    while name in used:
        name += "_"
    return name
