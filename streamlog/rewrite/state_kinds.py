"""The ways in which a state is declared, and when it holds by each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import TypeAlias

from attrs import evolve, field, frozen

from streamlog.diagnostics import Span
from streamlog.syntax.ast import (
    Atom,
    BinOp,
    Body,
    Call,
    Comparison,
    Const,
    Literal,
    Not,
    State,
    Stream,
    Table,
    Term,
    Type,
    Var,
)
from streamlog.syntax.literals import LAST
from streamlog.syntax.walk import map_body_terms


def for_ever(span: Span) -> Const:
    """The end of what has none."""
    return Const(LAST, Type.TIME, span=span)


class Fresh:
    """Variables of one rule that nobody wrote."""

    def __init__(self) -> None:
        self.numbers = count(1)

    def hidden(self, span: Span) -> Var:
        """One whose values do not tell solutions apart (`Var.is_from_core`)."""
        return Var(f"_#cs{next(self.numbers)}", span=span)

    def shown(self, span: Span) -> Var:
        """One that stands for a `_`."""
        return Var(f"_#a{next(self.numbers)}", span=span)


class Renaming:
    """Variables as given, others fresh, each the same wherever it stands."""

    def __init__(self, given: Mapping[str, Term], fresh: Fresh) -> None:
        self.given, self.fresh = dict(given), fresh

    def __call__(self, body: Body) -> Body:
        return map_body_terms(body, self._term)

    def _term(self, term: Term) -> Term:
        if not isinstance(term, Var):
            return term
        if term.name == "_":
            return self.fresh.hidden(term.span)
        if term.name not in self.given:
            self.given[term.name] = self.fresh.hidden(term.span)
        return self.given[term.name]


@frozen
class Event:
    """A body that gives instants: a goal that can be called in its place, with its time and the
    positions of the state's arguments that it has."""

    goal: Atom
    time: str
    names: Mapping[int, str]

    def at(self, time: Term, args: Sequence[Term], fresh: Fresh) -> Atom:
        given = {self.time: time, **{name: args[i] for i, name in self.names.items()}}
        (goal,) = Renaming(given, fresh)((self.goal,))
        assert isinstance(goal, Atom)
        return goal


@frozen
class Begun:
    """A declaration of a state that events begin and end."""

    state: State
    begin: Event
    end: Event | None

    def holds(self, args: Sequence[Term], time: Term, before: bool, fresh: Fresh) -> Body:
        """At the time, or just before it."""
        start = fresh.hidden(time.span)
        return (*self._start(args, start, time, before, fresh), *self._lasts(start, time, before))

    def runs_out(self, args: Sequence[Term], time: Term, fresh: Fresh) -> Body:
        """Held for the time it holds at most, which is over."""
        start = fresh.hidden(time.span)
        assert self.state.most is not None
        over = Comparison("=", time, _plus(start, self.state.most), span=time.span)
        return (*self._start(args, start, time, True, fresh), over)

    def _start(
        self, args: Sequence[Term], start: Var, time: Term, before: bool, fresh: Fresh
    ) -> Body:
        """The latest event that begins it, and nothing after it that ends it."""
        op = "<" if before else "<="
        newer, end = fresh.hidden(time.span), fresh.hidden(time.span)
        keys = self.state.keys
        replacing = [
            arg if keys is None or i < keys else fresh.hidden(time.span)
            for i, arg in enumerate(args)
        ]
        body: list[Literal] = [
            self.begin.at(start, args, fresh),
            Comparison(op, start, time, span=time.span),
            none_between(self.begin.at(newer, replacing, fresh), start, newer, op, time),
        ]
        if self.end is not None:
            body.append(none_between(self.end.at(end, args, fresh), start, end, op, time))
        return tuple(body)

    def _lasts(self, start: Var, time: Term, before: bool) -> Body:
        if self.state.most is None:
            return ()
        over = _plus(start, self.state.most)
        return (Comparison("<=" if before else "<", time, over, span=time.span),)

    def ends(self, args: Sequence[Term], time: Term, fresh: Fresh) -> Iterator[Body]:
        """How it comes to an end, unless it begins again."""
        held = self.holds(args, time, True, fresh)
        if self.end is not None:
            yield (self.end.at(time, args, fresh), *held)
        if (keys := self.state.keys) is not None:
            others = [*args[:keys], *(fresh.hidden(time.span) for _ in args[keys:])]
            yield (self.begin.at(time, others, fresh), *held)
        if self.state.most is not None:
            yield self.runs_out(args, time, fresh)


@frozen
class Conjunction:
    """What holds while all goals do. Its arguments are the variables of those that change."""

    body: Body
    names: tuple[str, ...]


@frozen
class Part:
    """A state, called as a declaration does, of which some arguments are those of the whole."""

    name: str
    args: tuple[Term, ...]


@frozen
class Union:
    """What holds while one of its parts does, whatever the other arguments of that."""

    parts: tuple[Part, ...]
    names: tuple[str, ...]


@frozen
class Grouping:
    """What holds while the aggregates over a part have these values."""

    part: Part
    head: tuple[Term, ...]

    def groups(self, args: Sequence[Term]) -> list[Term]:
        return [a for a, h in zip(args, self.head, strict=True) if isinstance(h, Var)]


@frozen
class Rows:
    """A table or stream whose rows say from when to when they hold."""

    declaration: Stream | Table
    since: int  # the position of the first of its two columns

    def row(self, args: Sequence[Term], start: Var, end: Var, fresh: Fresh) -> Body:
        """A row, its beginning and its end; without an end it lasts for ever. One of a stream
        holds at the earliest when it is known."""
        span = end.span
        since, until = start, fresh.hidden(span)
        terms, tests = list(args), list[Literal]()
        if isinstance(self.declaration, Stream):
            known, since = fresh.hidden(span), fresh.hidden(span)
            terms.insert(0, known)
            later = Call("max", (known, since), span=span)
            tests.append(Comparison("=", start, later, span=span))
        terms[self.since : self.since] = [since, until]
        given = Call("default", (until, for_ever(span)), span=span)
        tests.append(Comparison("=", end, given, span=span))
        return (Atom(self.declaration.name, tuple(terms), span=span), *tests)

    def holds(self, args: Sequence[Term], time: Term, before: bool, fresh: Fresh) -> Body:
        start, end = fresh.hidden(time.span), fresh.hidden(time.span)
        first, second = ("<", "<=") if before else ("<=", "<")
        return (
            *self.row(args, start, end, fresh),
            Comparison(first, start, time, span=time.span),
            Comparison(second, time, end, span=time.span),
        )


Kind: TypeAlias = Begun | Conjunction | Union | Grouping | Rows


@frozen
class Defined:
    """A state, and when it holds."""

    name: str
    columns: tuple[str, ...]
    by: Kind
    span: Span = field(eq=False, kw_only=True)


def none_between(event: Atom, start: Term, at: Term, op: str, time: Term) -> Not:
    """No such event after the start, up to the time."""
    span = time.span
    body = (
        event,
        Comparison("<", start, at, span=span),
        Comparison(op, at, time, span=span),
    )
    return Not(body, span=span)


def _plus(start: Term, most: Const) -> Term:
    return BinOp("+", start, most, span=start.span)


def placed(literal: Literal, span: Span) -> Literal:
    return evolve(literal, span=span)
