"""`streamlog run` on Spark."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import TypeAlias

import click

from streamlog.app.answers import Columns
from streamlog.app.closing import strategies_table
from streamlog.app.formats import count
from streamlog.app.interrupts import asked_to_stop, interruptible
from streamlog.app.java import java_problem
from streamlog.app.places import pairs
from streamlog.app.run_base import ERRORS, LATE, MOST_PRINTED, REJECTS, Options, Run
from streamlog.compiler import Program
from streamlog.diagnostics import did_you_mean
from streamlog.plan.parts import Strategy
from streamlog.plan.strategies import Choice
from streamlog.runtime.addresses import is_address
from streamlog.runtime.arrow_values import with_none
from streamlog.runtime.columns import ColumnTypeError, ColumnTypes, column_types
from streamlog.runtime.data_files import STANDARD, STDIN
from streamlog.runtime.executor import LimitError, Row
from streamlog.runtime.functions import EvaluationError
from streamlog.runtime.ingest import REPORT, SKIPPED, surface
from streamlog.runtime.query import in_order
from streamlog.runtime.replacing import Replacing
from streamlog.runtime.sources import Input
from streamlog.spark import Answers as SparkAnswers
from streamlog.spark import DataFrame, wire
from streamlog.spark.batch import Metrics, evaluate
from streamlog.spark.delivery import Relations, Sink
from streamlog.spark.failures import explained
from streamlog.spark.goal_filter import selected
from streamlog.spark.inputs import REPORT_TYPES, Count, InputError, Inputs, counted
from streamlog.spark.records import ColumnsError
from streamlog.spark.run_status import Status
from streamlog.spark.session import (
    Jobs,
    SessionError,
    is_local,
    is_submitted,
    session,
    with_memory,
)
from streamlog.spark.sinks import Types, check_empty, write
from streamlog.spark.skipped import SKIPPED_TYPES
from streamlog.spark.sources import read, read_stream
from streamlog.spark.start import Running, started
from streamlog.spark.tables import CONNECTORS, is_table
from streamlog.spark.topics import CONNECTOR, SCHEME

FIGURES = ("rows", "late", "rejected")

# The rows that it rests on, how it went, the numbers of answers, and those to be printed.
# Then the numbers of solutions skipped, by rule, and the first of them.
_Answered: TypeAlias = tuple[
    Inputs, Metrics, dict[str, int], dict[str, list[Row]], dict[str, int], list[Row]
]


class SparkRun(Run):
    several_files = False
    misuse = (*Run.misuse, ColumnTypeError, ColumnsError, InputError, SessionError)
    types: ColumnTypes

    def __init__(self, program: Program, options: Options) -> None:
        if problem := java_problem():
            raise click.UsageError(problem)
        if not options.in_batches and (options.files_per_batch or options.kind):
            option = "--files-per-batch" if options.files_per_batch else "--kind"
            raise click.UsageError(f"{option} is for --follow and --checkpoint")
        super().__init__(program, options)
        standard = [name for name, place in self.inputs if place in STANDARD]
        if standard and options.in_batches:
            option = "--follow" if options.follow else "--checkpoint"
            way_out = " it with --engine local" if options.follow else " from a file"
            raise click.UsageError(
                f"{option} on Spark cannot read `{standard[0]}` from standard input; read{way_out}"
            )
        self.partitions = self._partitions()
        self._doubts: dict[str, str] = {}
        self._until_the_end = ExitStack()
        self.strategy = None if options.strategy is None else Strategy(options.strategy)

    @property
    def arriving(self) -> bool:
        return self.options.in_batches

    def _partitions(self) -> dict[str, list[str]]:
        """The columns by which outputs are partitioned."""
        found: dict[str, list[str]] = {}
        for name, column in pairs(self.options.partition, "--partition", self.outputs):
            known = self.schema.column_names[name]
            place = self.paths.get(name)
            if place is None or Path(place).suffix or place.startswith(SCHEME) or is_table(place):
                raise click.UsageError(
                    f"--partition {name}: it needs --output {name}=FOLDER, a folder of Parquet "
                    "files, whose name has no extension"
                )
            if column not in known:
                near = did_you_mean(column, known)
                hint = f"did you mean '{near}'?" if near else f"it has {', '.join(known)}"
                raise click.UsageError(f"--partition: `{name}` has no column '{column}'; {hint}")
            found.setdefault(name, []).append(column)
            if {*known} <= {*found[name]}:
                raise click.UsageError(f"--partition: `{name}` needs a column that is not in it")
        return found

    def check_output(self, place: str) -> None:
        if is_table(place):
            return
        partitioned = {text.partition("=")[0] for text in self.options.partition}
        if any(f"{name}={place}" in self.options.outputs for name in partitioned):
            return
        # Without such a name, the folder of micro-batches is one of Parquet.
        if not place.startswith(SCHEME) and (Path(place).suffix or not self.options.in_batches):
            super().check_output(place)

    def evaluate(self) -> None:
        self._start_spark()
        with interruptible(), self._until_the_end:
            if self.options.in_batches:
                self._in_batches()
            else:
                self._all_at_once()

    def _start_spark(self) -> None:
        settings: dict[str, str] = {}
        for text in self.options.conf:
            key, equals, value = text.partition("=")
            if not equals:
                raise click.UsageError(f"--conf takes KEY=VALUE, not '{text}'")
            settings[key] = value
        packages = list(self.options.packages)
        places = (*(place for _, place in self.inputs), *self.paths.values())
        if any(place.startswith(SCHEME) for place in places) and not is_submitted():
            asked = (*packages, *settings.values())  # perhaps as files, in spark.jars
            if not any("spark-sql-kafka" in text for text in asked):
                packages.append(CONNECTOR)
        for connector in CONNECTORS:
            if any(place.startswith(connector.prefix) for place in places) and not is_submitted():
                settings = {**connector.settings, **settings}
                asked = (*packages, *settings.values())
                if not any(connector.artifact in text for text in asked):
                    packages.append(connector.package)
        with self.live("starting Spark"):
            given = with_memory(settings, self.options.limits.memory)
            self.spark = session(self.options.master, given, packages)

    def _read(self) -> Inputs:
        """In batches, the streams as folders that are being filled."""
        options, header = self.options, not self.options.no_header
        new_rows = partial(read_stream, kind=options.kind, most_files=options.files_per_batch)
        records = {}
        for name, place in self.inputs:
            arriving = options.in_batches and name in self.schema.streams
            source = new_rows if arriving else read
            if place in STANDARD:
                place, source = self._copied(place), partial(read, called=STDIN)
            records[name] = source(self.spark, place, name, self.program, header=header)
        given = Inputs.of(self.spark, self.program, records, self.options.empty)
        self.types = column_types(self.program.closed, given.types)
        return given

    def files_read(self) -> list[Input]:
        given = [(n, p) for n, p in self.inputs if not (is_address(p) or p in STANDARD)]
        header = not self.options.no_header
        return [file for n, p in given for file in Input.at(n, p, header).parts()]

    def _copied(self, place: str) -> str:
        """Standard input, in a file that tasks can read."""
        folder = self._until_the_end.enter_context(_folder(None))
        path = Path(folder, f"input.{STANDARD[place]}")
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return str(path)

    # ------------------------------------------------------------------------ complete data

    def _all_at_once(self) -> None:
        limits = self.options.limits
        for name in self.partitions:
            check_empty(self.spark, self.paths[name])
        with Replacing() as files:
            jobs = Jobs(self.spark, "streamlog run", limits.seconds)
            with self.live("running"), explained(), jobs:
                given, metrics, counts, printed, skipped, errors = self._answered(
                    self._read(), files
                )
            answers = self.printing(self._columns)
            for name, local in printed.items():
                answers.add(name, local)
            read_rows = given.counts()
            self.rejected = sum(c.rejected for c in read_rows.values())
            self._report_bad_rows(given, files)
            for rule, reason, values in errors:
                self.print_skipped(str(rule), str(reason), str(values))
            self.print_more_skipped(sum(skipped.values()))
            self.print_doubts(given.doubts().values())
            given.release()
            files.commit(Path(self.paths[name]) for name in self.replaced)
        if not self.failed:
            answers.finish()
        self._report_graphs(metrics.strategies, metrics.no_graphs)
        used, rounds = metrics.strategies, metrics.rounds
        self._print_closing(read_rows, counts, skipped, used, jobs.count, rounds)

    def _answered(self, given: Inputs, files: Replacing) -> _Answered:
        """First from the rows of which Spark's SQL is certain, so that clean data never go through
        Python. If Python finds further rows in the rest, all is evaluated once more: so what is
        written first must be on trial."""
        certain = given.without_python()
        tried: _Answered | EvaluationError | LimitError | None = None
        if all(self._is_on_trial(p) for n, p in self.paths.items() if n in self.outputs):
            try:
                tried = self._evaluated(certain, files)
            except (EvaluationError, LimitError) as error:  # perhaps for want of such a row
                tried = error
        complete = certain.with_python(self.types)
        if tried is None or complete.has_more:
            return self._evaluated(complete, files)
        if isinstance(tried, Exception):
            raise tried
        return (complete, *tried[1:])

    def _evaluated(self, given: Inputs, files: Replacing) -> _Answered:
        counts: dict[str, int] = {}
        printed: dict[str, list[Row]] = {}
        with explained():
            limits = self.options.limits
            found = evaluate(self.program, given, strategy=self.strategy, limits=limits)
        with explained(found.blame):
            for name in self.outputs:
                rows = self._asked(name, found.relations[name])
                if name in self.printed:
                    printed[name] = _rows(rows)
                    counts[name] = len(printed[name])
                else:
                    # Spark's writers to tables hide from `observe` what they compute.
                    to_table = is_table(self.paths[name])
                    rows, number = (rows.persist(), rows.count) if to_table else counted(rows)
                    names = self.schema.column_names[name]
                    self._write(files, name, rows, names, self.types[name])
                    counts[name] = number()
            skipped, errors = self._errors(found, files)
        return given, found.metrics, counts, printed, skipped, errors

    def _errors(self, found: SparkAnswers, files: Replacing) -> tuple[dict[str, int], list[Row]]:
        """How many solutions of each rule were skipped, and the first few."""
        if not self.program.errors:
            return {}, []
        rows = found.errors
        if ERRORS in self.paths:
            plain = rows.toDF(*wire.columns(SKIPPED_TYPES).names)
            self._write(files, ERRORS, plain, SKIPPED, SKIPPED_TYPES)
        counts = {rule: int(n) for rule, n in rows.groupBy("rule").count().collect()}
        first = rows.orderBy(*SKIPPED).limit(MOST_PRINTED) if counts else None
        return counts, [] if first is None else [tuple(row) for row in first.collect()]

    def _is_on_trial(self, place: str) -> bool:
        """Whether it is written beside its place first (`Replacing`)."""
        path = Path(place)
        is_file = not is_address(place) and bool(path.suffix)
        return is_file and (path.is_file() or not path.exists())

    def _write(
        self, files: Replacing, name: str, rows: DataFrame, names: tuple[str, ...], types: Types
    ) -> None:
        """Beside its place, if that is a file of this machine."""
        place: str | Path = self.paths[name]
        if not is_address(str(place)) and Path(place).suffix and not Path(place).is_dir():
            place = files.beside(Path(place))
        write(rows, names, types, place, by=self.partitions.get(name, ()))

    def _report_bad_rows(self, given: Inputs, files: Replacing) -> None:
        """The first few are printed, all go to their file. No row of complete data is late."""
        if not self.rejected and not {REJECTS, LATE} & self.paths.keys():
            return
        bad = given.rejects(self.types)
        if self.rejected:
            for stream, where, reason, _ in bad.limit(MOST_PRINTED).collect():
                self.print_bad_row("rejected", stream, reason, where)
            self.print_remaining(self.rejected)
        for name, rows in ((REJECTS, bad), (LATE, bad.limit(0))):
            if name in self.paths:
                self._write(files, name, rows, REPORT, REPORT_TYPES)

    # ------------------------------------------------------------------------- micro-batches

    def _in_batches(self) -> None:
        options = self.options
        if options.checkpoint is None and not is_local(self.spark):
            raise click.UsageError(
                "on a cluster, --follow needs --checkpoint, where all workers see it"
            )
        given = self._read()
        answers = self.printing(self._columns)

        closed = Event()  # standard output, by whoever read it

        def printer(name: str) -> Callable[[DataFrame, int], None]:
            def put(rows: DataFrame, batch: int) -> None:
                try:
                    answers.add(name, _rows(self._asked(name, rows)))
                except BrokenPipeError:
                    closed.set()

            return put

        sinks: dict[str, Sink] = {n.removeprefix("--"): p for n, p in self.paths.items()}
        sinks |= {name: Relations(printer(name)) for name in self.printed}
        if ERRORS not in self.paths and self.program.errors:
            sinks[ERRORS.removeprefix("--")] = Relations(self._print_errors)
        with _folder(options.checkpoint) as folder:
            follow = {"processingTime": "0 seconds"}
            running = started(
                self.program,
                given,
                sinks,
                folder,
                trigger=follow if options.follow else {"availableNow": True},
                strategy=self.strategy,
                limits=options.limits,
                partitions=self.partitions,
            )
            self._count(running)
            with self.live("waiting for rows") as line, asked_to_stop() as asked:
                while not (self.failed or asked.is_set() or closed.is_set() or running.wait(1)):
                    self._count(running)
                    if line is not None and running.status.batch is not None:
                        line.update(" · ".join((live_line(running.status), *self.silences)))
                self._count(running)
                if self.failed or asked.is_set() or closed.is_set() or options.follow:
                    running.stop()
                else:
                    running.end()
            read_rows = self._count(running)
        if closed.is_set():
            raise BrokenPipeError
        answers.finish()
        last, record, used = running.run.store.last, running.run.record, running.run.choices
        self._report_graphs(used, "GraphFrames needs complete data: no --follow, no --checkpoint")
        counts = last.figures["answers"] if last else {}
        skipped = last.figures["skipped"] if last else {}
        self.print_more_skipped(sum(skipped.values()))
        self._print_closing(read_rows, counts, skipped, used, record.jobs, record.rounds)
        self.print_status(map(str, running.status.held))

    def _print_errors(self, rows: DataFrame, batch: int) -> None:
        for rule, reason, values in rows.orderBy(*rows.columns).limit(MOST_PRINTED).collect():
            self.print_skipped(rule, reason, values)

    def _count(self, running: Running) -> Mapping[str, Count]:
        """What became of the rows of all batches so far."""
        last = running.run.store.last
        figures = {**last.figures["tables"], **last.figures["streams"]} if last else {}
        if last:
            new = last.figures["doubts"].items() - self._doubts.items()
            self.print_doubts(text for _, text in new)
            self._doubts.update(new)
        counts = {name: Count(*numbers) for name, numbers in figures.items()}
        self.rejected = sum(c.rejected for c in counts.values())
        return counts

    # ------------------------------------------------------------------------------ reporting

    def _columns(self, name: str) -> Columns:
        return surface(self.schema.column_names[name], self.types[name])

    def _asked(self, name: str, rows: DataFrame) -> DataFrame:
        """The rows that the program's queries want, when they say what is an output."""
        return selected(rows, self.goals[name]) if name in self.goals else rows

    def _report_graphs(self, used: Mapping[str, Choice], missing: str | None) -> None:
        """Why GraphFrames was not used, though it was asked for."""
        if self.strategy is Strategy.GRAPH and missing:
            names = sorted({choice.strategy.value for choice in used.values()})
            instead = f"by {' and '.join(names)} instead, with the same answers"
            click.echo(f"--strategy graph: {instead}; {missing}", err=True)

    def _print_closing(
        self,
        rows: Mapping[str, Count],
        answers: Mapping[str, int],
        skipped: Mapping[str, int],
        used: Mapping[str, Choice],
        jobs: int,
        rounds: int,
    ) -> None:
        cost = [count(jobs, "job"), f"{count(rounds, 'round')} of recursion" if rounds else ""]
        cost.append(f"{self.seconds:.1f} s")
        spark = "Spark: " + ", ".join(filter(None, cost))
        self.print_closing(FIGURES, rows, answers, skipped, strategies_table(used), spark)


def _rows(rows: DataFrame) -> list[Row]:
    """By value: how Spark cuts its partitions is nothing that anybody should see."""
    table = rows.toArrow()
    found = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return in_order(with_none(found))


@contextmanager
def _folder(given: str | None) -> Iterator[str]:
    """The checkpoint folder, or one that lasts as long as the run."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="streamlog-") as folder:
        yield folder


def live_line(status: Status) -> str:
    """What a run is doing, as far as one line can say."""
    parts = [f"batch {status.batch}", f"{status.rows:,} rows"]
    if status.rows_a_second:
        parts.append(f"{status.rows_a_second:,.0f} a second")
    parts += (f"{s.behind:,} behind" for s in status.sources if s.behind)
    parts.append(status.slowest or f"progress {', '.join(status.progress.values())}")
    parts += (f"{status.state:,} rows of state", f"{status.answers:,} answers")
    return " · ".join(parts)
