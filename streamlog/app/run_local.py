"""`streamlog run --engine local`: a program over files, in this process."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.status import Status

from streamlog.app.answers import columns_of, fits
from streamlog.app.local_figures import costs, progress_line, withheld_lines
from streamlog.app.run import EVERY
from streamlog.app.run_base import ERRORS, LATE, REJECTS, WITHHELD, Options, Run
from streamlog.app.upgrade import upgraded
from streamlog.compiler import Program
from streamlog.control.layers import Layers
from streamlog.control.stored import executor, stored
from streamlog.kernel import Kernel
from streamlog.runtime import checkpoint
from streamlog.runtime.addresses import is_address, redacted
from streamlog.runtime.data_files import CSV
from streamlog.runtime.engine import Engine
from streamlog.runtime.envelope import CheckpointError, difference, fingerprint
from streamlog.runtime.executor import ExecutorFactory, Row
from streamlog.runtime.ingest import REPORT, SKIPPED, Checker
from streamlog.runtime.lock import locked
from streamlog.runtime.merging import merged
from streamlog.runtime.prefix import Prefix, problem
from streamlog.runtime.replacing import Replacing
from streamlog.runtime.report import Late
from streamlog.runtime.sinks import (
    BEGINNING,
    Sink,
    TextSink,
    Types,
    json_object,
    missing_output,
    open_sink,
    resumable_sink,
)
from streamlog.runtime.sources import (
    Arriving,
    Input,
    Rows,
    SourceError,
    read,
    read_files,
)
from streamlog.runtime.wall_clock import WallClock

if TYPE_CHECKING:
    from streamlog.duck.bulk import Bulk

# Files with so many bytes are worth starting DuckDB for.
LARGE = 2_000_000
FIGURES = ("rows", "late", "rejected", "duplicates")


class LocalRun(Run):
    several_files = True
    clock: WallClock | None = None  # complete data do not arrive

    def __init__(self, program: Program, options: Options) -> None:
        super().__init__(program, options)
        self.checkpoint = Path(options.checkpoint) if options.checkpoint else None
        places = [place for _, place in self.inputs]
        for place in (*places, *self.paths.values(), options.checkpoint or ""):
            if is_address(place):
                raise click.UsageError(f"'{redacted(place, [place])}' is for --engine spark")
        header = not options.no_header
        self.given = [Input.at(name, place, header) for name, place in self.inputs]
        files = [part for source in self.given for part in self._parts(source)]
        self.streams = [file for file in files if file.pred in self.schema.streams]
        self.tables = [file for file in files if file.pred not in self.schema.streams]
        pipes = [i.path for i in self.streams if not i.path.is_file()]
        if self.checkpoint and pipes:
            raise click.UsageError(
                f"--checkpoint needs files that can be read again, and '{pipes[0]}' is not one"
            )
        self.consumed = [0] * len(self.streams)
        self.prefixes: list[Prefix | None] = [None] * len(self.streams)
        self.sinks: dict[str, Sink] = {}
        self.table_checkers: dict[str, Checker] = {}
        self.status: Status | None = None
        self.found: checkpoint.Stored | None = None
        self.saving = self.saved_at = 0.0
        self.withheld: Counter[str] = Counter()
        self.saved = (0, 0)  # rows and answers

    def _parts(self, source: Input) -> list[Input]:
        """The files of an input."""
        return source.parts()

    def check_output(self, place: str) -> None:
        if is_address(place):
            return  # refused later
        super().check_output(place)
        if not (folder := Path(place).parent).is_dir():
            raise SourceError(f"'{place}' cannot be written: there is no folder '{folder}'")

    # ------------------------------------------------------------------------ preparing

    def _table_rows(self) -> dict[str, list[Any]]:
        tables: dict[str, list[Any]] = {}
        for source in self.tables:
            made = Checker(self.program, source.pred)
            checker = self.table_checkers.setdefault(source.pred, made)
            tables.setdefault(source.pred, []).extend(read(source, checker))
        return tables

    def _engine(self) -> Engine:
        tables, profiled, limits = self._table_rows(), self.options.profile, self.options.limits
        kernel: ExecutorFactory = partial(Kernel, profiled=profiled)
        if self.checkpoint:
            known, allowed = self.found.extra if self.found else None, self.options.allow_python
            kernel = executor(known, self.program, allowed, profiled=profiled)
        return Engine(
            self.program, kernel, tables, limits, remember=False, checked=True, clock=self.clock
        )

    def _resume(self, folder: Path) -> Mapping[str, Any]:
        """What the last checkpoint says about files, if there is one."""
        self.prefixes = [Prefix() for _ in self.streams]
        if self.found is None:
            return {}
        if self.found.program != fingerprint(self.program):
            way_out = "`--upgrade`, or `streamlog upgrade`, goes on with what has not changed"
            reason = difference(self.program, self.found.program)
            raise CheckpointError(f"'{self.found.path}' {reason}: {way_out}")
        done = checkpoint.load(self.engine, folder, self.found)
        assert done is not None
        added = done.get("added", ())
        if not done["outputs"].keys() <= self.paths.keys() <= {*done["outputs"], *added}:
            raise CheckpointError(f"the checkpoint in '{folder}' was made with other outputs")
        before = {(f["pred"], f["path"]): f for f in done["inputs"]}
        now = [(i.pred, str(i.path)) for i in self.streams]
        if lost := [path for pred, path in before if (pred, path) not in now]:
            raise CheckpointError(
                f"'{lost[0]}' is an input of the checkpoint in '{folder}', and not of this run"
            )
        for which, (source, key) in enumerate(zip(self.streams, now, strict=True)):
            seen = before.get(key)
            if seen is not None:
                self.consumed[which] = seen["rows"]
                if reason := problem(source.path, seen, "read from"):
                    raise CheckpointError(reason)
            if done["finished"] and source.path.stat().st_size > (seen["bytes"] if seen else -1):
                raise CheckpointError(
                    f"the run in '{folder}' has finished, and '{source.path}' has grown since: "
                    "start again with a new checkpoint folder"
                )
        return done

    def _open_sinks(self, marks: Mapping[str, Any], files: Replacing) -> None:
        begun = checkpoint.begun(self.checkpoint) if self.checkpoint else {}
        for name, path in self.paths.items():
            names: Sequence[str] = {ERRORS: SKIPPED, WITHHELD: ("output", "row")}.get(name, REPORT)
            types: Sequence[Any] = (None,) * len(names)
            if name not in (REJECTS, LATE, ERRORS, WITHHELD):
                names, types = columns_of(self.engine, name)
            if self.checkpoint is None:
                self.sinks[name] = self._open_sink(Path(path), names, types, files)
                continue
            mark = BEGINNING if begun.get(name) == path else None
            self.sinks[name] = resumable_sink(Path(path), names, types, marks.get(name, mark))
        if self.checkpoint is not None and not self.paths.items() <= begun.items():
            checkpoint.begin(self.checkpoint, self.paths)

    def _open_sink(self, path: Path, names: Sequence[str], types: Types, files: Replacing) -> Sink:
        """Without a checkpoint, what is there is replaced at the end."""
        return open_sink(files.beside(path), names, types)

    # -------------------------------------------------------------------------- running

    def evaluate(self) -> None:
        with ExitStack() as stack:
            if self.checkpoint:
                stack.enter_context(locked(self.checkpoint))
            files = stack.enter_context(Replacing())
            self.found = checkpoint.read(self.checkpoint) if self.checkpoint else None
            if self.checkpoint and self.found and self.options.upgrade:
                rows, allowed = self._table_rows(), self.options.allow_python
                self.found = upgraded(self.found, self.checkpoint, self.program, rows, allowed)
            self.engine = self._engine()
            self.answers = self.printing(partial(columns_of, self.engine))
            done = self._resume(self.checkpoint) if self.checkpoint else {}
            self._count()
            if done.get("finished"):
                self._check_finished(done["outputs"])
                return
            if done:
                click.echo(f"resuming after {sum(self.consumed):,} rows", err=True)
            stack.callback(self._close_sinks)
            self._open_sinks(done.get("outputs", {}), files)
            with self.live("reading") as self.status:
                if not self.failed and not self._in_bulk():
                    self._all_rows()
            self._close_sinks(complete=True)
            files.commit(Path(self.paths[name]) for name in self.replaced)
        if not self.failed:
            self.answers.finish()
        self.print_remaining()
        self.print_more_skipped(self._skipped)
        tables = (text for checker in self.table_checkers.values() for text in checker.doubts)
        self.print_doubts([*self.engine.doubts, *tables])
        self._print_closing()

    def _check_finished(self, marks: Mapping[str, Any]) -> None:
        for name, path in self.paths.items():
            if reason := missing_output(Path(path), marks[name]):
                raise CheckpointError(
                    f"the run in '{self.checkpoint}' has finished, but {reason}: "
                    "start again with a new checkpoint folder"
                )
        click.echo(f"the run in '{self.checkpoint}' has finished: there is nothing to do", err=True)

    def _close_sinks(self, *, complete: bool = False) -> None:
        while self.sinks:
            _, sink = self.sinks.popitem()
            try:
                if complete and self.checkpoint is None:
                    sink.commit()
            finally:
                sink.close()

    def _all_rows(self) -> None:
        """All rows, step by step, unless --strict stops the run."""
        engine, streams = self.engine, self.streams
        left = {s: sum(i.pred == s for i in streams) for s in self.schema.streams}
        for name, files in left.items():
            if not files:  # nothing but the program's own facts
                engine.end(name)

        def ended(pred: str) -> None:
            left[pred] -= 1
            if not left[pred]:
                engine.end(pred)

        opened = read_files(streams, engine.checkers, self.consumed, self.prefixes)
        self._push_all(opened, ended)
        if not self.failed:
            engine.end()
            self._step(finished=True)

    def _push_all(self, opened: Sequence[Rows | Arriving], ended: Callable[[str], None]) -> None:
        """Rows, merged by time, with a step after every so many; `ended` is told of a stream of
        which an input has no more."""
        engine, streams = self.engine, self.streams
        # Rows wait here for their stream's turn: until another stream's come, if that matters.
        waiting: dict[str, list[Any]] = {source.pred: [] for source in streams}
        turns = not engine.progress.independent
        last, left_of_step = "", self.options.every

        def push(name: str) -> None:
            engine.take(name, waiting[name])
            waiting[name].clear()

        arriving = {i for i, s in enumerate(streams) if not engine.checkers[s.pred].temporal}
        for which, row in merged(opened, arriving):
            pred = streams[which].pred
            if turns and pred != last:
                if last:
                    push(last)
                last = pred
            if row is None:
                push(pred)
                ended(pred)
                continue
            waiting[pred].append(row)
            self.consumed[which] += 1
            left_of_step -= 1
            if not left_of_step:
                for name in waiting:
                    push(name)
                left_of_step = self.options.every
                self._step()
                if self.is_over():
                    return

    def is_over(self) -> bool:
        """Whether no more rows are to be read."""
        return self.failed

    def _in_bulk(self) -> bool:
        """Read large files all at once, and evaluate them so, as far as that is possible."""
        size = sum(i.path.stat().st_size for i in self.streams if i.path.is_file())
        options = self.options
        by_rows = options.strategy == "kernel" or options.every != EVERY or options.profile
        if self.checkpoint or options.follow or by_rows or size < LARGE:
            return False
        from streamlog.duck import bulk

        loaded = bulk.load(self.engine, self.streams, self.options.limits)
        if loaded is None:
            return False
        loaded.report_to(self.engine)
        self._count()
        self._report_bad_rows()
        if self.failed:
            return True
        if loaded.by_queries:
            self._answer_at_once(loaded)
            return True
        for arrived, until in loaded.slices(EVERY):
            for name, answers in self.engine.feed(arrived, until).items():
                self._put(name, answers)
            self._report_bad_rows()
            if self.status is not None:
                self.status.update(self._live_line())
        return True

    def _answer_at_once(self, loaded: Bulk) -> None:
        self.engine.executor = loaded.executor
        self.engine.counts.held(loaded.count)
        found = loaded.evaluate()
        for name in self.outputs:
            sink, lines = self.sinks.get(name), None
            if isinstance(sink, TextSink) and sink.kind == CSV and name not in self.goals:
                lines = found.lines(name, sink.types)
            if isinstance(sink, TextSink) and lines is not None:
                for number, text in lines:
                    self.engine.counts.answers[name] += number
                    sink.write_lines(text)
                continue
            for answers in found.of(name):
                self.engine.counts.answers[name] += len(answers)
                self._put(name, answers)

    def _put(self, name: str, rows: Sequence[Row]) -> None:
        """Answers to their file, or to standard output."""
        if name in self.goals:
            rows = [row for row in rows if fits(self.goals[name], row)]
        if name in self.sinks:
            self.sinks[name].write(rows)
        else:
            self.answers.add(name, rows)

    def _step(self, *, finished: bool = False) -> None:
        for name, rows in self.engine.step().items():
            self._put(name, rows)
        self._count()
        self._report_bad_rows()
        at_once = finished or self.failed
        if self.checkpoint and (at_once or self.saved != self._so_far()):
            self._save(self.checkpoint, at_once, finished=finished)
        if self.status is not None:
            self.status.update(self._live_line())

    def _count(self) -> None:
        self.rejected = sum(c.rejected for c in self.engine.report.streams.values())

    def _so_far(self) -> tuple[int, int]:
        """How many rows have been read, and how many answers given."""
        return sum(self.consumed), sum(self.engine.report.answers.values())

    def _save_rest(self, *, at_once: bool = False) -> None:
        """What the last checkpoint does not have yet."""
        if self.checkpoint and self.saved != self._so_far():
            self._save(self.checkpoint, at_once, finished=False)

    def _save(self, folder: Path, at_once: bool, *, finished: bool) -> None:
        """Not more than a fifth of the time goes into checkpoints, unless one is needed at once."""
        now = time.monotonic()
        if not at_once and now - self.saved_at < 4 * self.saving:
            return
        sys.stdout.flush()
        extra = {
            "inputs": [
                {"pred": i.pred, "path": str(i.path), "rows": rows, "header": i.header}
                | prefix.record()
                for i, rows, prefix in zip(self.streams, self.consumed, self.prefixes, strict=True)
                if prefix is not None
            ],
            "outputs": {name: sink.commit() for name, sink in self.sinks.items()},
            "files": [
                {"pred": i.pred, "path": str(i.path), "header": i.header} for i in self.tables
            ],
            "finished": finished,
            **stored(self.engine),
        }
        checkpoint.save(self.engine, folder, extra)
        self.saved = self._so_far()
        self.saved_at = time.monotonic()
        self.saving = self.saved_at - now

    # -------------------------------------------------------------------------- reporting

    def _report_bad_rows(self) -> None:
        """The first few are printed, all go to their files."""
        rejects, late = self.engine.rejects, self.engine.late
        found: dict[str, list[Row]] = {
            REJECTS: [(r.stream, r.where, r.reason, r.text) for r in rejects],
            LATE: [(row.stream, "", row.reason, self._written(row)) for row in late],
        }
        for name, word in ((REJECTS, "rejected"), (LATE, "late")):
            for stream, where, reason, _ in found[name]:
                self.print_bad_row(word, str(stream), str(reason), str(where))
            if name in self.sinks:
                self.sinks[name].write(found[name])
        errors = [(e.rule, e.reason, e.values) for e in self.engine.errors]
        for error in errors:
            self.print_skipped(*error)
        self._report_withheld()
        if ERRORS in self.sinks:
            self.sinks[ERRORS].write(errors)
        for reported in (rejects, late, self.engine.errors):
            reported.clear()

    def _report_withheld(self) -> None:
        """Answers that an upgrade cannot vouch for."""
        if isinstance(executor := self.engine.executor, Layers):
            found = [(name, row) for name, row in executor.withheld if name in self.outputs]
            self.withheld.update(name for name, _ in found)
            if WITHHELD in self.sinks:
                self.sinks[WITHHELD].write((name, self._row(name, row)) for name, row in found)
            executor.withheld.clear()

    def files_read(self) -> list[Input]:
        return [file for file in (*self.streams, *self.tables) if file.form is None]

    def _written(self, late: Late) -> str:
        """A row as it could have been read, times in words."""
        return self._row(late.stream, late.row)

    def _row(self, name: str, row: Row) -> str:
        values = json_object(row, *columns_of(self.engine, name)).values()
        return json.dumps(list(values), ensure_ascii=False)

    def _live_line(self) -> str:
        return progress_line(self.engine)

    def _print_closing(self) -> None:
        engine, report = self.engine, self.engine.report
        hint = "" if WITHHELD in self.paths else "; --withheld keeps them"
        withheld = withheld_lines(engine, self.withheld, hint)
        more = costs(engine, self.seconds, profiled=self.options.profile)
        self.print_closing(
            FIGURES, report.streams, report.answers, report.skipped, *withheld, *more
        )
