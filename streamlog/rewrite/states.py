"""What holds over intervals, as rules over events.

    state burning(A) since start(_, A) until stop(_, A).

    burning(A) at T     start(S, A), S <= T, not (start(S1, A), S < S1, S1 <= T),
                        not (stop(E, A), S < E, E <= T)
    burning(A) from S   burning_from(S, A)
    burning(A) from S to E
                        burning_end(E, A), burning_from(S, A), S < E,
                        not (burning_from(S1, A), S < S1, S1 < E)

    burning_from(T, A) <- start(T, A), not "burning(A) just before T".
    burning_end(T, A)  <- stop(T, A), "burning(A) just before T", not start(T, A).
    burning(E, S, A)   <- burning(A) from S to E.

Intervals are half-open: what begins at S and ends at E holds at S and no longer at E. Where
events of one tuple begin and end it at one instant, it held before or not, and holds from then on.

What holds `while` others do holds from a `_from` to the next `_end`, which can only be where one of
the others begins or ends. Its body is a conjunction of all variables that change; a union of such
parts, or of several declarations, leaves arguments out, and a grouping counts them. Every rule is
made when something asks for it (`rewrite.intervals`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from attrs import evolve

from streamlog.diagnostics import Span
from streamlog.rewrite.names import free_name
from streamlog.rewrite.state_kinds import (
    Begun,
    Conjunction,
    Defined,
    Fresh,
    Grouping,
    Part,
    Renaming,
    Rows,
    Union,
    for_ever,
    none_between,
    placed,
)
from streamlog.syntax.ast import (
    Atom,
    Body,
    Comparison,
    Literal,
    Not,
    Rule,
    Table,
    Term,
    Var,
)
from streamlog.syntax.walk import variables


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
            own = not part and not isinstance(self.defined[state].by, Rows)
            text = state if own else f"{state}_{part or 'intervals'}"
            self.names[state, part] = text if own else free_name(text, self.taken)
            self.asked.append((state, part))
        return self.names[state, part]

    # ------------------------------------------------------------------------- reading one

    def reading(self, goal: Atom, fresh: Fresh) -> Body:
        """What a goal that says something of time stands for."""
        assert goal.when is not None

        def named(terms: Sequence[Term]) -> list[Term]:
            return [
                fresh.shown(t.span) if isinstance(t, Var) and t.name == "_" else t for t in terms
            ]

        args, times = named(goal.args), named(goal.when.times)
        match goal.when.word:
            case "at":
                return self.holds(goal.pred, args, times[0], False, fresh, goal.span)
            case "from":
                return (self.event(goal.pred, "from", times[0], args, goal.span),)
            case _:
                since, until = times
                newer = fresh.hidden(goal.span)
                return self._interval(goal.pred, args, since, until, newer, goal.span)

    def interval(self, goal: Atom) -> Atom:
        """An interval as a fact, as tests expect it."""
        assert goal.when is not None
        since, *until = goal.when.times
        if not until:
            return self.event(goal.pred, "from", since, goal.args, goal.span)
        return Atom(self.name(goal.pred, ""), (*until, since, *goal.args), span=goal.span)

    def _interval(
        self, name: str, args: Sequence[Term], since: Term, until: Term, newer: Term, span: Span
    ) -> Body:
        """From where it begins to where it ends, without a beginning between."""
        ends = "until" if isinstance(self.defined[name].by, Rows) else "end"
        return (
            self.event(name, ends, until, args, span),
            self.event(name, "from", since, args, span),
            Comparison("<", since, until, span=span),
            Not(
                (
                    self.event(name, "from", newer, args, span),
                    Comparison("<", since, newer, span=span),
                    Comparison("<", newer, until, span=span),
                ),
                span=span,
            ),
        )

    def event(self, state: str, part: str, time: Term, args: Sequence[Term], span: Span) -> Atom:
        return Atom(self.name(state, part), (time, *args), span=span)

    def holds(
        self, name: str, args: Sequence[Term], time: Term, before: bool, fresh: Fresh, span: Span
    ) -> Body:
        """Whether it holds at the time, or just before it."""
        state = self.defined[name]
        match state.by:
            case Begun() as by:
                body = by.holds(args, time, before, fresh)
            case Rows(Table()) as by:
                body = by.holds(args, time, before, fresh)
            case _:
                body = self._between(name, args, time, before, fresh, span)
        return tuple(placed(literal, span) for literal in body)

    def _between(
        self, name: str, args: Sequence[Term], time: Term, before: bool, fresh: Fresh, span: Span
    ) -> Body:
        """From an event with which it begins to the next with which it ends."""
        start, end, op = fresh.hidden(span), fresh.hidden(span), "<" if before else "<="
        return (
            self.event(name, "from", start, args, span),
            Comparison(op, start, time, span=span),
            none_between(self.event(name, "end", end, args, span), start, end, op, time),
        )

    # -------------------------------------------------------------------- the rules for it

    def rules(self) -> list[Rule]:
        """All that was asked for, and what that asks for."""
        made: list[Rule] = []
        for name, part in self.asked:  # grows meanwhile
            state = self.defined[name]
            match part, state.by:
                case "", _:
                    made += self._intervals(state)
                case _, Begun() as by:
                    made += self._begun(state, by, part)
                case _, Conjunction() as by:
                    made += self._turns(state, by, begins=part == "from")
                case _, Union() as by:
                    made += self._united(state, by, begins=part == "from")
                case _, Grouping() as by:
                    made += self._grouped(state, by, part)
                case _, Rows() as by:
                    made += self._rows(state, by, part)
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
        named = (n if n[:1].isupper() else n.capitalize() for n in state.columns)
        args = [
            Var(free_name(n if n[:1].isupper() else "Value", taken), span=state.span) for n in named
        ]
        return [Var(free_name(t, taken), span=state.span) for t in times], args

    def _intervals(self, state: Defined) -> Iterator[Rule]:
        (until, since, newer), args = self._variables(state, "Until", "Since", "S1")
        body = self._interval(state.name, args, since, until, newer, state.span)
        yield self._rule(state, "", (until, since, *args), body)

    def _begun(self, state: Defined, by: Begun, part: str) -> Iterator[Rule]:
        (time,), args = self._variables(state, "T")
        fresh = Fresh()
        if part == "from":
            held = Not(by.holds(args, time, True, fresh), span=state.span)
            body = (by.begin.at(time, args, fresh), held)
            yield self._rule(state, part, (time, *args), body)
            return
        # What nothing ends would end as it begins, so never.
        begins = (by.begin.at(time, args, fresh),)
        for ended in list(by.ends(args, time, fresh)) or [begins]:
            again = Not((by.begin.at(time, args, fresh),), span=state.span)
            yield self._rule(state, part, (time, *args), (*ended, again))

    def _rows(self, state: Defined, by: Rows, part: str) -> Iterator[Rule]:
        (time,), args = self._variables(state, "T")
        body: Body
        if part == "from":
            body = _row_begins(by, args, time)
        elif part == "until":
            body = _row_ends(by, args, time)
        else:
            until = self.event(state.name, "until", time, args, state.span)
            body = (until, Comparison("<", time, for_ever(state.span), span=state.span))
        yield self._rule(state, part, (time, *args), body)

    # --------------------------------------------------------------- while its body holds

    def _body(self, body: Body, time: Term, before: bool, fresh: Fresh) -> Body:
        """A body of states, at the time or just before it."""
        found: list[Literal] = []
        for literal in body:
            match literal:
                case Atom(name, args) if name in self:
                    found += self._between(name, args, time, before, fresh, literal.span)
                case Not(inner):
                    found.append(evolve(literal, body=self._body(inner, time, before, fresh)))
                case _:
                    found.append(literal)
        return tuple(found)

    def _turns(self, state: Defined, by: Conjunction, *, begins: bool) -> Iterator[Rule]:
        """Where one of its goals turns true, while the others are; or false, while they were."""
        (time,), args = self._variables(state, "T")
        given, part = dict(zip(by.names, args, strict=True)), "from" if begins else "end"
        for literal in by.body:
            for goal, positive in state_goals((literal,), self):
                fresh = Fresh()
                kind = "from" if positive == begins else "end"
                (called,) = Renaming(given, fresh)((goal,))
                assert isinstance(called, Atom)
                same = Renaming(given, fresh)
                (turned,) = same((literal,))
                rest = same(tuple(x for x in by.body if x is not literal))
                found = [self.event(goal.pred, kind, time, called.args, goal.span)]
                body = [*found, *self._body(rest, time, not begins, fresh)]
                if not self._decides(goal, literal, by.names):
                    assert isinstance(turned, Not)
                    (other,) = Renaming(given, fresh)((literal,))
                    assert isinstance(other, Not)
                    body += self._body((turned,), time, not begins, fresh)
                    if len(turned.body) > 1:
                        body += self._body(other.body, time, begins, fresh)
                yield self._rule(state, part, (time, *args), tuple(body))

    @staticmethod
    def _decides(goal: Atom, literal: Literal, names: Sequence[str]) -> bool:
        """Whether a literal of a body is what one of its goals is, or is not."""
        alone = literal is goal or (isinstance(literal, Not) and literal.body == (goal,))
        return alone and all(v.name in names for v in variables(goal))

    def _united(self, state: Defined, by: Union, *, begins: bool) -> Iterator[Rule]:
        """Where one of its parts begins and none was there before, or ends and none is left."""
        (time,), args = self._variables(state, "T")
        given, fresh = dict(zip(by.names, args, strict=True)), Fresh()

        def called(part: Part) -> Sequence[Term]:
            (atom,) = Renaming(given, fresh)((Atom(part.name, part.args, span=state.span),))
            assert isinstance(atom, Atom)
            return atom.args

        for part in by.parts:
            kind = "from" if begins else "end"
            none = tuple(
                Not(
                    self._between(p.name, called(p), time, begins, fresh, state.span),
                    span=state.span,
                )
                for p in by.parts
            )
            event = self.event(part.name, kind, time, called(part), state.span)
            yield self._rule(state, kind, (time, *args), (event, *none))

    def _grouped(self, state: Defined, by: Grouping, part: str) -> Iterator[Rule]:
        span = state.span
        (time,), args = self._variables(state, "T")
        if part in ("change", "value"):
            taken = {v.name for v in variables((*by.part.args, *by.head))}
            time = Var(free_name("T", taken), span=span)
            groups = [a for a in by.head if isinstance(a, Var)]
            if part == "value":  # what a group has from a change on
                held = self._between(by.part.name, by.part.args, time, False, Fresh(), span)
                change = self.event(state.name, "change", time, groups, span)
                yield self._rule(state, part, (time, *by.head), (change, *held))
                return
            for kind in ("from", "end"):
                event = self.event(by.part.name, kind, time, by.part.args, span)
                yield self._rule(state, part, (time, *groups), (event,))
            return
        fresh = Fresh()
        value = self.event(state.name, "value", time, args, span)
        start, newer = fresh.hidden(span), fresh.hidden(span)
        change = self.event(state.name, "change", newer, by.groups(args), span)
        had = (
            self.event(state.name, "value", start, args, span),
            Comparison("<", start, time, span=span),
            none_between(change, start, newer, "<", time),
        )
        if part == "from":
            yield self._rule(state, part, (time, *args), (value, Not(had, span=span)))
        else:
            now = self.event(state.name, "change", time, by.groups(args), span)
            body = (now, *had, Not((value,), span=span))
            yield self._rule(state, part, (time, *args), body)


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
            case _:
                pass


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
