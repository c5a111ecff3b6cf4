"""`streamlog run` on Spark."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamlog.app.interrupts import asked_to_stop, interruptible
from streamlog.app.java import java_problem
from streamlog.compiler import Program

if TYPE_CHECKING:
    from streamlog.app.answers import Answers, Columns
    from streamlog.plan.strategies import Choice
    from streamlog.runtime.executor import Limits, Row
    from streamlog.runtime.replacing import Replacing
    from streamlog.spark import DataFrame
    from streamlog.spark.delivery import Sink
    from streamlog.spark.inputs import Count, Inputs
    from streamlog.spark.watching import Status
    from streamlog.syntax.ast import Type

TOLD = 5


def run_on_spark(
    program: Program,
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    form: str,
    no_header: bool,
    checkpoint: str | None,
    strict: bool,
    every: int,
    rejects: str | None,
    late: str | None,
    follow: bool,
    master: str | None,
    conf: Sequence[str],
    packages: Sequence[str],
    strategy: str | None,
    files_per_batch: int | None,
    kind: str | None,
    limits: Limits,
) -> int:
    """The exit code of a run."""
    from streamlog.runtime.envelope import CheckpointError
    from streamlog.runtime.executor import LimitError
    from streamlog.runtime.functions import EvaluationError
    from streamlog.runtime.lock import Locked
    from streamlog.runtime.replacing import Replacing
    from streamlog.runtime.sources import SourceError

    problem = java_problem()
    if problem is not None:
        raise click.UsageError(problem)
    from streamlog.spark.columns import ColumnTypeError
    from streamlog.spark.ingest import ColumnsError
    from streamlog.spark.inputs import InputError
    from streamlog.spark.session import SessionError

    in_batches = follow or checkpoint is not None
    if not in_batches and (files_per_batch or kind):
        option = "--files-per-batch" if files_per_batch else "--kind"
        raise click.UsageError(f"{option} is for --follow and --checkpoint")
    try:
        run = _SparkRun(program, form, strategy, not no_header, strict, limits)
        run.open(inputs, outputs, rejects, late, checkpoint, in_batches)
        run.start_spark(master, conf, packages)
        with interruptible():
            if in_batches:
                run.follow(checkpoint, files_per_batch, kind, until_caught_up=not follow)
            else:
                with Replacing() as run.files:
                    run.all_at_once()
    except (
        SourceError,
        CheckpointError,
        Locked,
        ColumnTypeError,
        ColumnsError,
        InputError,
        SessionError,
    ) as error:
        raise click.UsageError(str(error)) from None
    except (LimitError, EvaluationError) as error:
        click.echo(f"streamlog: {error}", err=True)
        return 1
    return 1 if strict and run.rejected else 0


class _SparkRun:
    """One run: inputs, Spark, outputs, and what is told along the way."""

    def __init__(
        self,
        program: Program,
        form: str,
        strategy: str | None,
        header: bool,
        strict: bool,
        limits: Limits,
    ) -> None:
        from streamlog.app.answers import asked
        from streamlog.plan.parts import Strategy

        self.program, self.schema = program, program.schema
        self.form, self.header, self.strict, self.limits = form, header, strict, limits
        self.strategy = None if strategy is None else Strategy(strategy)
        self.wanted = {} if self.schema.outputs else asked(self.schema.queries)
        self.rejected = 0
        self.files: Replacing
        self.began = time.monotonic()

    def open(
        self,
        inputs: Sequence[str],
        outputs: Sequence[str],
        rejects: str | None,
        late: str | None,
        checkpoint: str | None,
        in_batches: bool,
    ) -> None:
        """What goes in and what comes out, before Spark is started for it."""
        from streamlog.analysis.schema import Kind
        from streamlog.app.places import check_places
        from streamlog.app.run import pairs
        from streamlog.runtime.sinks import kind_of_output
        from streamlog.runtime.sources import SourceError, declared_inputs

        sources = [n for n, p in self.schema.predicates.items() if p.kind is not Kind.DERIVED]
        self.answered = self.program.contract.outputs
        given = dict(pairs(inputs, "--input", sources, once=True))
        declared = {i.pred: str(i.path) for i in declared_inputs(self.program, header=self.header)}
        self.inputs = {**declared, **given}
        for name, place in self.inputs.items():
            if "://" not in place and not Path(place).exists():
                raise SourceError(f"there is no file '{place}' for `{name}`")
        self.paths = dict(pairs(outputs, "--output", self.answered, once=True))
        places = [(f"--output {name}", place) for name, place in self.paths.items()]
        more = [(name, place) for name, place in (("rejects", rejects), ("late", late)) if place]
        self.paths |= dict(more)
        check_places(
            [(f"the input of `{name}`", place) for name, place in self.inputs.items()],
            [*places, *((f"--{name}", place) for name, place in more)],
            checkpoint,
        )
        for place in self.paths.values():
            # Without such a name, the folder of micro-batches is one of Parquet.
            if not place.startswith("kafka://") and (Path(place).suffix or not in_batches):
                kind_of_output(Path(place))
        self.printed = [n for n in self.answered if n not in self.paths]
        if in_batches and self.printed and self.form == "table":
            raise click.UsageError(
                f"micro-batches need --output {self.printed[0]}=DIR, or --format csv or json"
            )

    def start_spark(self, master: str | None, conf: Sequence[str], packages: Sequence[str]) -> None:
        from streamlog.spark.session import is_submitted, session, with_memory
        from streamlog.spark.topics import CONNECTOR, SCHEME

        settings: dict[str, str] = {}
        for text in conf:
            key, equals, value = text.partition("=")
            if not equals:
                raise click.UsageError(f"--conf takes KEY=VALUE, not '{text}'")
            settings[key] = value
        places = (*self.inputs.values(), *self.paths.values())
        if any(p.startswith(SCHEME) for p in places) and not is_submitted():
            asked = (*packages, *settings.values())  # perhaps as files, in spark.jars
            if not any("spark-sql-kafka" in text for text in asked):
                packages = [*packages, CONNECTOR]
        with self._live("starting Spark"):
            given = with_memory(settings, self.limits.memory)
            self.spark = session(master, given, packages)

    # ------------------------------------------------------------------------ complete data

    def all_at_once(self) -> None:
        from streamlog.spark.batch import evaluate
        from streamlog.spark.failures import explained
        from streamlog.spark.inputs import Inputs, counted
        from streamlog.spark.session import Jobs
        from streamlog.spark.sources import read

        frames: dict[str, DataFrame] = {}
        texts = set()
        for name, path in self.inputs.items():
            frames[name], is_text = read(self.spark, path, name, self.program, header=self.header)
            if is_text:
                texts.add(name)
        seconds = self.limits.seconds
        with self._live("running"), explained(), Jobs(self.spark, "streamlog run", seconds) as jobs:
            given = Inputs.of(self.spark, self.program, frames, texts)
            found = evaluate(self.program, given, strategy=self.strategy, limits=self.limits)
            self.types = found.types
            printing = self._printing()
            counts: dict[str, int] = {}
            for name in self.answered:
                rows = self._asked(name, found.relations[name])
                if name in self.printed:
                    local = _rows(rows)
                    counts[name] = len(local)
                    printing.add(name, local)
                else:
                    names = self.schema.column_names[name]
                    rows, count = counted(rows)
                    self._write(name, rows, names, self.types[name])
                    counts[name] = count()
        printing.finish()
        self._report(given)
        # Of a run that --strict fails, the rows that say why.
        failed = self.strict and self.rejected
        self.files.commit(Path(p) for n, p in self.paths.items() if not failed or n == "rejects")
        metrics = found.metrics
        self._report_graphs(metrics.strategies, metrics.no_graphs)
        self._closing(given.counts(), counts, metrics.strategies, jobs.count, metrics.rounds)

    def _report_graphs(self, used: Mapping[str, Choice], missing: str | None) -> None:
        """Why GraphFrames was not used, though it was asked for."""
        from streamlog.plan.parts import Strategy

        if self.strategy is Strategy.GRAPH and missing:
            names = sorted({choice.strategy.value for choice in used.values()})
            told = f"by {' and '.join(names)} instead, with the same answers"
            click.echo(f"--strategy graph: {told}; {missing}", err=True)

    def _write(
        self, name: str, rows: DataFrame, names: Sequence[str], types: Sequence[Type]
    ) -> None:
        """Beside its place, if that is a file of this machine."""
        from streamlog.spark.sinks import write

        place: str | Path = self.paths[name]
        if "://" not in str(place) and Path(place).suffix and not Path(place).is_dir():
            place = self.files.beside(Path(place))
        write(rows, names, types, place)

    def _report(self, given: Inputs) -> None:
        """Bad rows: the first few are told, all go to their file."""
        from streamlog.app.snippet import visible
        from streamlog.syntax.ast import Type

        self.rejected = sum(count.rejected for count in given.counts().values())
        if not self.rejected and "rejects" not in self.paths:
            return
        rejects = given.rejects(self.types)
        for row in rejects.limit(TOLD).collect():
            click.echo(f"rejected {row['stream']}: {visible(row['reason'])}", err=True)
        if self.rejected > TOLD:
            hint = "" if "rejects" in self.paths else "; see --rejects"
            click.echo(f"{self.rejected - TOLD} more rows were rejected{hint}", err=True)
        if "rejects" in self.paths:
            columns = ("stream", "reason", "raw")
            self._write("rejects", rejects.toDF("c0", "c1", "c2"), columns, (Type.STRING,) * 3)

    # ------------------------------------------------------------------------- micro-batches

    def follow(
        self,
        checkpoint: str | None,
        most_files: int | None,
        kind: str | None,
        *,
        until_caught_up: bool,
    ) -> None:
        from streamlog.spark.delivery import Relations
        from streamlog.spark.inputs import Inputs
        from streamlog.spark.session import is_local
        from streamlog.spark.sources import read, read_stream
        from streamlog.spark.start import started

        if checkpoint is None and not is_local(self.spark):
            raise click.UsageError(
                "on a cluster, --follow needs --checkpoint, where all workers see it"
            )
        frames: dict[str, DataFrame] = {}
        texts = set()
        for name, path in self.inputs.items():
            source = read
            if name in self.schema.streams:
                source = partial(read_stream, kind=kind, most_files=most_files)
            frames[name], is_text = source(self.spark, path, name, self.program, header=self.header)
            if is_text:
                texts.add(name)
        given = Inputs.of(self.spark, self.program, frames, texts)
        from streamlog.spark.columns import column_types

        self.types = column_types(self.program.closed, given.types)
        self.printing = self._printing()
        sinks: dict[str, Sink] = dict(self.paths)
        for name in self.printed:
            sinks[name] = Relations(self._printer(name))
        with _folder(checkpoint) as folder:
            trigger = {"availableNow": True} if until_caught_up else {"processingTime": "0 seconds"}
            running = started(
                self.program,
                given,
                sinks,
                folder,
                trigger=trigger,
                strategy=self.strategy,
                limits=self.limits,
            )
            with self._live("waiting for rows") as line, asked_to_stop() as asked:
                while not asked.is_set() and not running.wait(1):
                    if line is not None and running.status.batch is not None:
                        line.update(live_line(running.status))
                if asked.is_set() or not until_caught_up:
                    running.stop()
                else:
                    running.end()
            total = running.run.store.last
            figures = total.figures if total else {}
        self.printing.finish()
        from streamlog.spark.inputs import Count

        read_rows = {**figures.get("tables", {}), **figures.get("streams", {})}
        counts = {name: Count(*numbers) for name, numbers in sorted(read_rows.items())}
        self.rejected = sum(c.rejected for c in counts.values())
        record, used = running.run.record, running.run.choices
        self._report_graphs(used, "GraphFrames needs complete data: no --follow, no --checkpoint")
        self._closing(counts, figures.get("answers", {}), used, record.jobs, record.rounds)
        for held in running.status.held:
            click.echo(str(held), err=True)

    def _printer(self, name: str) -> Callable[[DataFrame, int], None]:
        def printer(rows: DataFrame, batch: int) -> None:
            self.printing.add(name, _rows(self._asked(name, rows)))

        return printer

    # ------------------------------------------------------------------------------ telling

    def _columns(self, name: str) -> Columns:
        from streamlog.runtime.ingest import surface

        return surface(self.schema.column_names[name], self.types[name])

    def _printing(self) -> Answers:
        from streamlog.app.answers import Answers

        return Answers(self._columns, self.form, self.printed)

    def _asked(self, name: str, rows: DataFrame) -> DataFrame:
        """The rows that the program's queries want, when they say what is an output."""
        from streamlog.app.answers import goals_of
        from streamlog.spark.selecting import selected

        return selected(rows, goals_of(self.schema.queries)[name]) if self.wanted else rows

    @contextmanager
    def _live(self, text: str) -> Iterator[Any]:
        """A line that changes on a terminal, unless answers are written there at the same time."""
        busy = sys.stdout.isatty() and self.form != "table" and bool(self.printed)
        if not sys.stderr.isatty() or busy:
            yield None
            return
        from streamlog.app.render import console

        with console(stderr=True).status(text) as status:
            yield status

    def _closing(
        self,
        rows: Mapping[str, Count],
        answers: Mapping[str, int],
        used: Mapping[str, Choice],
        jobs: int,
        rounds: int,
    ) -> None:
        from streamlog.app.closing import figures_tables, strategies_table
        from streamlog.app.render import console

        seconds = time.monotonic() - self.began
        figures = {n: (c.rows, c.late, c.rejected) for n, c in rows.items()}
        for table in figures_tables(("rows", "late", "rejected"), figures, answers):
            console(stderr=True).print(table)
        how = {name: (choice.strategy.value, choice.reason) for name, choice in used.items()}
        console(stderr=True).print(strategies_table(how))
        told = [_count(jobs, "job"), f"{_count(rounds, 'round')} of recursion" if rounds else ""]
        told.append(f"{seconds:.1f} s")
        console(stderr=True).print("Spark: " + ", ".join(filter(None, told)))


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' * (number != 1)}"


def _rows(rows: DataFrame) -> list[Row]:
    """By value: how Spark cuts its partitions is nothing that anybody should see."""
    from streamlog.runtime.query import in_order

    table = rows.toArrow()
    return in_order(zip(*(column.to_pylist() for column in table.columns), strict=True))


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
    told = [f"batch {status.batch}", f"{status.rows:,} rows"]
    if status.rows_a_second:
        told.append(f"{status.rows_a_second:,.0f} a second")
    told += (f"{s.behind:,} behind" for s in status.sources if s.behind)
    told.append(status.slowest or f"progress {', '.join(status.progress.values())}")
    told += (f"{status.state:,} rows of state", f"{status.answers:,} answers")
    return " · ".join(told)
