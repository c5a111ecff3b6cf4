"""A test's steps as events, and an engine that plays them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from attrs import field, frozen

from streamlog.analysis.schema import Kind
from streamlog.compiler import Program
from streamlog.diagnostics import Span
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine, EngineError
from streamlog.runtime.executor import ExecutorFactory, LimitError, Limits, Row
from streamlog.runtime.functions import EvaluationError
from streamlog.runtime.ingest import Checker, Reject
from streamlog.runtime.query import QueryError
from streamlog.runtime.report import Late
from streamlog.runtime.sources import Input, SourceError, declared_inputs, inside, read
from streamlog.syntax.ast import (
    Advance,
    Arrive,
    Atom,
    Const,
    End,
    Expect,
    ExpectFrom,
    ExpectNone,
    Given,
    Rejected,
    Step,
    Term,
    Test,
    Type,
)
from streamlog.syntax.literals import EPOCH, MICROSECOND
from streamlog.syntax.nothing import NONE
from streamlog.syntax.pretty import goal_text

# What a program may do wrong while it runs; anything else is our bug.
RUN_ERRORS = (EngineError, QueryError, LimitError, EvaluationError, SourceError)


@frozen(eq=False)
class Push:
    """A row arrives in a stream."""

    pred: str
    row: Any  # a row of the stream, or what a source would give if it is to be rejected
    fate: str
    step: Arrive | Given
    place: int  # in the order as written


@frozen(eq=False)
class Move:
    """Time is said to have passed."""

    step: Advance | End
    place: int


@frozen(eq=False)
class Check:
    """The answers so far are looked at."""

    step: Expect | ExpectNone | ExpectFrom
    place: int


@frozen(eq=False)
class Cut:
    """What has come so far is evaluated."""


Event: TypeAlias = Push | Move | Check | Cut


@frozen(eq=False)
class Played:
    """An event that has happened, to this engine; and which rows it has made late or rejected."""

    event: Event
    engine: Engine
    late: Sequence[Late]
    rejects: Sequence[Reject]

    @property
    def fate(self) -> str:
        """What became of a row that was pushed."""
        return "late" if self.late else "rejected" if self.rejects else "accepted"


Answers: TypeAlias = Mapping[str, frozenset[Row]]


class StepError(Exception):
    """A step cannot be done, or the test as a whole."""

    def __init__(self, step: Step | None, reason: str) -> None:
        super().__init__(reason)
        self.step, self.reason = step, reason


@frozen
class Script:
    """A test made ready: its tables are filled, its files are read."""

    program: Program
    events: tuple[Event, ...]
    tables: Mapping[str, Sequence[Row]]
    checkers: Mapping[str, Checker] = field(repr=False)
    executor: ExecutorFactory | None = None  # None: the kernel
    limits: Limits | None = None

    def play(self, events: Iterable[Event]) -> Iterator[Played]:
        """Each event, when it has happened; first the engine as it is before all of them."""
        step: Step | None = None
        try:
            executor = self.executor or Kernel
            engine = Engine(self.program, executor, self.tables, self.limits, checked=True)
            yield Played(Cut(), engine, (), ())
            for event in events:
                late, rejects = len(engine.late), len(engine.rejects)
                if not isinstance(event, Cut):
                    step = event.step
                match event:
                    case Push(pred, row, "rejected"):
                        engine.push(pred, [row])
                    case Push(pred, row):
                        engine.take(pred, [row])
                    case Move(Advance(Const(time), timeline)):
                        engine.advance(int(time), timeline)
                    case Move(End()):
                        engine.end()
                    case _:
                        engine.step()
                yield Played(event, engine, engine.late[late:], engine.rejects[rejects:])
        except RUN_ERRORS as error:
            raise StepError(step, str(error)) from error

    def as_written(self, events: Iterable[Event] | None = None) -> list[Event]:
        """In the order of the text, each statement evaluated before the next one; elsewhere than
        in the kernel, where a step is dear, only before answers are looked at."""
        chosen = self.events if events is None else events
        ordered = sorted((e for e in chosen if not isinstance(e, Cut)), key=lambda e: e.place)
        if self.executor is not None:
            return [*ordered, Cut()]
        result: list[Event] = []
        for event in ordered:
            # The rows of a file come together.
            if result and not (
                isinstance(event, Push) and getattr(result[-1], "step", None) is event.step
            ):
                result.append(Cut())
            result.append(event)
        return [*result, Cut()]

    def answers(self, engine: Engine) -> Answers:
        """Everything that the rules have derived for certain."""
        schema, safety = self.program.schema, self.program.safety
        return {
            name: frozenset(engine.facts(name))
            for name, p in schema.predicates.items()
            if p.kind is Kind.DERIVED and not safety.is_open(name)
        }


def script(program: Program, test: Test) -> Script:
    """The events of a test; raises `StepError` where a step makes no sense."""
    try:
        return _Reader(program).script(test)
    except SourceError as error:  # of a table's own file
        raise StepError(None, str(error)) from None


class _Reader:
    def __init__(self, program: Program) -> None:
        self.program, self.schema = program, program.schema
        self.checkers = {name: Checker(program, name) for name in self.schema.predicates}
        self.tables: dict[str, list[Row]] = {}
        self.events: list[Event] = []

    def script(self, test: Test) -> Script:
        for step in test.steps:
            place = len(self.events)
            match step:
                case Arrive(atom, fate):
                    self._arrive(step, atom, fate)
                case Given(pred, path):
                    for row in rows_of(self.program, self.checkers[pred.name], path, step):
                        self._take(pred.name, row, "accepted", step)
                case Advance() | End():
                    self.events.append(Move(step, place))
                case Expect() | ExpectNone() | ExpectFrom():
                    self.events.append(Check(step, place))
                case Rejected():
                    pass
        self._declared(test)
        return Script(self.program, tuple(self.events), self.tables, self.checkers)

    def _arrive(self, step: Arrive, atom: Atom, fate: str) -> None:
        kind = self.schema[atom.pred].kind
        if kind is Kind.DERIVED:
            raise StepError(step, f"`{atom.pred}` is derived by rules; it cannot arrive")
        if kind is Kind.TABLE and fate == "late":
            raise StepError(step, f"`{atom.pred}` is a table: its rows have no time to be late")
        raw = tuple(map(_python, atom.args))
        row = self.checkers[atom.pred].row(raw)
        if isinstance(row, Reject):
            if fate != "rejected":
                raise StepError(step, f"this row is rejected: {row.reason}")
            if kind is Kind.STREAM:
                self._take(atom.pred, raw, fate, step)
            return
        if fate == "rejected" and kind is Kind.TABLE:
            raise StepError(step, "this row is not rejected: the table takes it")
        self._take(atom.pred, raw if fate == "rejected" else row, fate, step)

    def _take(self, pred: str, row: Any, fate: str, step: Arrive | Given) -> None:
        match self.schema[pred].kind:
            case Kind.STREAM:
                self.events.append(Push(pred, row, fate, step, len(self.events)))
            case Kind.TABLE:
                self.tables.setdefault(pred, []).append(row)
            case Kind.DERIVED:
                raise StepError(step, f"`{pred}` is derived by rules; it cannot be given")

    def _declared(self, test: Test) -> None:
        """A table that the test does not fill is filled as the program says."""
        filled = {s.pred.name for s in test.steps if isinstance(s, Given)} | self.tables.keys()
        for source in declared_inputs(self.program):
            if self.schema[source.pred].kind is Kind.TABLE and source.pred not in filled:
                rows = read(source, self.checkers[source.pred])
                self.tables[source.pred] = [r for r in rows if not isinstance(r, Reject)]


def rows_of(program: Program, checker: Checker, path: str, step: Given | ExpectFrom) -> list[Row]:
    """The rows of a file that a step names; each must be valid."""
    try:
        file = inside(program, path, step.span.source.path)
        if isinstance(step, ExpectFrom):
            checker = Checker(program, checker.pred, answers=True)
        rows = list(read(Input(checker.pred, file), checker))
    except SourceError as error:
        raise StepError(step, str(error)) from None
    for row in rows:
        if isinstance(row, Reject):
            raise StepError(step, f"{row.where}: this row is rejected: {row.reason}")
    return [row for row in rows if not isinstance(row, Reject)]


def _python(term: Term) -> Any:
    """A constant as Python has it, so that the check of the row sees its type; nothing for what
    is not a constant (`_` in a row that is to be rejected)."""
    if not isinstance(term, Const):
        return None
    if term.type is Type.TIME:
        return EPOCH + int(term.value) * MICROSECOND
    if term.type is Type.DURATION:
        return timedelta(microseconds=int(term.value))
    return term.value


# --------------------------------------------------------------------------------- as text


def fact_text(program: Program, pred: str, row: Sequence[Any]) -> str:
    """`p(1, red)`, in the syntax of the language."""
    return goal_text(fact_atom(program, pred, row))


def fact_atom(program: Program, pred: str, row: Sequence[Any]) -> Atom:
    types, nowhere = program.types, Span(program.source, 0, 0)
    args = (_const(v, types.column(pred, i), nowhere) for i, v in enumerate(row))
    return Atom(pred, tuple(args), span=nowhere)


_BY_CLASS = {bool: Type.BOOL, int: Type.INT, float: Type.FLOAT, str: Type.STRING}


def _const(value: Any, type_: Type | None, nowhere: Span) -> Const:
    if type_ is Type.FLOAT:
        value = float(value)
    if value is NONE:
        return Const(NONE, None, span=nowhere)
    return Const(value, type_ or _BY_CLASS[type(value)], span=nowhere)
