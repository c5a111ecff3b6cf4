"""New and old: the cases of a rule at one instant of the clock.

With the clock `t + h(p)`, a goal that a fact depends on is *new* (same instant) or *old*
(earlier). A comparison such as `T1 <= T` or `T = max(T1, T2)` allows several combinations; each
is a case of its own, and in each most comparisons between timestamps say no more than the
versions do and can go. A timestamp that no remaining comparison and no data position asks for
need not be stored. Bistate programs and what must be kept both rest on this.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from attrs import field, frozen

from streamlog.analysis.schema import Schema
from streamlog.analysis.time.constraints import Terms, TooManyCasesError, matrices
from streamlog.analysis.time.dbm import Dbm, Difference
from streamlog.analysis.time.reach import (
    HEAD,
    BranchTime,
    clock_of,
    inside,
    names_around_negations,
    too_many_cases,
)
from streamlog.diagnostics import Diagnostic
from streamlog.syntax.ast import (
    Agg,
    Atom,
    BinOp,
    Body,
    Call,
    Choice,
    Comparison,
    Const,
    Literal,
    Neg,
    Not,
    Term,
    Type,
    Var,
)
from streamlog.syntax.walk import variables


class Version(enum.Enum):
    NEW = "new"
    OLD = "old"


@frozen
class VersionedAtom:
    """A goal; `version` is None when it has no timestamp."""

    atom: Atom
    version: Version | None


@frozen
class VersionedNot:
    """A negation, once for each case of its goals."""

    bodies: tuple[VersionedBody, ...]


VersionedBody: TypeAlias = "tuple[VersionedAtom | VersionedNot | Comparison, ...]"


@frozen
class Case:
    """One combination of versions, and the timestamps that must be known in it."""

    time: BranchTime = field(repr=False)
    body: VersionedBody
    needs: frozenset[str]

    @property
    def atoms(self) -> Iterator[VersionedAtom]:
        return _versioned_atoms(self.body)

    @property
    def timed(self) -> Iterator[VersionedAtom]:
        return (goal for goal in self.atoms if goal.version is not None)

    def needs_time_of(self, atom: Atom) -> bool:
        return isinstance(atom.args[0], Const) or clock_of(atom) in self.needs


def _versioned_atoms(body: VersionedBody) -> Iterator[VersionedAtom]:
    for literal in body:
        match literal:
            case VersionedAtom():
                yield literal
            case VersionedNot(bodies):
                for inner in bodies:
                    yield from _versioned_atoms(inner)
            case Comparison():
                pass


@frozen
class _State:
    """What holds at a point of the split.

    `possible` are the matrices over the rule's own variables, which decide whether a case can
    be. `implied` are matrices over the goals' clocks with the versions alone, which decide what
    need not be said. `clocks` maps a timestamp variable to the clock that stands for it there.
    """

    possible: tuple[Dbm, ...]
    implied: tuple[Dbm, ...]
    clocks: Mapping[str, str]
    needs: frozenset[str]


# Each goal that may be new or old doubles the cases; this is about a half of a second.
MOST_STEPS = 2048


def split_all(
    times: Iterable[BranchTime], schema: Schema, potential: Mapping[str, int]
) -> tuple[tuple[Case, ...], tuple[Diagnostic, ...]]:
    """The cases of every conjunction, and the rules that have too many."""
    cases: list[Case] = []
    diagnostics: list[Diagnostic] = []
    for time in times:
        try:
            cases += split(time, schema, potential)
        except TooManyCasesError:
            diagnostics.append(too_many_cases(time.rule))
    return tuple(cases), tuple(diagnostics)


def split(time: BranchTime, schema: Schema, potential: Mapping[str, int]) -> tuple[Case, ...]:
    """The cases of one conjunction, in the paper's order: new before old, last goal first."""
    return tuple(
        Case(time, body, state.needs) for body, state in _Splitter(time, schema, potential).cases()
    )


class _Splitter:
    def __init__(self, time: BranchTime, schema: Schema, potential: Mapping[str, int]) -> None:
        self.time = time
        self.schema = schema
        self.potential = potential
        self.head_clock = potential.get(time.rule.head.pred, 0)
        self.timestamps = {g.clock for g in time.goals} | {HEAD}
        self.timestamps |= {v.name for v in variables(time.rule.head.args[0])}
        self.counter = 0
        self.steps = 0

    def cases(self) -> Iterator[tuple[VersionedBody, _State]]:
        head, *data = self.time.rule.head.args
        body = self.time.body
        clocks = {HEAD: HEAD}
        if isinstance(head, Var):
            clocks[head.name] = HEAD
        else:  # a head such as `T + 10s` is one more thing to compute, or to find implied
            now = Var(HEAD, span=head.span)
            body = (*body, Comparison("=", now, head, span=head.span))
        needs = self._timestamps_in(*data)
        if any(isinstance(arg, Agg) and not arg.kind.by_value for arg in data):
            # Solutions that differ in a timestamp only are counted apart.
            needs |= {g.clock for g in self.time.goals if not g.negated}
        start = _State(self.time.matrices, matrices(()), clocks, needs)
        yield from self._split(body, self.time.terms, start)

    def _split(
        self, body: Body, terms: Terms, state: _State
    ) -> Iterator[tuple[VersionedBody, _State]]:
        """Versions for the goals first, then whatever they leave of the other literals."""
        timed = [index for index, literal in enumerate(body) if self._has_time(literal)]
        for versions, chosen in self._choose([body[index] for index in timed], state):
            version_at = dict(zip(timed, versions, strict=True))
            result: list[VersionedAtom | VersionedNot | Comparison] = []
            current = chosen
            for index, literal in enumerate(body):
                match literal:
                    case Atom():
                        version = version_at.get(index)
                        data = literal.args[1:] if version else literal.args
                        current = self._needing(current, *data)
                        result.append(VersionedAtom(literal, version))
                    case Comparison():
                        if not self._is_implied(literal, terms, current):
                            current = self._needing(current, literal.left, literal.right)
                            result.append(literal)
                    case Not():
                        negation, current = self._negation(body, literal, terms, current)
                        if negation.bodies:
                            result.append(negation)
                    case Choice():
                        raise ValueError("bodies are desugared")
            yield tuple(result), current

    def _has_time(self, literal: Literal) -> bool:
        return isinstance(literal, Atom) and self.schema.is_temporal(literal.pred)

    def _choose(
        self, goals: list[Literal], state: _State
    ) -> Iterator[tuple[tuple[Version, ...], _State]]:
        if not goals:
            yield (), state
            return
        *before, goal = goals
        assert isinstance(goal, Atom)
        for version in Version:
            narrowed = self._with_version(goal, version, state)
            if narrowed is not None:
                for versions, chosen in self._choose(before, narrowed):
                    yield (*versions, version), chosen

    def _with_version(self, goal: Atom, version: Version, state: _State) -> _State | None:
        self.steps += len(state.possible) + len(state.implied)
        if self.steps > MOST_STEPS:
            raise TooManyCasesError
        shift = self.head_clock - self.potential.get(goal.pred, 0)
        clock = clock_of(goal)
        possible = _narrow(state.possible, _version(clock, shift, version))
        if not possible:
            return None
        self.counter += 1
        own = f"goal {self.counter}"
        implied = _narrow(state.implied, _version(own, shift, version))
        clocks, needs = state.clocks, state.needs
        if (known := clocks.get(clock)) is None:
            clocks = {**clocks, clock: own}
        elif not all(_equal(known, own, m) for m in implied):
            needs = needs | {clock}
        return _State(possible, implied, clocks, needs)

    def _negation(
        self, body: Body, negation: Not, terms: Terms, state: _State
    ) -> tuple[VersionedNot, _State]:
        around = names_around_negations(body)
        local, possible = inside(
            negation, around, self.schema, terms, self.timestamps, state.possible
        )
        within = _State(possible, state.implied, state.clocks, state.needs)
        bodies = []
        needs = state.needs
        for inner, after in self._split(negation.body, local, within):
            bodies.append(inner)
            needs |= after.needs
        return VersionedNot(tuple(bodies)), _State(
            state.possible, state.implied, state.clocks, needs
        )

    def _is_implied(self, comparison: Comparison, terms: Terms, state: _State) -> bool:
        """Whether the versions alone entail a comparison between timestamps."""
        names = {v.name for v in variables(comparison)}
        if not names <= state.clocks.keys() or not _is_exact(comparison):
            return False
        translated = Terms(lambda _: True, {}, {}).comparison(
            Comparison(
                comparison.op,
                _renamed(comparison.left, state.clocks),
                _renamed(comparison.right, state.clocks),
                span=comparison.span,
            )
        )
        return all(any(all(map(m.entails, d)) for d in translated) for m in state.implied)

    def _needing(self, state: _State, *terms: Term) -> _State:
        needs = state.needs | self._timestamps_in(*terms)
        return _State(state.possible, state.implied, state.clocks, needs)

    def _timestamps_in(self, *terms: Term) -> frozenset[str]:
        return frozenset(v.name for t in terms for v in variables(t) if v.name in self.timestamps)


def _version(clock: str, shift: int, version: Version) -> tuple[Difference, ...]:
    """`clock = HEAD + shift`, or `clock < HEAD + shift`."""
    if version is Version.OLD:
        return (Difference(clock, HEAD, shift - 1),)
    return (Difference(clock, HEAD, shift), Difference(HEAD, clock, -shift))


def _narrow(possible: tuple[Dbm, ...], more: tuple[Difference, ...]) -> tuple[Dbm, ...]:
    return tuple(m for dbm in possible if (m := dbm.and_also(more)) is not None)


def _equal(one: str, other: str, matrix: Dbm) -> bool:
    return matrix.most(one, other) == 0 == matrix.least(one, other)


def _is_exact(comparison: Comparison) -> bool:
    """Whether differences say all that the comparison says."""
    return _is_time_term(comparison.left) and _is_time_term(comparison.right)


def _is_time_term(term: Term) -> bool:
    match term:
        case Var():
            return True
        case Const(_, type_):
            return type_ in (Type.INT, Type.TIME, Type.DURATION)
        case BinOp("+" | "-", left, right):
            return _is_time_term(left) and isinstance(right, Const)
        case Call("max" | "min", args):
            return all(isinstance(a, Var) for a in args)
        case Neg() | _:
            return False


def _renamed(term: Term, clocks: Mapping[str, str]) -> Term:
    match term:
        case Var(name):
            return Var(clocks[name], span=term.span)
        case BinOp(op, left, right):
            return BinOp(op, _renamed(left, clocks), _renamed(right, clocks), span=term.span)
        case Call(name, args):
            return Call(name, tuple(_renamed(a, clocks) for a in args), span=term.span)
        case Const() | Neg() | Agg():
            return term
