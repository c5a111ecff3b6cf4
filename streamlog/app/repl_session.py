"""A session: the program typed so far and what has happened, without any terminal.

A session is a `State` (texts and events) and an engine that can be made from it again at any time.
Whatever fails, be it a wrong statement, a limit or Ctrl-C, leaves the state as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from attrs import evolve, frozen

from streamlog.analysis.modules import files_of, merged
from streamlog.analysis.schema import Kind
from streamlog.analysis.types import settled
from streamlog.app.repl_state import Advance, Arrive, End, Event, Loaded, State
from streamlog.app.ruletest import Options, Suite, Verdict, run_test
from streamlog.compiler import Mode, Program, compile_module
from streamlog.diagnostics import Diagnostic, Source, finding
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine, EngineError
from streamlog.runtime.executor import ExecutorFactory, Limits, Row
from streamlog.runtime.ingest import Checker, Reject
from streamlog.runtime.merging import merged as by_time
from streamlog.runtime.once import Result, answer_once, one_time_rule
from streamlog.runtime.python_functions import PythonError, allowed, check_allowed
from streamlog.runtime.query import Binding, in_order, prepared
from streamlog.runtime.report import Late
from streamlog.runtime.sources import Input, declared_inputs, read
from streamlog.runtime.status import Held, held
from streamlog.syntax import load
from streamlog.syntax.ast import Fact, Query, Rule, Test, Type
from streamlog.syntax.parse import parse
from streamlog.syntax.pretty import pretty
from streamlog.syntax.root import root_of
from streamlog.syntax.scan import scan
from streamlog.syntax.walk import atoms, variables

TYPED = "session"  # the name of what is typed, in messages
INTERACTIVE = Limits(rows=1_000_000, seconds=10)
# Of a program that is still being typed, something is always unread.
_NOT_YET = "SL0504"


class Refused(Exception):  # noqa: N818  (the statement is refused; nothing has failed)
    """An input with errors; it has changed nothing."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("refused")


# ---------------------------------------------------------------------------------- messages


@frozen
class Findings:
    diagnostics: tuple[Diagnostic, ...]


@frozen
class Answers:
    """Rows of an output: new ones, or ones that a change of the program has taken away."""

    pred: str
    rows: tuple[Row, ...]
    gone: bool = False


@frozen
class Found:
    """A query's answers, and what further ones wait for."""

    query: Query
    bindings: list[Binding]
    types: dict[str, Type | None]  # of its variables
    held: tuple[Held, ...]


@frozen
class Listed:
    """The rows of a query with a head, and what further ones wait for."""

    result: Result
    held: tuple[Held, ...]


@frozen
class Unused:
    """A row that changes nothing, because it is late or no row of its stream."""

    record: Late | Reject


Message: TypeAlias = Findings | Answers | Found | Listed | Unused | Verdict | str


class Session:
    """Takes statements and events, and returns messages about them."""

    def __init__(self, limits: Limits = INTERACTIVE, *, allow_python: bool = False) -> None:
        self.limits, self.allow_python = limits, allow_python
        self.executor: ExecutorFactory = Kernel
        self.saved: set[Path] = set()  # files that this session may write again
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.state = State()
        self.last_codes: tuple[str, ...] = ()
        self.program = self._accepted(self.state)
        self._engine: Engine | None = None
        self._shown: dict[str, frozenset[Row]] = {}
        self._reported: set[tuple[str, str]] = set()

    def set_limits(self, limits: Limits) -> None:
        self.limits, self._engine = limits, None

    def set_executor(self, executor: ExecutorFactory) -> None:
        """What evaluates from now on; everything so far is evaluated again."""
        self.executor, self._engine = executor, None

    @property
    def engine(self) -> Engine:
        """Rebuilt from the state if a failure has destroyed the old one."""
        if self._engine is None:
            engine = self._made(self.program, self.state.events)
            _let(self.state.events, engine)
            engine.step()
            engine.rejects.clear()
            engine.late.clear()
            self._engine = engine
        return self._engine

    # ------------------------------------------------------------------------ statements

    def enter(self, text: str) -> Iterator[Message]:
        """Take statements as typed: all of them up to the next query together, or none."""
        source = Source(TYPED, text)
        if text.lstrip().startswith("?") and (rule := one_time_rule(text)) is not None:
            yield self.ask_once(rule)
            return
        module, wrong = parse(source)
        if any(d.is_error for d in wrong):
            yield from self._add(text)  # to be reported in the place where it would stand
            return
        start, pending = 0, False
        for statement in module.statements:
            if not isinstance(statement, Query):
                pending = True
                continue
            if pending:
                yield from self._add(text[start : statement.span.start])
            yield self.ask(text[statement.span.start : statement.span.end])
            start, pending = statement.span.end, False
        if pending:
            yield from self._add(text[start:])

    def _add(self, text: str) -> Iterator[Message]:
        text = text.strip("\n").rstrip()
        new = evolve(self.state, typed=(*self.state.typed, text))
        program = self._accepted(new)
        source, start = program.source, len(self.state.text_of_typed)
        added = [
            s
            for s in program.module.statements
            if s.span.source is source and s.span.start >= start
        ]
        facts = (_arrival(s) for s in added if isinstance(s, Fact))
        new = evolve(new, events=(*new.events, *facts))
        yield from self._change(new, program)
        for test in added:
            if isinstance(test, Test):
                alone = _without_arrivals(program)
                yield run_test(Suite(TYPED, alone, alone, (test,)), test, Options())

    def load(self, path: Path) -> Iterator[Message]:
        """Take a program file as if it had been typed, all at once."""
        source = load.read(path)
        if isinstance(source, Diagnostic):
            raise Refused([source])
        module, wrong = parse(source)
        file, more = load.load(module, root_of(path), self.state.used)
        loaded = Loaded(path, source, file, (*wrong, *more))
        new = evolve(self.state, files=(*self.state.files, loaded))
        program = self._accepted(new)
        sources = {f.source for f in files_of(file)}
        added = [s for s in program.module.statements if s.span.source in sources]
        # In the order of their times, as a run takes them.
        facts = [_arrival(s) for s in added if isinstance(s, Fact)]
        schema = program.schema
        facts.sort(key=lambda a: a.row[0] if schema[a.pred].kind is Kind.STREAM else 0)
        yield from self._change(evolve(new, events=(*new.events, *facts)), program)
        named, _ = merged(file)
        for statement in named.statements:
            if isinstance(statement, Query):
                yield self.ask(pretty(statement))

    def load_rows(self, places: Iterable[tuple[str, Path]]) -> Iterator[Message]:
        """Let the rows of data files arrive, each with its predicate, merged by time as in a run:
        stream after stream, the rows of the second would come too late."""
        schema = self.engine.schema
        files: list[Input] = []
        for pred, path in places:
            if pred not in schema.predicates:
                raise EngineError(f"there is no predicate `{pred}` for the rows of '{path}'")
            if schema[pred].kind is Kind.DERIVED:
                raise EngineError(f"`{pred}` is defined by rules; its rows cannot be loaded")
            files += Input(pred, path).parts()
        files.sort(key=lambda file: schema[file.pred].kind is Kind.STREAM)  # tables first
        checkers = {file.pred: Checker(self.program, file.pred) for file in files}
        tables = [file for file in files if schema[file.pred].kind is Kind.TABLE]
        rows = [(file.pred, row) for file in tables for row in read(file, checkers[file.pred])]
        streams = files[len(tables) :]
        opened = [read(file, checkers[file.pred]) for file in streams]
        rows += ((streams[n].pred, row) for n, row in by_time(opened) if row is not None)
        good = [Arrive(pred, row) for pred, row in rows if not isinstance(row, Reject)]
        yield from self._happen(*good, rebuild=bool(tables))
        yield from (Unused(row) for _, row in rows if isinstance(row, Reject))
        for pred, checker in checkers.items():
            number = sum(arrival.pred == pred for arrival in good)
            yield f"{number} row{'s' * (number != 1)} of {pred}"
            yield from (f"warning: {text}" for text in checker.doubts)

    def ask(self, text: str) -> Found:
        question = prepared(self.program, text)
        query, bindings = question.query, self.engine.query(question)
        preds = {a.pred for a in atoms(query.body)} & self.engine.schema.predicates.keys()
        waiting = tuple(h for p in sorted(preds) for h in self.held(p))
        types = {v.name: settled(question.types.variable(query, v.name)) for v in variables(query)}
        return Found(query, bindings, types, waiting)

    def once(self, rule: Rule | str) -> Result:
        made = one_time_rule(rule) if isinstance(rule, str) else rule
        assert made is not None
        return answer_once(self.program, made, self.engine.relation, Kernel)

    def ask_once(self, rule: Rule) -> Listed:
        """A query with a head."""
        found = self.once(rule)
        preds = {a.pred for a in atoms(rule.body)} & self.engine.schema.predicates.keys()
        waiting = tuple(h for p in sorted(preds) for h in self.held(p))
        return Listed(found, waiting)

    def held(self, pred: str) -> tuple[Held, ...]:
        """What holds a derived predicate back, be it an output or not."""
        engine = self.engine
        if engine.schema[pred].kind is not Kind.DERIVED:
            return ()
        only = evolve(engine.program.contract, outputs=(pred,))
        program = evolve(engine.program, contract=only)
        holding = engine.executor.holding()
        return held(program, engine.progress, engine.buffers, holding, engine.clock)

    # ---------------------------------------------------------------------------- events

    def advance(self, time: int | str, stream: str | None = None) -> Iterator[Message]:
        yield from self._happen(Advance(time, stream))

    def end(self, stream: str | None = None) -> Iterator[Message]:
        yield from self._happen(End(stream))

    def set_mode(self, mode: Mode) -> Iterator[Message]:
        new = evolve(self.state, mode=mode)
        yield from self._change(new, self._accepted(new))

    def _happen(self, *events: Event, rebuild: bool = False) -> Iterator[Message]:
        new = evolve(self.state, events=(*self.state.events, *events))
        yield from self._change(new, self.program, rebuild=rebuild)

    # ---------------------------------------------------------------------------- inside

    def _accepted(self, state: State) -> Program:
        """The texts as one program."""
        source = Source(TYPED, state.text_of_typed)
        typed, wrong = parse(source)
        file, more = load.load(typed, root_of(Path(TYPED)), state.used)
        found = [*wrong, *more, *(d for loaded in state.files for d in loaded.diagnostics)]
        # What is typed adds to what was loaded, as if it stood in the same file.
        session = load.joined([*(loaded.file for loaded in state.files), file])
        module, more = merged(session)
        # A query asks once, when it is typed or loaded; it makes nothing an output.
        asking_none = tuple(s for s in module.statements if not isinstance(s, Query))
        module = evolve(module, statements=asking_none)
        program = compile_module(module, (*found, *more), mode=state.mode, root=state.root)
        if not isinstance(program, Program):
            errors = tuple(d for d in program.diagnostics if d.is_error)
            self.last_codes = tuple(dict.fromkeys(d.code for d in errors))
            raise Refused(errors)
        return self._with_python(program)

    def _with_python(self, program: Program) -> Program:
        try:
            program = allowed(program) if self.allow_python else program
            check_allowed(program)
        except PythonError as error:
            first = next(iter(program.schema.functions.values()))
            raise Refused((finding("SL0107", str(error), first.span),)) from None
        return program

    def _change(self, new: State, program: Program, *, rebuild: bool = False) -> Iterator[Message]:
        """Move to a new state: with the present engine if only events have been added, else
        with a new one that goes through all events again."""
        old = self._engine
        happened = new.events[len(self.state.events) :]
        if rebuild or old is None or not _same_shape(old.program, program):
            # Until this one has made its step, the old one stays.
            engine = self._made(program, new.events)
            _let(self.state.events, engine)
            unused = self._unused_in_files(engine)
        else:
            # If its step fails, it is rebuilt when it is needed.
            engine, self._engine, unused = old, None, []
        _let(happened, engine)
        fresh = {p: frozenset(rows) for p, rows in engine.step().items()}
        replayed = engine is not old
        self._engine, self.state, self.program = engine, new, program
        yield from self._new_findings(program)
        known = _read(program)  # of what no rule reads it is not clear yet that it has a time
        late = (row for row in engine.late if row.stream in known)
        yield from map(Unused, (*unused, *engine.rejects, *late))
        engine.rejects.clear()
        engine.late.clear()
        yield from self._answers(fresh, replayed)

    def _unused_in_files(self, engine: Engine) -> list[Late | Reject]:
        """Bad rows of the tables' own files, each reported once; what was typed has been."""
        found: list[Late | Reject] = []
        for reject in engine.rejects:
            if reject.where and (reject.where, reject.reason) not in self._reported:
                self._reported.add((reject.where, reject.reason))
                found.append(reject)
        engine.rejects.clear()
        engine.late.clear()
        return found

    def _answers(self, fresh: dict[str, frozenset[Row]], replayed: bool) -> Iterator[Message]:
        for pred, rows in sorted(fresh.items()):
            before = self._shown.get(pred, frozenset())
            if new := rows - before:
                yield Answers(pred, tuple(in_order(new)))
            if replayed and (gone := before - rows):
                yield Answers(pred, tuple(in_order(gone)), gone=True)
            self._shown[pred] = rows if replayed else before | rows

    def _new_findings(self, program: Program) -> Iterator[Message]:
        """The findings of an accepted program that have not been reported yet."""
        new = [
            d
            for d in program.diagnostics
            if (d.code, d.message) not in self._reported and d.code != _NOT_YET
        ]
        self._reported |= {(d.code, d.message) for d in new}
        if new:
            self.last_codes = tuple(dict.fromkeys(d.code for d in new))
            yield Findings(tuple(new))

    def _made(self, program: Program, events: Sequence[Event]) -> Engine:
        """A new engine with all rows of its tables."""
        schema = program.schema
        tables: dict[str, list[Any]] = {}
        for source in declared_inputs(program):
            if schema[source.pred].kind is Kind.TABLE:
                tables[source.pred] = list(read(source, Checker(program, source.pred)))
        for event in events:
            if isinstance(event, Arrive) and schema[event.pred].kind is Kind.TABLE:
                tables.setdefault(event.pred, []).append(event.row)
        made = _without_arrivals(program)
        return Engine(made, self.executor, tables, self.limits, checked=True)


def _let(events: Sequence[Event], engine: Engine) -> None:
    for event in events:
        match event:
            case Arrive(pred, row):
                if pred in engine.buffers:
                    engine.take(pred, [row])
            case Advance(time, stream):
                engine.advance(time, stream)
            case End(stream):
                engine.end(stream)


def _arrival(fact: Fact) -> Arrive:
    return Arrive(fact.atom.pred, fact.row)


def _same_shape(old: Program, new: Program) -> bool:
    """Whether an engine of the old program will do for the new one."""
    before, now = old.schema, new.schema
    return (
        before.rules == now.rules
        and before.outputs == now.outputs
        and before.predicates == now.predicates
        and all(before[p].declaration == now[p].declaration for p in now.predicates)
        and old.types.columns == new.types.columns
        and _table_facts(old) == _table_facts(new)
        and old.mode is new.mode
    )


def _table_facts(program: Program) -> tuple[Fact, ...]:
    schema = program.schema
    return tuple(f for f in schema.facts if schema[f.atom.pred].kind is not Kind.STREAM)


def _read(program: Program) -> set[str]:
    """The predicates that are declared, or read by some rule."""
    schema = program.schema
    declared = {n for n, p in schema.predicates.items() if p.declaration}
    return declared | {a.pred for rule in schema.rules for a in atoms(rule.body)}


def _without_arrivals(program: Program) -> Program:
    """What is typed as a fact of a stream arrives when it is typed, not before everything."""
    return evolve(program, schema=evolve(program.schema, facts=_table_facts(program)))


# ------------------------------------------------------------------------------ completeness


def is_complete(text: str) -> bool:
    """Whether an input can be taken: it ends with `.`, or with the `}` of a test; and also when
    no further line could mend it."""
    scanned = scan(Source(TYPED, text))
    if not scanned.kinds or text.lstrip().startswith("."):
        return not any(d.code == "SL0102" for _, d in scanned.problems)
    if any(d.message == "this comment never ends" for _, d in scanned.problems):
        return False
    if any(d.code == "SL0102" for _, d in scanned.problems):
        return True
    start, end = scanned.statements[-1]
    is_test = scanned.kinds[start] == "t" and "{" in scanned.kinds[start:end]
    return scanned.kinds[end - 1] == ("}" if is_test else ".")
