"""Rows in, answers out: an engine drives an executor by the progress of its streams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any

from streamlog.analysis.builtins import TICK
from streamlog.compiler import Program
from streamlog.diagnostics import did_you_mean
from streamlog.runtime.asking import Asking, Frontier
from streamlog.runtime.executor import (
    BEGIN,
    END,
    Executor,
    ExecutorFactory,
    Limits,
    Measured,
    Resumable,
    Row,
    Saved,
)
from streamlog.runtime.history import History
from streamlog.runtime.ingest import Check, Checker, RawRow, Reject
from streamlog.runtime.missing_inputs import check_inputs
from streamlog.runtime.progress import Clock, Progress
from streamlog.runtime.python_functions import check_allowed
from streamlog.runtime.query import Binding, QueryError, Question, answer, in_order, prepared
from streamlog.runtime.report import Counts, Late, Report, Skipped, too_far_ahead
from streamlog.runtime.several_timelines import Judge, buffer_of, leaving
from streamlog.runtime.stamps import Stamps
from streamlog.runtime.status import Held, held
from streamlog.runtime.values import to_time
from streamlog.runtime.wall_clock import WallClock
from streamlog.syntax.ast import FIRST_INSTANT, LAST_INSTANT, LOGICAL_TIME, Type

_NO_TABLES: Mapping[str, Iterable[RawRow]] = MappingProxyType({})


class EngineError(Exception):
    """An engine was asked for something that it cannot do."""


class Engine:
    """A program that runs in this process.

    `push` takes rows and only buffers them; `step` evaluates what may be decided and returns the
    new answers. Whether a row is late, or doubted, depends on the order of arrival alone, not on
    where the steps are.
    """

    def __init__(
        self,
        program: Program,
        executor: ExecutorFactory,
        tables: Mapping[str, Iterable[RawRow]] = _NO_TABLES,
        limits: Limits | None = None,
        *,
        remember: bool = True,
        checked: bool = False,
        named: bool = False,
        clock: WallClock | None = None,
    ) -> None:
        """`remember`: keep what was received and released, for `facts` and queries over all
        of it. A long run does without. `checked`: the rows of tables have been, as in `take`.
        `named`: `end` refuses to end all streams if one that rules read was never mentioned.
        With a `clock`, rows are stamped as they are pushed, and so have no time of arrival yet;
        without one they have it, as those of a log do."""
        if not program.ok:
            raise EngineError("the program has errors")
        check_allowed(program)
        self.program, self.schema = program, program.schema
        self.outputs = program.contract.outputs
        self.remembers = remember
        self.late: list[Late] = []
        self.rejects: list[Reject] = []
        self.errors: list[Skipped] = []
        self._error_rules = {p: rule.span.place for p, rule in (program.errors or {}).items()}
        self.progress = Progress.of(program)
        self.buffers = {s: buffer_of(self.progress.timelines(s)) for s in self.schema.streams}
        live = clock is not None
        self.checkers = {n: Checker(program, n, arriving=live) for n in self.schema.inputs}
        self._stamps = None if clock is None else Stamps(program, self.progress, clock.now)
        self.counts = Counts.of(self.checkers, self.outputs, self._error_rules.values())
        self._unnamed = set(self.schema.streams) if named else set()
        self._asking = Asking(self)
        self._broken: str | None = None
        # Kept in the order they came; `facts` sorts.
        self._memory: dict[str, list[Row]] = {
            name: [] for name, p in self.schema.predicates.items() if p.view is None
        }
        self._history = History(program)
        self.tables = self._load_tables(tables, checked)
        self.executor: Executor = executor(program.closed, self.tables, limits or Limits())
        self._push_facts()

    # ------------------------------------------------------------------------- rows in

    def push(self, stream: str, rows: Iterable[RawRow | Reject]) -> None:
        """Take rows in the order in which they came. A `Reject` is one that its source refused."""
        checker = self.checkers[self._stream(stream)]
        if checker.has_list:
            self.take(stream, chain.from_iterable(map(checker.rows, rows)))
        else:
            self._push(stream, rows, self._stamping(stream, checker.row), trusted=False)

    def take(self, stream: str, rows: Iterable[Row | Reject]) -> None:
        """As `push`, of rows that their source has checked: what its numbers mean is known."""
        check = self.checkers[self._stream(stream)].fact
        self._push(stream, rows, self._stamping(stream, check), trusted=False)

    def _stamping(self, stream: str, check: Check) -> Check:
        return check if self._stamps is None else self._stamps.stamping(stream, check)

    def _push(
        self, stream: str, rows: Iterable[RawRow | Reject], check: Check, *, trusted: bool
    ) -> None:
        if stream in self.schema.views:
            self._push_on_several(stream, rows, check, trusted=trusted)
            return
        clock = self.progress[stream]
        append = self.buffers[stream].fresh.append
        progress, latest, slack = clock.progress, clock.seen, clock.slack
        horizon = None if trusted else clock.horizon
        known = BEGIN if horizon is None else self.progress.known(stream)
        count = 0
        try:
            for raw in rows:
                count += 1
                row: Any = check(raw)
                if row.__class__ is Reject:
                    self._reject(row)
                    continue
                time = row[0]
                if time < progress:
                    self.counts.late[stream] += 1
                    self.late.append(Late(stream, row, progress, self.clock(stream), stream))
                    continue
                if time > latest:
                    if horizon is not None:
                        if BEGIN < known < time - horizon:
                            self._reject(self._doubted(stream, row, clock, known))
                            continue
                        known = max(known, time)
                    latest = time
                    if time - slack > progress:
                        progress = time - slack
                append(row)
        finally:
            self.counts.rows[stream] += count
            self.progress.saw(clock, latest, progress)

    def _push_on_several(
        self, stream: str, rows: Iterable[RawRow | Reject], check: Check, *, trusted: bool
    ) -> None:
        """Of a stream with several timelines."""
        append, judge = self.buffers[stream].fresh.append, Judge(self.progress, stream, trusted)
        count = 0
        try:
            for raw in rows:
                count += 1
                row: Any = check(raw)
                if row.__class__ is Reject:
                    self._reject(row)
                elif late := judge.late(row):
                    self.counts.late[stream] += 1
                    clock, passed = late
                    name, column = clock.stream, clock.column
                    self.late.append(Late(stream, row, passed, self.clock(name), name, column))
                elif doubted := judge.doubted(row):
                    self._reject(self._doubted(stream, row, *doubted))
                else:
                    judge.take(row)
                    append(row)
        finally:
            self.counts.rows[stream] += count
            judge.done()

    def _reject(self, reject: Reject) -> None:
        self.counts.rejected[reject.stream] += 1
        self.rejects.append(reject)

    def _doubted(self, stream: str, row: Row, clock: Clock, known: int) -> Reject:
        horizon = self.schema[clock.stream].option("horizon")
        assert horizon is not None
        type_ = self.clock(clock.stream)
        return Reject(stream, row, too_far_ahead(row, clock, type_, known, horizon))

    def advance(self, time: int | str, stream: str | None = None) -> None:
        """Nothing earlier than `time` will come any more, in one stream, on one timeline
        (`report.sys`) or in all streams."""
        at = time if type(time) is int else to_time(time)
        if not FIRST_INSTANT <= at <= LAST_INSTANT:
            raise EngineError(f"{time} is not a valid timestamp: {LOGICAL_TIME}")
        if stream is not None:
            stream = self._timeline(stream)
        self.progress.advance(at, stream)

    def tick(self, stream: str, reading: int | str) -> None:
        """The wall clock has had this reading, and all rows of the stream that had come by then
        have been pushed. It moves a stream that is declared with `arrives within`."""
        at = reading if type(reading) is int else to_time(reading)
        self.progress.tick(at, self._stream(stream))

    def ask(self, stream: str, frontier: Frontier) -> None:
        """From now on, `step` asks the source of a stream, or of one of its timelines, before which
        time nothing will come any more, whenever this stream alone holds an answer back."""
        self._asking.frontiers[self._timeline(stream)] = frontier

    def end(self, stream: str | None = None) -> None:
        """Nothing will come any more, in one stream or in all."""
        if stream is None:
            given = set(self.schema.inputs) - self._unnamed
            check_inputs(self.program, given, 'push them, or say engine.end("{name}") before')
        self.progress.end(stream if stream is None else self._stream(stream))

    # --------------------------------------------------------------------- answers out

    def step(self) -> dict[str, list[Row]]:
        """Evaluate what may be decided now. Returns the new answers of each output, sorted."""
        if self._broken:
            raise EngineError(f"an earlier step was cut short: {self._broken}")
        released = self._step()
        if self._asking.moves_time():
            for name, rows in self._step().items():
                released[name] = in_order((*released[name], *rows))
        return released

    def feed(self, arrived: Mapping[str, list[Row]], until: int) -> dict[str, list[Row]]:
        """Evaluate rows that have come by another way, each once and none of them late: all up to
        before a time, of all streams."""
        if until < END:
            self.progress.advance(until)
        else:
            self.progress.end()
        return self._evaluated(arrived)

    def _step(self) -> dict[str, list[Row]]:
        return self._evaluated(leaving(self.buffers, self.progress, self.schema.views))

    def _evaluated(self, arrived: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
        try:
            released = self.executor.step(arrived, self.progress.values())
        except BaseException as error:
            # The executor may have done half of it; the rows are still here.
            self._broken = str(error) or type(error).__name__
            for buffer in self.buffers.values():
                buffer.put_back()
            raise
        self.counts.steps += 1
        if not self.remembers:
            self._history.take(arrived, self.progress)
        else:
            for made in (arrived, released):
                for name, rows in made.items():
                    if name in self._memory:
                        self._memory[name] += rows
        for name in self.outputs:
            self.counts.answers[name] += len(released.get(name, ()))
        for name, rule in self._error_rules.items():
            rows = in_order(released.get(name, ()))
            self.counts.skipped[rule] += len(rows)
            self.errors += (Skipped(rule, str(why), str(values)) for *_, why, values in rows)
        self._measure()
        return {name: in_order(released.get(name, ())) for name in self.outputs}

    def _measure(self) -> None:
        executor = self.executor
        held = (
            executor.size()
            if isinstance(executor, Measured)
            else sum(map(len, executor.holding().values()))
        )
        held += sum(map(len, self.buffers.values()))
        self.counts.held(held + sum(map(len, self._history.rows.values())))

    def facts(self, pred: str) -> list[Row]:
        """All that was received of an input, or released so far of a derived predicate, sorted."""
        name = self._predicate(pred)
        if self.program.safety.is_open(name):
            raise QueryError(f"`{name}` has infinitely many answers; ask about particular values")
        if name in self.tables:
            return in_order(self.tables[name])
        if (view := self.schema[name].view) is not None:
            return in_order(map(view.of_row, self.facts(view.of)))
        if not self.remembers:
            raise QueryError(f"this engine does not remember the facts of `{name}`")
        held = self.buffers[name].rows() if name in self.buffers else []
        return in_order(dict.fromkeys(self._memory[name] + held))

    def query(self, query: str | Question) -> list[Binding]:
        """Answer a one-time query from what has been received and released."""
        question = query if isinstance(query, Question) else prepared(self.program, query)
        if self.remembers:
            return answer(self.program, question, self.relation)
        self._history.require(self.program, question.query, self.progress)
        return answer(self.program, question, self._kept)

    def _kept(self, pred: str) -> Sequence[Row]:
        if pred in self._history.rows:
            return self._history.rows[pred] + self.buffers[pred].rows()
        return self.tables.get(pred, ())

    def relation(self, pred: str) -> list[Row]:
        """The facts of a predicate, be it `tick`."""
        if pred == TICK:
            return sorted({(row[0],) for s in self.buffers for row in self.facts(s)})
        return self.facts(pred)

    def status(self) -> tuple[Held, ...]:
        """What holds each output back, for those that something does."""
        holding = self.executor.holding()
        return held(
            self.program, self.progress, self.buffers, holding, self.clock, self._asking.asked
        )

    @property
    def report(self) -> Report:
        return self.counts.report({name: b.duplicates for name, b in self.buffers.items()})

    @property
    def doubts(self) -> list[str]:
        """What to warn of in the rows so far, once for each column of an input."""
        return [text for checker in self.checkers.values() for text in checker.doubts]

    def clock(self, pred: str) -> Type | None:
        """The type of a predicate's timestamps; where nothing says, that of the rows so far."""
        declared = self.program.clocks.get(pred)
        if declared is None and any(c.saw_time for c in self.checkers.values()):
            return Type.TIME
        return declared

    # ---------------------------------------------------------------------- checkpoints

    def save(self) -> Saved:
        """What a new engine of the same program needs to go on from here."""
        if self._broken:
            raise EngineError(f"an earlier step was cut short: {self._broken}")
        figures = {
            "clocks": {
                name: [c.progress, c.seen, c.reached, c.ended]
                for name, c in self.progress.clocks.items()
            },
            "duplicates": {name: b.duplicates for name, b in self.buffers.items()},
            "calendar": [name for name, c in self.checkers.items() if c.saw_time],
            **self.counts.saved(),
            "stamp": None if self._stamps is None else self._stamps.last,
            "remembers": self.remembers,
        }
        tables: dict[str, Sequence[Row]] = {}
        for name, buffer in self.buffers.items():
            tables[f"buffer {name}"] = buffer.rows()
            tables[f"edge {name}"] = in_order(buffer.edge())
        for name, rows in self._memory.items():
            tables[f"memory {name}"] = rows
        for name, rows in self._history.rows.items():
            tables[f"history {name}"] = rows
        for name, rows in self._resumable.save().items():
            tables[f"executor {name}"] = rows
        return Saved(figures, tables)

    def load(self, saved: Saved) -> None:
        """Go on from what `save` returned. For an engine that has not run yet."""
        figures, tables = saved.figures, saved.tables
        if figures["remembers"] != self.remembers:
            raise EngineError(f"the engine was saved with remember={figures['remembers']}")
        for name, (progress, seen, reached, ended) in figures["clocks"].items():
            clock = self.progress[name]
            clock.progress, clock.seen, clock.reached, clock.ended = progress, seen, reached, ended
        for name, buffer in self.buffers.items():
            duplicates = figures["duplicates"][name]
            buffer.restore(tables[f"buffer {name}"], tables[f"edge {name}"], duplicates)
        for name in figures["calendar"]:
            self.checkers[name].saw_time = True
        if self._stamps is not None and figures["stamp"] is not None:
            self._stamps.last = figures["stamp"]
        self.counts = Counts.restored(figures)
        self._memory = {name: list(tables[f"memory {name}"]) for name in self._memory}
        for name in self._history.rows:
            self._history.rows[name] = list(tables[f"history {name}"])
        start = "executor "
        self._resumable.load(
            {k.removeprefix(start): list(v) for k, v in tables.items() if k.startswith(start)}
        )
        self.late, self.rejects, self.errors = [], [], []
        self._unnamed.clear()

    @property
    def _resumable(self) -> Resumable:
        if not isinstance(self.executor, Resumable):
            raise EngineError(
                f"{type(self.executor).__name__} cannot save its state; "
                "on Spark, `streamlog.spark.start` has checkpoints"
            )
        return self.executor

    # -------------------------------------------------------------------------- inside

    def _timeline(self, name: str) -> str:
        timeline = self.schema.timeline(name) or name
        self._stream(self.schema.stream_of(timeline))
        return timeline

    def _stream(self, name: str) -> str:
        if name in self.buffers:
            self._unnamed.discard(name)
            return name
        predicate = self.schema.predicates.get(self._predicate(name))
        assert predicate is not None
        raise EngineError(f"`{name}` is not a stream but a {predicate.kind.value} predicate")

    def _predicate(self, name: str) -> str:
        if name in self.schema.predicates:
            return name
        near = did_you_mean(name, self.schema.predicates)
        hint = f"; did you mean `{near}`?" if near else ""
        raise EngineError(f"there is no predicate `{name}` in this program{hint}")

    def _load_tables(
        self, given: Mapping[str, Iterable[RawRow]], checked: bool
    ) -> dict[str, list[Row]]:
        """The program's own facts, and the rows given; each row once."""
        names = [n for n in self.schema.inputs if n not in self.buffers]
        for name in given:
            if self._predicate(name) not in names:
                raise EngineError(f"`{name}` is not a table")
        return {name: list(self._table(name, given.get(name, ()), checked)) for name in names}

    def _table(self, name: str, given: Iterable[RawRow], checked: bool) -> dict[Row, None]:
        rows: dict[Row, None] = {}
        checker = self.checkers[name]
        rows_of = chain.from_iterable(map(checker.rows, given))
        read = map(checker.fact, given) if checked else rows_of
        for row in (*map(checker.fact, self.schema.rows_of(name)), *read):
            self.counts.rows[name] += 1
            if isinstance(row, Reject):
                self._reject(row)
            else:
                rows[row] = None
        return rows

    def _push_facts(self) -> None:
        """The program's facts come first, in the order of their times over all streams."""
        facts = [(row, stream) for stream in self.buffers for row in self.schema.rows_of(stream)]
        facts.sort(key=lambda fact: fact[0][0])
        checks = {stream: Checker(self.program, stream).fact for _, stream in facts}
        for row, stream in facts:
            self._push(stream, (row,), checks[stream], trusted=True)
