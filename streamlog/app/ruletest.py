"""The tests of a program: found, run as written and in other orders, judged. Nothing is printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from attrs import evolve, field, frozen

from streamlog.analysis.refusals import STREAM_ONLY
from streamlog.app.inputs import compile_target
from streamlog.app.shuffle import Disorder, shuffled
from streamlog.app.test_script import (
    Answers,
    Check,
    Cut,
    Event,
    Move,
    Played,
    Push,
    Script,
    StepError,
    fact_text,
    rows_of,
    script,
)
from streamlog.compiler import Compilation, Mode, Parsed, Program
from streamlog.diagnostics import Diagnostic, Span
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import ExecutorFactory, Limits, Row
from streamlog.runtime.ingest import Reject
from streamlog.runtime.python_functions import PythonError, allowed
from streamlog.runtime.query import in_order
from streamlog.syntax.ast import (
    Atom,
    Expect,
    ExpectFrom,
    ExpectNone,
    Rejected,
    Test,
)
from streamlog.syntax.pretty import pretty

Expectation = Expect | ExpectNone | ExpectFrom


@frozen
class Options:
    """How tests are run."""

    shuffle: bool = True
    seed: int = 0
    executor: ExecutorFactory | None = None  # None: the kernel
    limits: Limits | None = None
    allow_python: bool = False


@frozen
class Suite:
    """The tests of one file. `program` is what they run; without it they cannot, but for those
    that say how it is refused: over stored data it may have a meaning."""

    path: str
    stream: Compilation  # the program as a stream sees it: what `rejected` speaks of
    program: Program | None
    tests: tuple[Test, ...]
    stored: Program | None = None

    @property
    def used(self) -> tuple[str, ...]:
        """The other files with tests that the program is made of."""
        if not isinstance(self.stream, Parsed):
            return ()
        statements = self.stream.module.statements
        tested = {s.span.source.path for s in statements if isinstance(s, Test)}
        return tuple(f.path for f in self.stream.files[1:] if f.path in tested)

    def program_of(self, test: Test) -> Program | None:
        return self.program or (self.stored if refusals_of(test) else None)

    @property
    def runnable(self) -> tuple[Test, ...]:
        """All tests; of a program that is refused, those that say so."""
        return tuple(t for t in self.tests if self.program or refusals_of(t))

    @property
    def refusal(self) -> tuple[Diagnostic, ...]:
        """Why tests cannot run, when some cannot, or when there are none to say it."""
        if self.program or (self.tests and len(self.runnable) == len(self.tests)):
            return ()
        return tuple(d for d in self.stream.diagnostics if d.is_error)


@frozen
class Problem:
    """What a test found wrong, and where. Rows are texts in the syntax of the language."""

    span: Span
    message: str
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    order: tuple[str, ...] = ()  # the steps of the shortest order that fails
    step: Expectation | None = None  # the expectation that an update would rewrite,
    released: Mapping[str, Sequence[Row]] = field(factory=dict, repr=False)  # and to what


@frozen
class Verdict:
    suite: Suite = field(repr=False)
    test: Test
    problems: tuple[Problem, ...]
    seconds: float
    orders: int = 0  # how many other orders gave the same answers

    @property
    def passed(self) -> bool:
        return not self.problems


@frozen
class Results:
    """What became of the tests of one file."""

    suite: Suite
    verdicts: tuple[Verdict, ...]
    refusal: tuple[Diagnostic, ...]  # why others of them could not run

    @property
    def empty(self) -> bool:
        return not self.verdicts and not self.refusal

    @property
    def passed(self) -> bool:
        return not self.refusal and all(v.passed for v in self.verdicts)


def run_suite(
    suite: Suite, options: Options, chosen: Callable[[str], bool] = lambda name: True
) -> Results:
    """Run the tests whose `path::name` is chosen."""
    tests = [t for t in suite.tests if chosen(f"{suite.path}::{t.name}")]
    verdicts = tuple(run_test(suite, t, options) for t in tests if t in suite.runnable)
    wanted = len(tests) > len(verdicts) or (not suite.tests and chosen(suite.path))
    return Results(suite, verdicts, suite.refusal if wanted else ())


def refusals_of(test: Test) -> tuple[Rejected, ...]:
    return tuple(s for s in test.steps if isinstance(s, Rejected))


def suite_of(path: str, *, batch: bool = False) -> Suite:
    """The tests that a file itself contains, not those of files it uses; `batch`: a program that
    is refused in a stream is run over stored data."""
    stream = compile_target(path, mode=Mode.STREAM)
    statements = stream.module.statements if isinstance(stream, Parsed) else ()
    own = (s for s in statements if s.span.source is stream.source)
    tests = tuple(s for s in own if isinstance(s, Test))
    if isinstance(stream, Program):
        return Suite(path, stream, stream, tests)
    stored: Program | None = None
    if {d.code for d in stream.diagnostics if d.is_error} <= STREAM_ONLY:
        compiled = compile_target(path, mode=Mode.BATCH)
        stored = compiled if isinstance(compiled, Program) else None
    return Suite(path, stream, stored if batch else None, tests, stored)


def run_test(suite: Suite, test: Test, options: Options) -> Verdict:
    """Run a test as written and, if it passes, in other orders."""
    start = time.perf_counter()
    orders = 0
    refusals = refusals_of(test)
    problems = _refused(suite.stream, refusals)
    steps = [s for s in test.steps if not isinstance(s, Rejected)]
    if not problems and (steps or not refusals):
        program = suite.program_of(test)
        if program is not None:
            try:
                program = allowed(program) if options.allow_python else program
                problems, orders = _played(program, test, options)
            except PythonError as error:
                problems = [Problem(heading(test), str(error))]
        else:
            what = "this step cannot be run: the program is refused, even for stored data"
            problems = [Problem(steps[0].span, what)]
    return Verdict(suite, test, tuple(problems), time.perf_counter() - start, orders)


def _refused(program: Compilation, steps: Sequence[Rejected]) -> list[Problem]:
    errors = {d.code: d for d in program.diagnostics if d.is_error}
    found = " and ".join(f"{code} ({d.message})" for code, d in sorted(errors.items()))
    return [
        Problem(
            step.span,
            f"the program is refused, but with {found}" if errors else "the program is accepted",
        )
        for step in steps
        if step.code not in errors
    ]


def _played(program: Program, test: Test, options: Options) -> tuple[list[Problem], int]:
    try:
        ready = evolve(script(program, test), executor=options.executor, limits=options.limits)
    except StepError as error:
        return [_failed(test, error)], 0
    run = _Run(ready, test)
    problems = run.as_written()
    if problems or not options.shuffle:
        return problems, 0
    outcome = shuffled(ready, run.seen, f"{options.seed}/{test.name}")
    if isinstance(outcome, int):
        return [], outcome
    return [_disorder(program, test, outcome, options.seed)], 0


def _failed(test: Test, error: StepError) -> Problem:
    return Problem(error.step.span if error.step else heading(test), error.reason)


def heading(test: Test) -> Span:
    """The first line of a test, to point at it as a whole."""
    text = test.span.text.split("{")[0].rstrip()
    return Span(test.span.source, test.span.start, test.span.start + len(text))


# -------------------------------------------------------------------------------- as written


class _Run:
    """The run of a test in the order of its text."""

    def __init__(self, ready: Script, test: Test) -> None:
        self.ready, self.program, self.test = ready, ready.program, test
        self.seen: list[Answers] = []  # at each expectation, and at the end
        self.problems: list[Problem] = []
        self._late: list[str] = []  # rows that the test does not expect to be

    def as_written(self) -> list[Problem]:
        try:
            for played in self.ready.play(self.ready.as_written()):
                match played.event:
                    case Push() as push:
                        self._pushed(push, played)
                    case Check(step):
                        self.seen.append(self.ready.answers(played.engine))
                        self._judge(step, played.engine)
                    case Move() | Cut():
                        pass
            self.seen.append(self.ready.answers(played.engine))
        except StepError as error:
            self.problems.append(_failed(self.test, error))
        return self.problems

    # -------------------------------------------------------------------- arrivals

    def _pushed(self, push: Push, played: Played) -> None:
        """Was the row taken, late or rejected, and is it what the test says?"""
        if played.fate == push.fate:
            return
        message, notes = f"this row is not {push.fate}", list[str]()
        if played.late:
            reason, row = played.late[0].reason, fact_text(self.program, push.pred, push.row)
            message = f"this row is late: {reason}"
            self._late.append(f"{row}: {reason}")
            if push.fate == "accepted":
                notes.append(f"if that is intended, write `arrive late {row}.`")
        elif played.rejects:
            message = f"this row is rejected: {played.rejects[0].reason}"
        self.problems.append(Problem(push.step.span, message, notes=tuple(notes)))

    # ---------------------------------------------------------------- expectations

    def _judge(self, step: Expectation, engine: Engine) -> None:
        try:
            expected = self._expected(step)
        except StepError as error:
            if not isinstance(step, ExpectFrom):
                raise
            # A file that is not there yet can be written.
            released = {step.pred.name: engine.facts(step.pred.name)}
            self.problems.append(Problem(step.span, error.reason, step=step, released=released))
            return
        for pred in expected:
            if self.program.safety.is_open(pred):
                reason = (
                    f"`{pred}` has infinitely many answers: expect those of a rule that asks it"
                )
                raise StepError(step, reason)
        released = {pred: engine.facts(pred) for pred in expected}
        missing = [(p, r) for p in expected for r in in_order(expected[p] - set(released[p]))]
        unexpected = [(p, r) for p in expected for r in released[p] if r not in expected[p]]
        if missing or unexpected:
            self.problems.append(
                Problem(
                    step.span,
                    "the answers so far are not these",
                    missing=self._texts(missing),
                    unexpected=self._texts(unexpected),
                    late=tuple(self._late),
                    notes=_held(engine, missing),
                    step=step,
                    released=released,
                )
            )

    def _texts(self, rows: Sequence[tuple[str, Row]]) -> tuple[str, ...]:
        return tuple(fact_text(self.program, pred, row) for pred, row in rows)

    def _expected(self, step: Expectation) -> dict[str, set[Row]]:
        match step:
            case ExpectNone(pred):
                return {pred.name: set()}
            case ExpectFrom(pred, path):
                checker = self.ready.checkers[pred.name]
                return {pred.name: set(rows_of(self.program, checker, path, step))}
            case Expect(atoms):
                rows: dict[str, set[Row]] = {}
                for atom in atoms:
                    rows.setdefault(atom.pred, set()).add(self._row(step, atom))
                return rows

    def _row(self, step: Expect, atom: Atom) -> Row:
        row = self.ready.checkers[atom.pred].fact(atom.constants)
        if isinstance(row, Reject):
            raise StepError(step, f"{pretty(atom)} cannot be an answer: {row.reason}")
        return row


def _held(engine: Engine, missing: Sequence[tuple[str, Row]]) -> tuple[str, ...]:
    """What the missing answers may be waiting for: those that are not decided yet."""
    return tuple(
        h.message
        for h in engine.status()
        if any(pred == h.output and int(row[0]) >= h.complete for pred, row in missing)
    )


# ------------------------------------------------------------------------------- other orders


def _disorder(program: Program, test: Test, found: Disorder, seed: int) -> Problem:
    def texts(rows: Sequence[tuple[str, Row]]) -> tuple[str, ...]:
        return tuple(fact_text(program, pred, row) for pred, row in rows)

    at = found.check.step.span if found.check else heading(test)
    return Problem(
        at,
        f"in another order of arrival {found.error or 'the answers differ'} (--seed {seed})",
        missing=texts(found.missing),
        unexpected=texts(found.unexpected),
        order=tuple(_order_text(program, event) for event in found.order),
    )


def _order_text(program: Program, event: Event) -> str:
    match event:
        case Push(pred, row):
            return f"{fact_text(program, pred, row)}."
        case Move(step):
            return pretty(step)
        case _:
            return "% evaluated here"
