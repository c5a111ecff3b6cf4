"""What declarations say of when states hold, checked and in one form."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from attrs import evolve

from streamlog.analysis.builtins import GOALS
from streamlog.analysis.mentions import arguments
from streamlog.diagnostics import Diagnostic, Span, finding
from streamlog.rewrite.names import free_name
from streamlog.rewrite.state_kinds import (
    Begun,
    Conjunction,
    Defined,
    Event,
    Grouping,
    Kind,
    Part,
    Union,
)
from streamlog.rewrite.state_parts import (
    circular,
    columns_of,
    conjunctions,
    is_simple,
    names_a_state,
    not_carried,
    of_rows,
    renamed,
    two_columns,
    with_different_variables,
)
from streamlog.syntax.ast import (
    FROM,
    FROM_TO,
    WHILE,
    Agg,
    Atom,
    Body,
    Choice,
    Const,
    Literal,
    Not,
    Rule,
    State,
    Stream,
    Table,
    Term,
    Var,
)
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import atoms, map_terms, variables, walk


class Declarations:
    """Those of a program."""

    def __init__(
        self,
        declared: Mapping[str, Stream | Table],
        written: Mapping[str, Sequence[State]],
        taken: set[str],
        temporal: Collection[str],
    ) -> None:
        self.declared, self.written, self.taken = declared, written, taken
        self.temporal = temporal
        self.diagnostics: list[Diagnostic] = []
        self.rules: list[Rule] = []  # for events that no single goal gives, as they are written
        self.rows = {n: of_rows(d) for n, d in declared.items() if any(c.ends for c in d.columns)}
        self.arity = {name: len(of[0].head.args) for name, of in written.items()}
        self.arity |= {name: len(state.columns) for name, state in self.rows.items()}

    def defined(self) -> dict[str, Defined]:
        self.diagnostics += circular(self.written)
        self.made: dict[str, Defined] = dict(self.rows)
        for name, of in self.written.items():
            self._define(name, of)
        return self.made

    def fits(self, goal: Atom) -> bool:
        """Whether a goal has as many arguments as its state."""
        arity = self.arity[goal.pred]
        if len(goal.args) == arity:
            return True
        states = self.written.get(goal.pred)
        place = states[0].span if states else self.declared[goal.pred].span
        self.diagnostics.append(
            finding(
                "SL0201",
                f"the state `{goal.pred}` has {arguments(arity)}, here it has {len(goal.args)}",
                goal.span,
                related=[(place, "declared here")],
            )
        )
        return False

    def _define(self, name: str, written: Sequence[State]) -> None:
        kinds: list[Begun | Conjunction | Union | Grouping] = []
        span = written[0].span
        for state in written:
            if len(state.head.args) != self.arity[name]:
                self.diagnostics.append(
                    finding(
                        "SL0201",
                        f"`{name}` is declared with different numbers of arguments",
                        state.head.span,
                        related=[(written[0].head.span, "first declared here")],
                    )
                )
                continue
            if name in self.declared:
                self.diagnostics.append(
                    finding(
                        "SL0202",
                        f"`{name}` is declared twice",
                        state.head.span,
                        "declared again here",
                        related=[(self.declared[name].span, "first declared here")],
                        help="rename the state or the input",
                    )
                )
            state = self._with_variables(state)
            made = self._while(state, written) if state.word == WHILE else self._begun(state)
            kinds += [made] if made is not None else []
        columns = columns_of(written[0].head.args)
        if len(kinds) > 1:
            kinds = [self._together(name, columns, kinds, span)]
        # Without any there are errors.
        self.made[name] = Defined(name, columns, kinds[0] if kinds else Union((), ()), span=span)

    def _together(
        self, name: str, columns: tuple[str, ...], kinds: Sequence[Kind], span: Span
    ) -> Union:
        names = tuple(f"#{i}" for i in range(self.arity[name]))
        args = tuple(Var(n, span=span) for n in names)
        parts: list[Part] = []
        for by in kinds:
            if not isinstance(by, Union):
                parts.append(Part(self._part(name, columns, by, span), args))
                continue
            of = dict(zip(by.names, args, strict=True))
            parts += (evolve(p, args=tuple(renamed(a, of) for a in p.args)) for p in by.parts)
        return Union(tuple(parts), names)

    def _part(self, name: str, columns: tuple[str, ...], by: Kind, span: Span) -> str:
        """A name for a part of a state."""
        part = free_name(f"{name}_part", self.taken)
        self.made[part] = Defined(part, columns, by, span=span)
        return part

    def _with_variables(self, state: State) -> State:
        """With the variable of the column for each word in the head."""
        args: list[Term] = []
        for arg in state.head.args:
            word = arg.value if isinstance(arg, Const) and isinstance(arg.value, str) else ""
            if not word or state.head.span.source.text[arg.span.start] in "\"'":
                args.append(arg)
                continue
            found = self._of_column(state.body, word)
            if found is None:
                self.diagnostics.append(
                    finding(
                        "SL0804",
                        f"no goal of the state has a column `{word}`",
                        arg.span,
                        help=(
                            f"write a variable of the goals, such as `{word.capitalize()}`",
                            f'a text that is always the same is written `"{word}"`',
                        ),
                    )
                )
            args.append(arg if found is None else evolve(found, span=arg.span))
        return evolve(state, head=evolve(state.head, args=tuple(args)))

    def _of_column(self, body: Body, word: str) -> Var | None:
        goals = [g for g in body if isinstance(g, Atom)]
        for goal in goals:
            declared = self.declared.get(goal.pred)
            columns = two_columns(declared).columns if declared else ()
            for column, arg in zip(columns, goal.args, strict=False):
                if column.name == word and isinstance(arg, Var) and arg.name != "_":
                    return arg
        names = {v.name: v for g in goals for v in variables(g.args[1:]) if v.name != "_"}
        undeclared = all(g.pred not in self.declared for g in goals)
        return next(iter(names.values())) if len(names) == 1 and undeclared else None

    def _begun(self, state: State) -> Begun | None:
        begin = self._event(state, state.body, "since", range(len(state.head.args)))
        end: Event | None = None
        if state.until:
            stop = {v.name for v in variables(state.until)}
            named = [
                i for i, a in enumerate(state.head.args) if isinstance(a, Var) and a.name in stop
            ]
            end = self._event(state, state.until, "until", named)
            if begin is None or end is None:
                return None
            if not self.diagnostics:
                self.diagnostics += not_carried(state, self._time)
        return None if begin is None else Begun(state, begin, end)

    def _time(self, body: Body) -> Term | None:
        """The time of the first goal that has one."""
        for literal in body:
            if isinstance(literal, Choice):
                for branch in literal.branches:
                    if (found := self._time(branch)) is not None:
                        return found
            if not isinstance(literal, Atom) or literal.pred in GOALS or not literal.args:
                continue
            if literal.when is not None:
                if literal.when.word in (FROM, FROM_TO):
                    return literal.when.times[-1]
                continue
            if not isinstance(self.declared.get(literal.pred), Table):
                return literal.args[0]
        return None

    def _event(self, state: State, body: Body, part: str, positions: Iterable[int]) -> Event | None:
        time = self._time(body)
        body, time = _with_a_name(state, body, time)
        if not isinstance(time, Var) or time.name == "_":
            does = "begins" if part == "since" else "ends"
            help = "name an event and its time, as in `start(T, X)`"
            if isinstance(time, Var):
                help = "give its time a name, the same in each alternative"
            self.diagnostics.append(
                finding(
                    "SL0802",
                    f"nothing says when `{state.head.pred}` {does}",
                    body[0].span if time is None else time.span,
                    help=help,
                )
            )
            return None
        own = {i: state.head.args[i] for i in positions}
        match body:
            case (Atom() as goal,) if goal.when is None and is_simple(goal, own.values()):
                names = {i: a.name for i, a in own.items() if isinstance(a, Var)}
                return Event(goal, time.name, names)
            case _:
                pass
        name = free_name(f"{state.head.pred}_{part}", self.taken)
        span = body[0].span.to(body[-1].span)
        head = Atom(name, (time, *own.values()), span=state.head.span)
        rule = Rule(head, body, span=span, is_auxiliary=True)
        self.rules.append(rule)
        names = {i: f"A{i}" for i in own}
        called = Atom(
            name, (Var("T", span=span), *(Var(n, span=span) for n in names.values())), span=span
        )
        return Event(called, "T", names)

    def _while(
        self, state: State, written: Sequence[State]
    ) -> Conjunction | Union | Grouping | None:
        head = state.head
        aggregates = any(isinstance(part, Agg) for part in walk(head.args))
        if aggregates and len(written) > 1:
            others = (s.span for s in written if s.head.span != head.span)
            self.diagnostics.append(
                finding(
                    "SL0105",
                    f"`{head.pred}` aggregates, so it has one declaration",
                    state.head.span,
                    related=[(span, "another one") for span in islice(others, 1)],
                    help="give what is counted here a state of its own",
                )
            )
            return None
        for goal in atoms(state.body):
            if goal.when is not None:
                self.diagnostics.append(
                    finding(
                        "SL0801",
                        "a state that holds while others do names them without a time",
                        goal.when.span,
                        help=f"write `{pretty(evolve(goal, when=None))}`",
                    )
                )
            elif goal.pred in self.arity:
                self.fits(goal)
            elif goal.pred in self.temporal:
                self.diagnostics.append(
                    finding(
                        "SL0801",
                        f"`{goal.pred}` happens at instants; it does not hold",
                        goal.span,
                        help="say how long it holds, as in "
                        f"`state {goal.pred}_now(X) since {goal.pred}(T, X) until …`",
                    )
                )
        if self.diagnostics:
            return None
        taken = {v.name for v in variables((*state.body, *head.args))}
        named = with_different_variables(state, taken)
        bodies = conjunctions(named.body)
        for body in bodies:
            if not any(isinstance(x, Atom) and x.pred in self.arity for x in body):
                self.diagnostics.append(
                    finding(
                        "SL0802",
                        f"nothing says when `{head.pred}` begins",
                        state.span,
                        "it holds while no state does",
                        help="name a state without `not`",
                    )
                )
                return None
        if aggregates and len(bodies) > 1:
            self.diagnostics.append(
                finding(
                    "SL0105",
                    f"`{head.pred}` aggregates over alternatives",
                    state.span,
                    help="give the alternatives a state of their own, and aggregate that",
                )
            )
            return None
        if aggregates:
            return Grouping(self._conjunction(named, bodies[0], True, taken), named.head.args)
        names = tuple(a.name for a in named.head.args if isinstance(a, Var))
        if len(bodies) == 1 and len(bodies[0]) > 1:
            body, found = self._changing(named, bodies[0], False, taken)
            if set(found) == set(names):
                return Conjunction(body, names)
        parts = (self._conjunction(named, body, False, taken) for body in bodies)
        return Union(tuple(parts), names)

    def _conjunction(self, state: State, body: Body, counts: bool, taken: set[str]) -> Part:
        """A body as a state of all its variables; it may be one already."""
        body, names = self._changing(state, body, counts, taken)
        match body:
            case (Atom(name, args),):
                return Part(name, args)
            case _:
                made = self._part(state.head.pred, names, Conjunction(body, names), state.span)
                return Part(made, tuple(Var(n, span=state.span) for n in names))

    def _changing(
        self, state: State, body: Body, counts: bool, taken: set[str]
    ) -> tuple[Body, tuple[str, ...]]:
        """The body with a name for each `_`, and the variables of what changes; of all goals if
        their solutions are counted."""
        named: list[Literal] = []
        names = dict.fromkeys(v.name for v in variables(state.head.args))
        for literal in body:
            if not isinstance(literal, Not) and (counts or names_a_state(literal, self.arity)):
                literal = map_terms(
                    literal,
                    lambda t: (
                        evolve(t, name=free_name("Any", taken))
                        if isinstance(t, Var) and t.name == "_"
                        else t
                    ),
                )
                names |= dict.fromkeys(v.name for v in variables(literal))
            named.append(literal)
        return tuple(named), tuple(names)


def _with_a_name(state: State, body: Body, time: Term | None) -> tuple[Body, Term | None]:
    """`fire_start(_, A)`: nothing else speaks of the time."""
    if not isinstance(time, Var) or time.name != "_":
        return body, time
    named = Var(
        free_name("T", {v.name for v in variables((*body, *state.head.args))}), span=time.span
    )
    found: Term = time
    literals: list[Literal] = []
    for literal in body:
        if isinstance(literal, Atom) and any(a is time for a in literal.args):
            args = tuple(named if a is time else a for a in literal.args)
            literal, found = evolve(literal, args=args), named
        literals.append(literal)
    return tuple(literals), found
