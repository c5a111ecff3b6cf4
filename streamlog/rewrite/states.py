"""What holds over intervals, as rules over events.

    state burning(A) since start(_, A) until stop(_, A).

    burning(A) at T     start(S, A), S <= T, not (start(S1, A), S < S1, S1 <= T),
                        not (stop(E, A), S < E, E <= T)
    burning(A) from S   burning_from(S, A)
    burning(A) from S to E
                        burning(E, S, A)

    burning_from(T, A) <- start(T, A), not "burning(A) just before T".
    burning_end(T, A)  <- stop(T, A), "burning(A) just before T", not start(T, A).
    burning(E, S, A)   <- burning_end(E, A), burning_from(S, A), S < E,
                          not (burning_from(S1, A), S < S1, S1 < E).

Intervals are half-open: what begins at S and ends at E holds at S and no longer at E. Where
events of one tuple begin and end it at one instant, it held before or not, and holds from then on.

What has several declarations, or holds `while` others do, holds from a `_from` to the next `_end`.
Those events can only be where one of the others begins or ends. Every rule is made when something
asks for it (`rewrite.intervals`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count

from attrs import evolve, field, frozen

from streamlog.diagnostics import Span
from streamlog.rewrite.names import free_name
from streamlog.syntax.ast import (
    AT,
    FROM,
    FROM_TO,
    Agg,
    Atom,
    BinOp,
    Body,
    Call,
    Choice,
    Comparison,
    Const,
    Literal,
    Not,
    Rule,
    State,
    Stream,
    Table,
    Term,
    Type,
    Var,
)
from streamlog.syntax.literals import LAST
from streamlog.syntax.walk import map_body_terms, variables


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
            _none(self.begin.at(newer, replacing, fresh), start, newer, op, time),
        ]
        if self.end is not None:
            body.append(_none(self.end.at(end, args, fresh), start, end, op, time))
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
class While:
    """A declaration of a state that holds while its body does."""

    state: State
    body: Body  # whose head's arguments are different variables, or aggregates

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name if isinstance(a, Var) else "" for a in self.state.head.args)

    @property
    def aggregates(self) -> bool:
        return any(isinstance(a, Agg) for a in self.state.head.args)


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


@frozen
class Defined:
    """A state with all of its declarations, or the data that say when it holds."""

    name: str
    columns: tuple[str, ...]
    clauses: tuple[Begun | While, ...] = ()
    rows: Rows | None = None
    span: Span = field(eq=False, kw_only=True)


class States:
    """The states of a program, and the rules that were asked for."""

    def __init__(self, defined: Mapping[str, Defined], taken: set[str]) -> None:
        self.defined, self.taken = defined, taken
        self.names: dict[tuple[str, str], str] = {}
        self.asked: list[tuple[str, str]] = []
        self.places: dict[Span, Iterator[int]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.defined

    def name(self, state: str, part: str) -> str:
        """Of a predicate that is made for the state, which is asked for by that."""
        if (state, part) not in self.names:
            own = not part and self.defined[state].rows is None
            text = state if own else f"{state}_{part or 'intervals'}"
            self.names[state, part] = text if own else free_name(text, self.taken)
            self.asked.append((state, part))
        return self.names[state, part]

    # ------------------------------------------------------------------------- reading one

    def reading(self, goal: Atom, fresh: Fresh) -> Body:
        """What a goal that says something of time stands for."""
        assert goal.when is not None
        args, when = goal.args, goal.when
        if when.word == AT:
            shown = tuple(
                fresh.shown(a.span) if isinstance(a, Var) and a.name == "_" else a for a in args
            )
            return self.holds(goal.pred, shown, when.times[0], False, fresh, goal.span)
        if when.word == FROM:
            return (self.event(goal.pred, "from", when.times[0], args, goal.span),)
        assert when.word == FROM_TO
        since, until = when.times
        return (Atom(self.name(goal.pred, ""), (until, since, *args), span=goal.span),)

    def event(self, state: str, part: str, time: Term, args: Sequence[Term], span: Span) -> Atom:
        return Atom(self.name(state, part), (time, *args), span=span)

    def holds(
        self, name: str, args: Sequence[Term], time: Term, before: bool, fresh: Fresh, span: Span
    ) -> Body:
        """Whether it holds at the time, or just before it."""
        state = self.defined[name]
        clauses, rows = state.clauses, state.rows
        if rows is not None and isinstance(rows.declaration, Table):
            body = rows.holds(args, time, before, fresh)
        elif len(clauses) == 1 and isinstance(clauses[0], Begun):
            body = clauses[0].holds(args, time, before, fresh)
        else:
            start, end, op = fresh.hidden(span), fresh.hidden(span), "<" if before else "<="
            body = (
                self.event(name, "from", start, args, span),
                Comparison(op, start, time, span=span),
                _none(self.event(name, "end", end, args, span), start, end, op, time),
            )
        return tuple(_placed(literal, span) for literal in body)

    # -------------------------------------------------------------------- the rules for it

    def rules(self) -> list[Rule]:
        """All that was asked for, and what that asks for."""
        made: list[Rule] = []
        for name, part in self.asked:  # grows meanwhile
            state = self.defined[name]
            makers: dict[str, Callable[[Defined], Iterable[Rule]]] = {
                "": self._intervals,
                "from": self._froms,
                "end": self._ends,
                "until": self._untils,
                "change": self._changes,
                "value": self._values,
            }
            made += makers[part](state)
        self.asked.clear()
        return made

    def _rule(self, state: Defined, part: str, args: Sequence[Term], body: Body) -> Rule:
        # Each at a place of its own: the types of variables are known by that of their rule.
        places = self.places.setdefault(state.span, count(1))
        end = max(state.span.start, state.span.end - next(places))
        span = Span(state.span.source, state.span.start, end)
        head = Atom(self.name(state.name, part), tuple(args), span=state.span)
        return Rule(head, body, span=span, is_auxiliary=part != "")

    def _variables(self, state: Defined, *times: str) -> tuple[list[Var], list[Var]]:
        taken: set[str] = set()
        args = [Var(free_name(name, taken), span=state.span) for name in state.columns]
        return [Var(free_name(t, taken), span=state.span) for t in times], args

    def _intervals(self, state: Defined) -> Iterator[Rule]:
        (until, since, newer), args = self._variables(state, "Until", "Since", "S1")
        ends, span = "end" if state.rows is None else "until", state.span
        body = (
            self.event(state.name, ends, until, args, span),
            self.event(state.name, "from", since, args, span),
            Comparison("<", since, until, span=span),
            Not(
                (
                    self.event(state.name, "from", newer, args, span),
                    Comparison("<", since, newer, span=span),
                    Comparison("<", newer, until, span=span),
                ),
                span=span,
            ),
        )
        yield self._rule(state, "", (until, since, *args), body)

    def _froms(self, state: Defined) -> Iterator[Rule]:
        (time,), args = self._variables(state, "T")
        if state.rows is not None:
            yield self._rule(state, "from", (time, *args), _row_begins(state.rows, args, time))
            return
        fresh = Fresh()
        for clause in state.clauses:
            if isinstance(clause, Begun):
                began = (clause.begin.at(time, args, fresh), *self._not(state, args, time, fresh))
                yield self._rule(state, "from", (time, *args), began)
            elif clause.aggregates:
                value = self.event(state.name, "value", time, args, state.span)
                body = (value, Not(self._had(state, args, time, fresh), span=state.span))
                yield self._rule(state, "from", (time, *args), body)
            else:
                yield from self._turns(state, clause, args, time, begins=True)

    def _ends(self, state: Defined) -> Iterator[Rule]:
        (time,), args = self._variables(state, "T")
        if state.rows is not None:
            until = self.event(state.name, "until", time, args, state.span)
            last = for_ever(state.span)
            body: Body = (until, Comparison("<", time, last, span=state.span))
            yield self._rule(state, "end", (time, *args), body)
            return
        fresh = Fresh()
        for clause in state.clauses:
            if isinstance(clause, Begun):
                for ended in clause.ends(args, time, fresh):
                    again = self._again(state, clause, args, time, fresh)
                    yield self._rule(state, "end", (time, *args), (*ended, *again))
            elif clause.aggregates:
                groups = _groups(clause, args)
                body = (
                    self.event(state.name, "change", time, groups, state.span),
                    *self._had(state, args, time, fresh),
                    Not(
                        (self.event(state.name, "value", time, args, state.span),), span=state.span
                    ),
                )
                yield self._rule(state, "end", (time, *args), body)
            else:
                yield from self._turns(state, clause, args, time, begins=False)

    def _again(
        self, state: Defined, clause: Begun, args: Sequence[Term], time: Term, fresh: Fresh
    ) -> Body:
        """That it does not begin again when it ends."""
        if len(state.clauses) == 1:
            return (Not((clause.begin.at(time, args, fresh),), span=state.span),)
        return self._not(state, args, time, fresh, before=False)

    def _not(
        self, state: Defined, args: Sequence[Term], time: Term, fresh: Fresh, before: bool = True
    ) -> Body:
        """That by none of its declarations it held."""
        return tuple(
            Not(self._by(clause, args, time, before, fresh), span=state.span)
            for clause in state.clauses
        )

    def _by(
        self, clause: Begun | While, args: Sequence[Term], time: Term, before: bool, fresh: Fresh
    ) -> Body:
        if isinstance(clause, Begun):
            return clause.holds(args, time, before, fresh)
        given = dict(zip(clause.names, args, strict=True))
        return self._body(Renaming(given, fresh)(clause.body), time, before, fresh)

    def _untils(self, state: Defined) -> Iterator[Rule]:
        assert state.rows is not None
        (time,), args = self._variables(state, "T")
        yield self._rule(state, "until", (time, *args), _row_ends(state.rows, args, time))

    # --------------------------------------------------------------- while its body holds

    def _body(self, body: Body, time: Term, before: bool, fresh: Fresh) -> Body:
        """A body of states, at the time or just before it."""
        found: list[Literal] = []
        for literal in body:
            match literal:
                case Atom(name, args) if name in self:
                    found += self.holds(name, args, time, before, fresh, literal.span)
                case Not(inner):
                    found.append(evolve(literal, body=self._body(inner, time, before, fresh)))
                case Choice(branches):
                    made = tuple(self._body(b, time, before, fresh) for b in branches)
                    found.append(evolve(literal, branches=made))
                case _:
                    found.append(literal)
        return tuple(found)

    def _turns(
        self, state: Defined, clause: While, args: Sequence[Var], time: Var, *, begins: bool
    ) -> Iterator[Rule]:
        """Where one of its states begins or ends, and with it the body."""
        part, given = "from" if begins else "end", dict(zip(clause.names, args, strict=True))
        fresh = Fresh()
        for goal, positive in state_goals(clause.body, self):
            same = Renaming(given, fresh)
            body = same(clause.body)
            (event,) = same((goal,))
            assert isinstance(event, Atom)
            kind = "from" if positive == begins else "end"
            found: list[Literal] = [
                self.event(goal.pred, kind, time, event.args, goal.span),
                *self._body(body, time, not begins, fresh),
            ]
            if not (len(state.clauses) == 1 and _decides(goal, clause, positive)):
                found += self._not(state, args, time, fresh, before=begins)
            yield self._rule(state, part, (time, *args), tuple(found))

    def _changes(self, state: Defined) -> Iterator[Rule]:
        """Where something of a group begins or ends, whatever comes of that."""
        (clause,) = state.clauses
        assert isinstance(clause, While)
        (time,), args = self._variables(state, "T")
        groups, fresh = _groups(clause, args), Fresh()
        given = {n: a for n, a in zip(clause.names, args, strict=True) if n}
        for goal, positive in state_goals(clause.body, self):
            for begins in (True, False):
                same = Renaming(given, fresh)
                body = same(clause.body)
                (event,) = same((goal,))
                assert isinstance(event, Atom)
                kind = "from" if positive == begins else "end"
                found = (
                    self.event(goal.pred, kind, time, event.args, goal.span),
                    *self._body(body, time, not begins, fresh),
                )
                yield self._rule(state, "change", (time, *groups), found)

    def _values(self, state: Defined) -> Iterator[Rule]:
        """What a group has from a change on."""
        (clause,) = state.clauses
        assert isinstance(clause, While)
        taken = {v.name for v in variables((*clause.body, *clause.state.head.args))}
        time, fresh = Var(free_name("T", taken), span=state.span), Fresh()
        head = clause.state.head.args
        body = map_body_terms(
            clause.body,
            lambda t: fresh.shown(t.span) if isinstance(t, Var) and t.name == "_" else t,
        )
        found = (
            self.event(
                state.name, "change", time, [a for a in head if isinstance(a, Var)], state.span
            ),
            *self._body(body, time, False, fresh),
        )
        yield self._rule(state, "value", (time, *head), found)

    def _had(self, state: Defined, args: Sequence[Term], time: Term, fresh: Fresh) -> Body:
        """The value just before a time."""
        (clause,) = state.clauses
        assert isinstance(clause, While)
        start, newer, span = fresh.hidden(state.span), fresh.hidden(state.span), state.span
        change = self.event(state.name, "change", newer, _groups(clause, args), span)
        return (
            self.event(state.name, "value", start, args, span),
            Comparison("<", start, time, span=span),
            _none(change, start, newer, "<", time),
        )


def state_goals(
    body: Body, states: States | Mapping[str, object], positive: bool = True
) -> Iterator[tuple[Atom, bool]]:
    """The states that a body names, and whether under an even number of negations."""
    for literal in body:
        match literal:
            case Atom(name) if name in states:
                yield literal, positive
            case Not(inner):
                yield from state_goals(inner, states, not positive)
            case Choice(branches):
                for branch in branches:
                    yield from state_goals(branch, states, positive)
            case _:
                pass


def _decides(goal: Atom, clause: While, positive: bool) -> bool:
    """Whether no tuple of the state can hold without the one of this goal."""
    if any(v.name not in clause.names for v in variables(goal)):
        return False
    if positive:
        return any(goal is literal for literal in clause.body)
    return any(isinstance(x, Not) and len(x.body) == 1 and x.body[0] is goal for x in clause.body)


def _groups(clause: While, args: Sequence[Term]) -> list[Term]:
    return [a for a, h in zip(args, clause.state.head.args, strict=True) if isinstance(h, Var)]


def _row_begins(rows: Rows, args: Sequence[Term], time: Var) -> Body:
    """A row begins, and no other lasts until then that began before."""
    fresh, span = Fresh(), time.span
    end, start, other = (fresh.hidden(span) for _ in range(3))
    before = (
        *rows.row(args, start, other, fresh),
        Comparison("<", start, time, span=span),
        Comparison("<=", time, other, span=span),
    )
    own = (*rows.row(args, time, end, fresh), Comparison("<", time, end, span=span))
    return (*own, Not(before, span=span))


def _row_ends(rows: Rows, args: Sequence[Term], time: Var) -> Body:
    """A row ends, and no other has begun that goes on."""
    fresh, span = Fresh(), time.span
    start, other, later = (fresh.hidden(span) for _ in range(3))
    after = (
        *rows.row(args, other, later, fresh),
        Comparison("<=", other, time, span=span),
        Comparison("<", time, later, span=span),
    )
    own = (*rows.row(args, start, time, fresh), Comparison("<", start, time, span=span))
    return (*own, Not(after, span=span))


def _none(event: Atom, start: Term, at: Term, op: str, time: Term) -> Not:
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


def _placed(literal: Literal, span: Span) -> Literal:
    return evolve(literal, span=span)
