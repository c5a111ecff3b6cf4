"""`streamlog run` on either engine: where rows are read and answers written, what is printed
meanwhile, and how it ends."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import click
from attrs import frozen
from rich.status import Status
from rich.table import Table

from streamlog import prepared
from streamlog.analysis.skipping import SkipError
from streamlog.app.answers import Answers, Columns, goals_of
from streamlog.app.closing import figures_tables
from streamlog.app.formats import count
from streamlog.app.places import check_known, check_places, pairs
from streamlog.app.render import console
from streamlog.app.snippet import visible
from streamlog.app.tables import flat
from streamlog.compiler import Program, focused
from streamlog.runtime.addresses import is_address
from streamlog.runtime.data_files import CSV, STANDARD, STDOUT, format_of_output, is_pattern
from streamlog.runtime.envelope import CheckpointError
from streamlog.runtime.executor import LimitError, Limits
from streamlog.runtime.functions import EvaluationError
from streamlog.runtime.ingest import Checker, positions_of
from streamlog.runtime.lock import Locked
from streamlog.runtime.missing_inputs import check_inputs
from streamlog.runtime.python_functions import PythonError, check_allowed
from streamlog.runtime.sources import (
    Input,
    SourceError,
    declared_inputs,
    read_file,
)

MOST_PRINTED = 5  # rejected or late rows; the others are counted
SILENT = "SL0506"
# Beside the names of outputs, which are none.
REJECTS, LATE, ERRORS, WITHHELD = "--rejects", "--late", "--errors", "--withheld"


@frozen
class Options:
    """What `streamlog run` was asked for."""

    inputs: Sequence[str]
    empty: Sequence[str]
    outputs: Sequence[str]
    partition: Sequence[str]
    form: str
    no_header: bool
    checkpoint: str | None
    upgrade: bool
    strict: bool
    every: int
    profile: bool
    rejects: str | None
    late: str | None
    on_error: str
    errors: str | None
    withheld: str | None
    allow_python: bool
    follow: bool
    metrics: int | None
    files_per_batch: int | None
    kind: str | None
    master: str | None
    conf: Sequence[str]
    packages: Sequence[str]
    strategy: str | None
    limits: Limits

    @property
    def in_batches(self) -> bool:
        """Whether answers are delivered batch by batch, and stay when the run fails later."""
        return self.follow or self.checkpoint is not None


class Run(ABC):
    """One run on one engine."""

    several_files: ClassVar[bool]  # whether an input may be given more than once
    misuse: ClassVar[tuple[type[Exception], ...]] = (SourceError, CheckpointError, Locked)

    def __init__(self, program: Program, options: Options) -> None:
        """Options and places are checked; no row is read, nothing is written."""
        self.program, self.options = program, options
        self.schema, self.outputs = program.schema, program.contract.outputs
        self.goals = {} if self.schema.outputs else goals_of(self.schema.queries)
        self.inputs = self._inputs()
        given = pairs(options.outputs, "--output", self.outputs, once=True)
        standard = {name: place for name, place in given if place in STANDARD}
        given = [(name, place) for name, place in given if name not in standard]
        places = [(f"--output {name}", name, place) for name, place in given]
        kept = [(REJECTS, options.rejects), (LATE, options.late), (ERRORS, options.errors)]
        kept.append((WITHHELD, options.withheld))
        places += [(option, option, place) for option, place in kept if place]
        check_places(
            [(f"the input of `{n}`", place) for n, place in self.inputs if place not in STANDARD],
            [(option, place) for option, _, place in places],
            options.checkpoint,
        )
        self.paths = {name: place for _, name, place in places}
        for place in self.paths.values():
            self.check_output(place)
        self.printed = [name for name in self.outputs if name not in self.paths]
        self.form = options.form
        if standard:
            self.form = self._form_of(standard)
        if options.in_batches and self.printed and self.form == "table":
            # Tables are printed at the end: what came before an interruption would be missing.
            option = "--follow" if options.follow else "--checkpoint"
            raise click.UsageError(
                f"{option} needs --output {self.printed[0]}=PATH, or --format csv or json"
            )
        self.rejected = self._bad_rows = self._skipped = 0
        self._began = time.monotonic()

    def _form_of(self, standard: Mapping[str, str]) -> str:
        """How the only answers on standard output are written there."""
        for name in self.printed:
            if name not in standard or len(standard) > 1:
                first = min(standard)
                other = next(n for n in self.printed if n != first)
                raise click.UsageError(
                    f"--output {first}={standard[first]} leaves standard output to `{first}` "
                    f"alone: give --output {other}=PATH too"
                )
        (place,) = standard.values()
        if place == STDOUT:
            return "jsonl" if self.options.form == "json" else CSV
        return STANDARD[place]

    def _inputs(self) -> list[tuple[str, str]]:
        """Predicates and places: those given go before those that the program names."""
        known = self.schema.inputs
        found = pairs(self.options.inputs, "--input", known, once=not self.several_files)
        named, empty = {name for name, _ in found}, {*self.options.empty}
        declared = declared_inputs(self.program)
        found += ((i.pred, str(i.path)) for i in declared if i.pred not in named | empty)
        check_known(self.options.empty, "--empty", known)
        if both := sorted(named & empty):
            raise click.UsageError(f"`{both[0]}` is given both with --input and with --empty")
        way_out = "read them with --input {name}=PATH, or say --empty {name} if there are none"
        check_inputs(self.program, {*dict(found), *empty}, way_out)
        standard = [name for name, place in found if place in STANDARD]
        if len(standard) > 1:
            raise click.UsageError(
                f"--input: standard input cannot be both `{standard[0]}` and `{standard[1]}`"
            )
        for name, place in found:
            path = Path(place)
            elsewhere = place in STANDARD or is_address(place)
            if not (elsewhere or path.exists() or is_pattern(path)):
                raise SourceError(f"there is no file '{place}' for `{name}`")
        return found

    def check_output(self, place: str) -> None:
        """Raise `SourceError` if answers cannot be written there."""
        format_of_output(Path(place))

    @abstractmethod
    def evaluate(self) -> None:
        """Everything from the first row to the closing tables."""

    @property
    def silences(self) -> list[str]:
        """What silence alone does not raise, as `check` warns of it."""
        return [d.message for d in self.program.diagnostics if d.code == SILENT]

    # ------------------------------------------------------------------------- the outcome

    @property
    def failed(self) -> bool:
        """Whether the run fails because of --strict."""
        return self.options.strict and self.rejected > 0

    @property
    def replaced(self) -> list[str]:
        """The names of the files to replace: of a run that fails, those that say why."""
        return [name for name in self.paths if not self.failed or name in (REJECTS, LATE)]

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    # --------------------------------------------------------------------------- printing

    def printing(self, columns_of: Callable[[str], Columns]) -> Answers:
        """What prints the answers that no file is given for. With --strict they wait until it is
        known that no row is rejected, unless they are delivered batch by batch."""
        wait = self.options.strict and not self.options.in_batches
        return Answers(columns_of, self.form, self.printed, wait=wait)

    def print_bad_row(self, what: str, stream: str, reason: str, where: str = "") -> None:
        """A rejected or late row, if it is among the first few."""
        self._bad_rows += 1
        if self._bad_rows <= MOST_PRINTED:
            place = f" {where}" if where else ""
            click.echo(f"{what} {stream}{place}: {visible(reason)}", err=True)

    def print_skipped(self, rule: str, reason: str, values: str) -> None:
        """A solution that cannot be computed, if it is among the first few."""
        self._skipped += 1
        if self._skipped <= MOST_PRINTED:
            click.echo(f"skipped {rule}: {visible(reason)} with {visible(values)}", err=True)

    def print_more_skipped(self, skipped: int) -> None:
        """How many of them were not printed."""
        if (more := skipped - MOST_PRINTED) > 0:
            hint = "" if ERRORS in self.paths else "; --errors keeps them"
            click.echo(f"{count(more, 'more solution')} skipped{hint}", err=True)

    def print_remaining(self, bad_rows: int | None = None) -> None:
        """How many bad rows were not printed, of those reported or of so many."""
        more = (self._bad_rows if bad_rows is None else bad_rows) - MOST_PRINTED
        if more > 0:
            hint = "" if {REJECTS, LATE} & self.paths.keys() else "; --rejects and --late keep them"
            click.echo(f"{count(more, 'more row')} rejected or late{hint}", err=True)

    @property
    def arriving(self) -> bool:
        """Whether rows get their times of arrival in this run."""
        return self.options.follow

    def files_read(self) -> list[Input]:
        """The files of this machine that the inputs were read from."""
        return []

    def rows_of(self, error: EvaluationError) -> Iterator[str]:
        """The rows of files that made a rule fail, with their places."""
        for pred, wanted in error.goals:
            checker = Checker(self.program, pred, arriving=self.arriving)
            held = positions_of(self.schema[pred], self.arriving)
            for file in (f for f in self.files_read() if f.pred == pred):
                for number, row in enumerate(read_file(file, checker), 1):
                    if isinstance(row, tuple) and all(
                        wanted[i] is None or wanted[i] == value
                        for i, value in zip(held, row, strict=True)
                    ):
                        yield f"`{pred}` is row {number:,} of '{file.path}'"
                        break

    def print_status(self, held: Iterable[str]) -> None:
        """Where a run that follows its inputs was stopped."""
        for text in (*held, *(self.silences if self.options.follow else ())):
            click.echo(visible(text), err=True)

    def print_doubts(self, doubts: Iterable[str]) -> None:
        """Warnings about the data."""
        for text in sorted(doubts):
            click.echo(f"warning: {visible(text)}", err=True)

    @contextmanager
    def live(self, text: str) -> Iterator[Status | None]:
        """A line that changes on a terminal, unless answers are written there at the same time."""
        busy = sys.stdout.isatty() and self.form != "table" and bool(self.printed)
        if not sys.stderr.isatty() or busy:
            yield None
            return
        with console(stderr=True).status(text) as status:
            yield status

    def print_closing(
        self,
        columns: Sequence[str],
        counts: Mapping[str, object],
        answers: Mapping[str, int],
        skipped: Mapping[str, int],
        *more: Table | str,
    ) -> None:
        """`counts` has for each input an object with the columns."""
        out = console(stderr=True)
        rows = {name: [getattr(count, c) for c in columns] for name, count in counts.items()}
        for block in (*figures_tables(columns, rows, answers, skipped), *more):
            out.print(flat(block, out.width))


def _not_stamped(program: Program, error: Exception) -> str:
    """What to add where data lack a time of arrival."""
    columns = (c for name in program.schema.streams for c in program.schema[name].columns)
    if any(c.is_arrival and f"no column `{c.name}`" in str(error) for c in columns):
        return (
            "; rows are stamped as they arrive, with --follow, and complete data have their stamps"
        )
    return ""


@contextmanager
def misuse() -> Iterator[None]:
    """What was asked for cannot be done, and nothing is wrong with streamlog."""
    try:
        yield
    except PythonError as error:
        raise click.UsageError(str(error)) from None
    except SkipError as error:
        raise click.UsageError(f"--on-error skip: {error}") from None
    except Run.misuse as error:
        raise click.UsageError(str(error)) from None


def execute(engine: type[Run], program: Program, options: Options) -> int:
    """The exit code of a run."""
    run: Run | None = None
    try:
        asked = focused(program)
        asked = prepared(asked, options.on_error, options.allow_python)
        check_allowed(asked)
        run = engine(asked, options)
        run.evaluate()
    except PythonError as error:
        raise click.UsageError(str(error)) from None
    except SkipError as error:
        raise click.UsageError(f"--on-error skip: {error}") from None
    except engine.misuse as error:
        raise click.UsageError(f"{error}{_not_stamped(program, error)}") from None
    except (LimitError, EvaluationError) as error:
        click.echo(f"streamlog: {error}", err=True)
        if run is not None and isinstance(error, EvaluationError):
            for row in run.rows_of(error):
                click.echo(f"streamlog: {row}", err=True)
        return 1
    if run.failed:
        done = "stopped" if options.in_batches else "no output was written"
        rows = "a row was" if run.rejected == 1 else f"{run.rejected:,} rows were"
        click.echo(f"streamlog: --strict: {rows} rejected; {done}", err=True)
    return int(run.failed)
