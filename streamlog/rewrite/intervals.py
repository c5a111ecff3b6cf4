"""Goals that speak of time as intervals do, as goals over events.

    trade(S, C) over [T - 1week, T]    trade(_#a1, S, C), T - 1week <= _#a1, _#a1 <= T
    (S1, E1) overlaps (S2, E2)         S1 < S2, S2 < E1, E1 < E2
    T every 1d align 12h               every_1d_12h(T), with rules that make its rows
    burning(A) at T                    `rewrite.states`

Declarations of states become the rules that their readers ask for, and a column
`valid: since..until` becomes two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from attrs import evolve

from streamlog.analysis.temporal import temporal_predicates
from streamlog.diagnostics import Diagnostic, did_you_mean, finding
from streamlog.rewrite.declared_states import Declarations
from streamlog.rewrite.names import free_name, predicates
from streamlog.rewrite.state_kinds import Fresh
from streamlog.rewrite.state_parts import two_columns
from streamlog.rewrite.states import States
from streamlog.syntax.ast import (
    AT,
    EVERY,
    OVER,
    PAIRS,
    Arrive,
    Atom,
    BinOp,
    Body,
    Call,
    Choice,
    Column,
    Comparison,
    Const,
    Expect,
    ExpectFrom,
    ExpectNone,
    Export,
    Fact,
    Given,
    Literal,
    Not,
    Output,
    PredName,
    Query,
    Rule,
    State,
    Statement,
    Step,
    Stream,
    Table,
    Term,
    Test,
    Type,
    Var,
)
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import atoms, variables, walk

# What each relation says of the intervals [0, 1) and [2, 3).
_RELATIONS: dict[str, tuple[tuple[int, str, int], ...]] = {
    "before": ((1, "<", 2),),
    "meets": ((1, "=", 2),),
    "overlaps": ((0, "<", 2), (2, "<", 1), (1, "<", 3)),
    "starts": ((0, "=", 2), (1, "<", 3)),
    "during": ((2, "<", 0), (1, "<", 3)),
    "finishes": ((2, "<", 0), (1, "=", 3)),
    "equals": ((0, "=", 2), (1, "=", 3)),
    "after": ((3, "<", 0),),
    "met_by": ((3, "=", 0),),
    "overlapped_by": ((2, "<", 0), (0, "<", 3), (3, "<", 1)),
    "started_by": ((0, "=", 2), (3, "<", 1)),
    "contains": ((0, "<", 2), (3, "<", 1)),
    "finished_by": ((0, "<", 2), (1, "=", 3)),
    "intersects": ((0, "<", 3), (2, "<", 1)),
}


def without_intervals(
    statements: Sequence[Statement], of: Sequence[Statement] = ()
) -> tuple[list[Statement], list[Diagnostic]]:
    """The statements with the rules for their states; `of` are others that declare what these
    ask for, as a program does for a query."""
    statements = list(statements)
    if not any(map(_speaks_of_intervals, walk([*statements, *of]))):
        return statements, []
    made = _Program(statements, of)
    result = list(made.statements(statements))
    if not any(isinstance(s, Output | Query) for s in (*statements, *of)):
        for name in made.written:
            made.states.name(name, "")
    made.close()
    return [*result, *made.rules], made.diagnostics


def _speaks_of_intervals(node: object) -> bool:
    match node:
        case State():
            return True
        case Column():
            return node.ends is not None
        case Atom(name):
            return node.when is not None or name == EVERY or name.startswith(PAIRS)
        case _:
            return False


class _Program:
    def __init__(self, statements: Sequence[Statement], of: Sequence[Statement]) -> None:
        known = [*of, *statements]
        self.rules: list[Rule] = []
        self.timers: dict[str, str] = {}
        self.written: dict[str, list[State]] = {}
        for statement in known:
            if isinstance(statement, State):
                self.written.setdefault(statement.head.pred, []).append(statement)
        taken = predicates(of or statements) | self.written.keys()
        inputs = {s.name: s for s in known if isinstance(s, Stream | Table)}
        self.declarations = Declarations(inputs, self.written, taken, _temporal(known, inputs))
        self.diagnostics = self.declarations.diagnostics
        self.taken = taken
        self.states = States(self.declarations.defined(), taken)

    def close(self) -> None:
        """The rules for what was asked for."""
        events = self.declarations.rules
        self.rules += (evolve(r, body=self.body(r.body, Fresh())) for r in events)
        if not self.diagnostics:
            self.rules += self.states.rules()

    # ----------------------------------------------------------------------- the statements

    def statements(self, statements: Iterable[Statement]) -> Iterator[Statement]:
        for statement in statements:
            match statement:
                case State():
                    pass
                case Stream() | Table():
                    yield two_columns(statement)
                case Rule(head, body):
                    self._not_a_state(head, "a rule defines it")
                    self._check_times(statement)
                    yield evolve(statement, body=self.body(body, Fresh()))
                case Fact(atom):
                    self._not_a_state(atom, "a fact of it")
                    yield statement
                case Query(body):
                    self._check_times(statement)
                    yield evolve(statement, body=self.body(body, Fresh()))
                case Output(preds):
                    self._ask(preds)
                    yield evolve(statement, preds=tuple(map(self._with_columns, preds)))
                case Export(preds):
                    self._ask(preds)
                    yield statement
                case Test():
                    steps = tuple(self._step(step) for step in statement.steps)
                    yield evolve(statement, steps=steps)
                case _:
                    yield statement

    def _step(self, step: Step) -> Step:
        match step:
            case Expect(expected):
                return evolve(step, atoms=tuple(map(self._expected, expected)))
            case ExpectNone(pred) | ExpectFrom(pred):
                self._ask((pred,))
            case Arrive(atom):
                self._not_a_state(atom, "nothing of it arrives")
            case Given(pred) if pred.name in self.written:
                self.diagnostics.append(
                    _misread(Atom(pred.name, (), span=pred.span), "no data give it")
                )
            case _:
                pass
        return step

    def _expected(self, atom: Atom) -> Atom:
        if atom.when is None:
            if atom.pred in self.written:
                self.diagnostics.append(
                    _misread(
                        atom,
                        "when does it hold?",
                        f"expect an interval, as in `{pretty(atom)} from @… to @…`",
                    )
                )
            return atom
        if not self._is_state(atom):
            return evolve(atom, when=None)
        return self.states.interval(atom)

    def _ask(self, preds: Iterable[PredName]) -> None:
        for pred in preds:
            if pred.name in self.written:
                self.states.name(pred.name, "")

    def _with_columns(self, pred: PredName) -> PredName:
        if pred.columns or pred.name not in self.written:
            return pred
        taken: set[str] = set()
        names = ("until", "since", *self.states.defined[pred.name].columns)
        return evolve(pred, columns=tuple(free_name(n, taken) for n in names))

    def _not_a_state(self, atom: Atom, label: str) -> None:
        if atom.pred in self.written:
            self.diagnostics.append(
                _misread(atom, label, "what begins and ends it stands in its declaration")
            )

    # --------------------------------------------------------------------------- the bodies

    def body(self, body: Body, fresh: Fresh) -> Body:
        return tuple(made for literal in body for made in self._literal(literal, fresh))

    def _check_times(self, statement: Rule | Query) -> None:
        """The time at which a state is read comes from elsewhere."""
        uses = Counter(v.name for v in variables(statement))
        for goal in atoms(statement.body):
            if goal.when is not None and goal.when.word in (AT, OVER):
                for variable in variables(goal.when):
                    if uses[variable.name] == 1 or variable.name == "_":
                        self.diagnostics.append(
                            finding(
                                "SL0302",
                                f"nothing says which time `{variable.name}` is",
                                variable.span,
                                help="take it from another goal, as in `q(T, X), p(X) at T`",
                            )
                        )

    def _literal(self, literal: Literal, fresh: Fresh) -> Body:
        match literal:
            case Not(body):
                return (evolve(literal, body=self.body(body, fresh)),)
            case Choice(branches):
                made = tuple(self.body(branch, fresh) for branch in branches)
                return (evolve(literal, branches=made),)
            case Atom(name) if name == EVERY:
                return self._every(literal)
            case Atom(name, args) if name.startswith(PAIRS):
                relation = _RELATIONS[name.removeprefix(PAIRS)]
                return tuple(
                    Comparison(op, args[a], args[b], span=literal.span) for a, op, b in relation
                )
            case Atom() if literal.when is not None:
                return self._timed(literal, fresh)
            case Atom(name) if name in self.written:
                goal = pretty(literal)
                help = f"write `{goal} at T`, `{goal} from S` or `{goal} from S to E`"
                self.diagnostics.append(_misread(literal, "when does it hold?", help))
                return (literal,)
            case _:
                return (literal,)

    def _timed(self, goal: Atom, fresh: Fresh) -> Body:
        assert goal.when is not None
        if goal.when.word == OVER and goal.pred not in self.states:
            return _over(goal, fresh)
        if not self._is_state(goal):
            return (evolve(goal, when=None),)
        if goal.when.word != OVER:
            return self.states.reading(goal, fresh)
        # It held when the window began, or began within.
        (low, high), span = goal.when.times, goal.when.span
        args = tuple(
            fresh.shown(a.span) if isinstance(a, Var) and a.name == "_" else a for a in goal.args
        )
        start = fresh.hidden(span)
        before = goal.when.opens == "("
        begins = (
            self.states.event(goal.pred, "from", start, args, goal.span),
            Comparison("<", low, start, span=span),
            Comparison("<" if goal.when.closes == ")" else "<=", start, high, span=span),
        )
        held = self.states.holds(goal.pred, args, low, False, fresh, goal.span)
        ordered = Comparison(
            "<" if before or goal.when.closes == ")" else "<=", low, high, span=span
        )
        return (Choice(((*held, ordered), begins), span=goal.span),)

    def _is_state(self, goal: Atom) -> bool:
        assert goal.when is not None
        if goal.pred in self.states:
            return self.declarations.fits(goal)
        near = did_you_mean(goal.pred, self.states.defined)
        self.diagnostics.append(
            finding(
                "SL0801",
                f"`{goal.pred}` is not a state",
                goal.span,
                f"it happens, and does not hold `{goal.when.word.split()[0]}` a time",
                help=(
                    *([f"did you mean `{near}`?"] if near else []),
                    "the timestamp of an event is its first argument, as in `p(T, X)`",
                ),
            )
        )
        return False

    def _every(self, goal: Atom) -> Body:
        """Ticks of a clock from the first event on."""
        time, step, *rest = goal.args
        for given in (step, *rest):
            if not (isinstance(given, Const) and given.type in (Type.DURATION, Type.INT)):
                self.diagnostics.append(
                    finding("SL0105", "`every` takes a duration, and so does `align`", given.span)
                )
                return (goal,)
        assert isinstance(step, Const) and isinstance(step.value, int)
        if step.value <= 0:
            self.diagnostics.append(finding("SL0105", "a step that does not go on", step.span))
            return (goal,)
        text = "_".join(["every", *(re.sub(r"\W", "_", pretty(t)) for t in (step, *rest))])
        if text not in self.timers:
            self.timers[text] = free_name(text, self.taken)
            self.rules += _timer(self.timers[text], step, rest, goal)
        return (Atom(self.timers[text], (time,), span=goal.span),)


def _temporal(
    statements: Sequence[Statement], inputs: Mapping[str, Stream | Table]
) -> Collection[str]:
    """What happens at instants."""
    rules = [s for s in statements if isinstance(s, Rule)]
    return temporal_predicates(
        streams={n for n, d in inputs.items() if isinstance(d, Stream)},
        tables={n for n, d in inputs.items() if isinstance(d, Table)},
        rules=rules,
        facts=[s for s in statements if isinstance(s, Fact)],
        mentioned={a.pred for r in rules for a in atoms(r.body) if a.args and a.when is None},
    )


def _over(goal: Atom, fresh: Fresh) -> Body:
    """Rows with a timestamp in a window."""
    assert goal.when is not None
    (low, high), when = goal.when.times, goal.when
    time = fresh.shown(when.span)
    first, last = ("<" if when.opens == "(" else "<="), ("<" if when.closes == ")" else "<=")
    return (
        evolve(goal, args=(time, *goal.args), when=None),
        Comparison(first, low, time, span=when.span),
        Comparison(last, time, high, span=when.span),
    )


def _timer(name: str, step: Const, align: Sequence[Term], goal: Atom) -> Iterator[Rule]:
    """From the first event on, and on by itself."""
    span = goal.span
    tick, other, time = (Var(n, span=span) for n in ("U", "V", "T"))
    since: Term = tick if not align else BinOp("-", tick, align[0], span=span)
    first: Term = Call("ceil", (since, step), span=span)
    first = first if not align else BinOp("+", first, align[0], span=span)
    none = Not(
        (Atom("tick", (other,), span=span), Comparison("<", other, tick, span=span)), span=span
    )
    body: Body = (Atom("tick", (tick,), span=span), none, Comparison("=", time, first, span=span))
    yield Rule(Atom(name, (time,), span=span), body, span=span, is_auxiliary=True)
    later = Atom(name, (BinOp("+", time, step, span=span),), span=span)
    yield Rule(later, (Atom(name, (time,), span=span),), span=step.span, is_auxiliary=True)


def _misread(atom: Atom, label: str, help: str = "") -> Diagnostic:
    return finding(
        "SL0801", f"`{atom.pred}` is a state: it holds over intervals", atom.span, label, help=help
    )
