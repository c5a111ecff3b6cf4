"""Which of the old rows of a goal are sufficient: those that others stand for need not be kept.

Old rows differ in what their rule reads of them, no more: one of those that agree there is
sufficient. Often a better one stands for many:

    not (tempr(T2, _, C2), C2 > C1, T2 <= T1)      if any is hotter, the hottest is
    top(T, max(C)) <- ask(T), tempr(T1, _, C), T1 < T.
    trend(T1, S, D), not (trend(T2, S, _), T1 < T2, T2 <= T)
                                                   a trend is over forever when another has come
    book(T, S, U, C) <- ask(T, S), trade(U, S, C), U <= T limit 5 by U desc per S.
                                                   of each S the trades at the five latest times

In the first two, a higher value passes every test that a lower one passes. In the third, one
row rules another out, whatever else is asked of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from attrs import frozen

from streamlog.analysis.better_row import better_rows
from streamlog.analysis.bounds import distance, time_bound
from streamlog.analysis.equations import definitions
from streamlog.analysis.monotone import Direction, better, direction, spread
from streamlog.analysis.versions import (
    Case,
    Version,
    VersionedAtom,
    VersionedBody,
    VersionedNot,
)
from streamlog.syntax.ast import Agg, Atom, Comparison, Limit, Term, Var, branches
from streamlog.syntax.walk import variables


@frozen
class Best:
    """Of rows that agree in `group`, those with the highest, or lowest, value of a column; or with
    one of the so many highest, or lowest."""

    column: int
    highest: bool
    group: tuple[int, ...]
    count: int = 1


@frozen
class SufficientRows:
    """Of the best old rows, or of all, one for each combination of the values of `columns`."""

    columns: tuple[int, ...]
    best: Best | None = None

    @property
    def key(self) -> tuple[int, ...]:
        """One row for each combination of these is kept; of the latest, all at that time; of
        what a limit ranks, all with one of so many values."""
        if self.best is None:
            return self.columns
        if self.best.column == 0 or self.best.count > 1 or 0 in self.columns:
            return self.best.group
        return tuple(c for c in self.columns if c != self.best.column)


def combined(rows: Iterable[SufficientRows]) -> tuple[SufficientRows, ...]:
    """What satisfies all, the most particular first: where any row will do, one that is kept
    already does."""
    columns: dict[Best | None, set[int]] = {}
    for one in rows:
        columns.setdefault(one.best, set()).update(one.columns)
    found = [SufficientRows(tuple(sorted(read)), best) for best, read in columns.items()]
    return tuple(sorted(found or [SufficientRows(())], key=_freedom))


def _freedom(rows: SufficientRows) -> tuple[bool, int]:
    return (rows.best is None, rows.best.column if rows.best else 0)


def sufficient_rows(case: Case) -> Iterator[tuple[Atom, SufficientRows | None, int | None]]:
    """For each goal that is old in this case, which rows are sufficient; None: all of them. And
    before which distance from the head, if a row must lie there to be good for every later one."""
    rule = case.time.rule
    aggregates = tuple(a for a in rule.head.args if isinstance(a, Agg))
    terms = tuple(a for a in rule.head.args if not isinstance(a, Agg))
    yield from _Scope(case, case.body, frozenset(), terms, aggregates, rule.wanted).goals()


class _Scope:
    """A conjunction: the body of a rule, or of a negation, which has no head."""

    def __init__(
        self,
        case: Case,
        body: VersionedBody,
        outside: frozenset[str],
        terms: tuple[Term, ...] = (),
        aggregates: tuple[Agg, ...] = (),
        wanted: Limit | None = None,
    ) -> None:
        self.case, self.body, self.outside, self.wanted = case, body, outside, wanted
        self.terms, self.aggregates = terms, aggregates
        self.atoms = [x.atom for x in body if isinstance(x, VersionedAtom)]
        self.tests = [x for x in body if isinstance(x, Comparison)]
        self.negations = [x for x in body if isinstance(x, VersionedNot)]
        self.inside = outside | {
            v.name for x in (*terms, *aggregates, *self.atoms, *self.tests) for v in variables(x)
        }
        self.until: int | None = None  # the distance of the rows that were found to be sufficient

    def goals(self) -> Iterator[tuple[Atom, SufficientRows | None, int | None]]:
        for literal in self.body:
            match literal:
                case VersionedAtom(atom, Version.OLD):
                    self.until = None
                    yield atom, self._sufficient(atom), self.until
                case VersionedNot(bodies):
                    for inner in bodies:
                        yield from _Scope(self.case, inner, self.inside).goals()
                case VersionedAtom() | Comparison():
                    pass

    def _sufficient(self, atom: Atom) -> SufficientRows | None:
        read = tuple(p for p, arg in enumerate(atom.args) if p > 0 and self._reads(arg))
        dated = self.case.needs_time_of(atom)
        for column in range(len(atom.args)):
            best = self._survivor(atom, column)
            if best is not None and (column == 0 or not dated):
                return SufficientRows(read, best)
        for column in (0,) if dated else read:
            if best := self._improves(atom, column):
                if self.wanted is not None:
                    return SufficientRows((0, *read) if dated else read, best)
                return SufficientRows(read if column == 0 else best.group, best)
        return None if dated else SufficientRows(read)

    # ------------------------------------------------------------- one rules out another

    def _survivor(self, atom: Atom, column: int) -> Best | None:
        """If a row is ruled out forever by one with a better value of the column."""
        for inner in (b for n in self.negations for b in n.bodies):
            literals = [literal for x in inner if (literal := _old(x)) is not None]
            if len(literals) < len(inner):
                continue
            for found in better_rows(atom, literals, self.inside):
                is_about = found.column == column and isinstance(atom.args[column], Var)
                if is_about and not found.bounds and 0 not in found.group:
                    return Best(column, found.highest, found.group)
        return None

    # --------------------------------------------------------- what is better in every use

    def _improves(self, atom: Atom, column: int) -> Best | None:
        """If whatever a row is good for, one with a better value of the column is good for."""
        arg = atom.args[column]
        if not isinstance(arg, Var) or arg.name in self.outside:
            return None
        defined = self._definitions(arg)
        known = spread([arg.name], {name: term for name, (term, _) in defined.items()})
        for other in self.atoms:
            if sum(v.name in known for v in variables(other)) > (other is atom):
                return None
        fixed = self.terms if self.wanted is None else (*self.terms[:1], *self.wanted.per)
        if any(v.name in known for term in fixed for v in variables(term)):
            return None
        defining = [test for name, (_, test) in defined.items() if name in known]
        tests = [t for t in self.tests if not any(t is d for d in defining)]
        ends = [end for t in tests if (end := self._end(t, arg)) is not None] if column == 0 else []
        wanted = {better(t, known) for t in tests if not ends or self._end(t, arg) is None}
        for literal in (x for n in self.negations for b in n.bodies for x in b):
            if isinstance(literal, Comparison):
                moves = better(literal, known)
                wanted.add(None if moves is None else -moves)
            elif any(v.name in known for v in _variables(literal)):
                return None
        group = [p for p, a in enumerate(atom.args) if p not in (0, column) and self._reads(a)]
        count = 1
        if self.wanted is not None:
            first, count = self.wanted.by[0], self.wanted.offset + self.wanted.count
            wanted.add((1 if first.descending else -1) if first.term == arg else None)
            group = [p for p in group if not self._is_only_shown(atom, atom.args[p])]
        elif all(a.kind.by_value for a in self.aggregates):
            wanted |= {_wanted(a, direction(a.arg, known)) for a in self.aggregates if a.arg}
        elif not arg.is_from_core or any(Var(n, span=arg.span).is_written for n in known):
            wanted.add(self._by_order(arg, column))
            group = [p for p in group if not self._is_only_a_value(atom.args[p])]
        match [*wanted - {0}]:
            case [1 | -1 as way]:
                self.until = min(ends, default=None)
                return Best(column, way == 1, tuple(group), count)
            case _:
                return None

    def _end(self, test: Comparison, time: Var) -> int | None:
        """How far from the head a test lets a timestamp lie, if it asks nothing else: all rows
        that are earlier than that from a head pass the tests of all later heads."""
        match time_bound(test, time, {v.name for v in variables(self.terms[:1])}):
            case ("high", bound) if self.terms and isinstance(self.terms[0], Var):
                return distance(bound, self.terms[0])
            case _:
                return None

    def _reads(self, arg: Term) -> bool:
        return isinstance(arg, Var) and self.case.time.uses[arg.name] > 1

    def _definitions(self, arg: Var) -> dict[str, tuple[Term, Comparison]]:
        """The equations of variables that are nothing but the value of a term."""
        bound = {v.name for a in self.atoms for v in variables(a)} | self.outside | {arg.name}
        found = [d for d in definitions(self.tests) if d[0].name not in bound]
        once = Counter(var.name for var, _, _ in found)
        return {var.name: (term, test) for var, term, test in found if once[var.name] == 1}

    def _by_order(self, time: Var, column: int) -> Direction:
        """`first` and `last` go by the timestamps that are written in the rule."""
        rule = self.case.time.rule
        core = any(v.is_from_core for v in variables(rule.body))
        if column == 0 and time.is_written and len(branches(rule.body)) == 1 and not core:
            match [a.func for a in self.aggregates]:
                case ["last"]:
                    return 1
                case ["first"]:
                    return -1
                case _:
                    pass
        return None

    def _is_only_shown(self, atom: Atom, arg: Term) -> bool:
        """Whether a variable of one goal is in rows, and perhaps orders them, but nothing more."""
        assert self.wanted is not None
        if not isinstance(arg, Var) or arg in self.wanted.per or arg in self.terms[:1]:
            return False
        elsewhere = Counter(v.name for v in variables(self.case.time.body))
        return elsewhere[arg.name] == 1

    def _is_only_a_value(self, arg: Term) -> bool:
        """Whether a variable of one goal is aggregated, and stands nowhere else."""
        names = [v.name for a in self.aggregates for v in variables(a)]
        return (
            isinstance(arg, Var) and self.case.time.uses[arg.name] == 1 + names.count(arg.name) > 1
        )


def _old(literal: VersionedAtom | VersionedNot | Comparison) -> Atom | Comparison | None:
    """A literal that says the same at all later times."""
    match literal:
        case VersionedAtom(atom, Version.OLD):
            return atom
        case Comparison():
            return literal
        case VersionedAtom() | VersionedNot():
            return None


def _wanted(aggregate: Agg, moves: Direction) -> Direction:
    """Which way the argument of a `min` or `max` must move to be better."""
    if not moves:
        return moves
    return moves * aggregate.kind.best or None


def _variables(literal: VersionedAtom | VersionedNot | Comparison) -> Iterator[Var]:
    match literal:
        case VersionedAtom(atom):
            yield from variables(atom)
        case VersionedNot(bodies):
            for inner in (x for body in bodies for x in body):
                yield from _variables(inner)
        case Comparison():
            yield from variables(literal)
