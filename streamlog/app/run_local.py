"""`streamlog run --engine local`: a program over files, in this process."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamlog.app.places import check_places
from streamlog.app.run import pairs

if TYPE_CHECKING:
    from streamlog.compiler import Program
    from streamlog.runtime.engine import Engine, Late
    from streamlog.runtime.executor import Limits
    from streamlog.runtime.prefix import Prefix
    from streamlog.runtime.replacing import Replacing
    from streamlog.runtime.sinks import Sink
    from streamlog.runtime.sources import Input

TOLD = 5  # rejected or late rows that are shown; the rest is counted


def _here(place: str) -> Path:
    """A path of this machine, which is all that this process can use alone."""
    if "://" in place:
        raise click.UsageError(f"'{place}' is for --engine spark")
    return Path(place)


class LocalRun:
    """One run: inputs, engine, outputs, and what is printed along the way."""

    def __init__(
        self,
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
        limits: Limits,
    ) -> None:
        """Options and places are checked; no row is read, nothing is written."""
        from streamlog.analysis.schema import Kind
        from streamlog.app.answers import asked
        from streamlog.runtime.sinks import kind_of_output
        from streamlog.runtime.sources import SourceError

        self.program, self.schema = program, program.schema
        self.checkpoint = _here(checkpoint) if checkpoint else None
        self.strict, self.every, self.form, self.limits = strict, every, form, limits
        outs = program.contract.outputs
        sources = [n for n, p in self.schema.predicates.items() if p.kind is not Kind.DERIVED]
        given = [(name, _here(place)) for name, place in pairs(inputs, "--input", sources)]
        places = [(f"--output {n}", n, p) for n, p in pairs(outputs, "--output", outs, once=True)]
        places += [(f"--{n}", n, p) for n, p in (("rejects", rejects), ("late", late)) if p]
        self.paths = {name: _here(place) for _, name, place in places}
        found = self._inputs(given, not no_header)
        check_places(
            [(f"the input of `{i.pred}`", str(i.path)) for i in found],
            [(option, place) for option, _, place in places],
            checkpoint,
        )
        for path in self.paths.values():
            kind_of_output(path)
            if not path.parent.is_dir():
                raise SourceError(f"'{path}' cannot be written: no such folder as '{path.parent}'")
        self.inputs = [part for source in found for part in source.parts()]
        self.printed = [n for n in outs if n not in self.paths]
        if checkpoint and self.printed and form == "table":
            # Tables are printed at the end: what came before an interruption would be missing.
            raise click.UsageError(
                f"--checkpoint needs --output {self.printed[0]}=PATH, or --format csv or json"
            )
        self.wanted = {} if self.schema.outputs else asked(self.schema.queries)
        self.streams = [i for i in self.inputs if i.pred in self.schema.streams]
        if checkpoint and (pipes := [i.path for i in self.streams if not i.path.is_file()]):
            raise click.UsageError(
                f"--checkpoint needs files that can be read again, and '{pipes[0]}' is not one"
            )
        self.consumed = [0] * len(self.streams)
        self.prefixes: list[Prefix | None] = [None] * len(self.streams)
        self.sinks: dict[str, Sink] = {}
        self.told = 0
        self.began = time.monotonic()
        self.saving = self.saved_at = 0.0

    # ------------------------------------------------------------------------ preparing

    def _inputs(self, given: list[tuple[str, Path]], header: bool) -> list[Input]:
        from streamlog.runtime.sources import Input, SourceError, declared_inputs

        named = {name for name, _ in given}
        found = [Input(name, path, header) for name, path in given]
        found += (i for i in declared_inputs(self.program, header=header) if i.pred not in named)
        for source in found:
            if not source.path.exists():
                raise SourceError(f"there is no file '{source.path}' for `{source.pred}`")
        return found

    def _engine(self) -> Engine:
        from streamlog.kernel import Kernel
        from streamlog.runtime.engine import Engine
        from streamlog.runtime.ingest import Checker
        from streamlog.runtime.sources import read

        tables: dict[str, list[Any]] = {}
        for source in self.inputs:
            if source.pred not in self.schema.streams:
                checker = Checker(self.program, source.pred)
                tables.setdefault(source.pred, []).extend(read(source, checker))
        return Engine(self.program.focused, Kernel, tables, self.limits, remember=False)

    def _resume(self, folder: Path) -> Mapping[str, Any]:
        """What the last checkpoint says about files, if there is one."""
        from streamlog.runtime import checkpoint
        from streamlog.runtime.envelope import CheckpointError
        from streamlog.runtime.prefix import Prefix, problem

        self.prefixes = [Prefix() for _ in self.streams]
        done = checkpoint.load(self.engine, folder)
        if done is None:
            return {}
        if done["outputs"].keys() != self.paths.keys():
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
                    "start anew with another checkpoint folder"
                )
        return done

    def _open_sinks(self, marks: Mapping[str, Any], files: Replacing) -> None:
        from streamlog.app.answers import columns_of
        from streamlog.runtime import checkpoint
        from streamlog.runtime.sinks import BEGINNING, open_sink, resumable_sink

        begun = checkpoint.begun(self.checkpoint) if self.checkpoint else {}
        for name, path in self.paths.items():
            names: Sequence[str] = ("stream", "where", "reason", "row")
            types: Sequence[Any] = (None,) * 4
            if name not in ("rejects", "late"):
                names, types = columns_of(self.engine, name)
            if self.checkpoint is None:
                self.sinks[name] = open_sink(files.beside(path), names, types)
                continue
            mark = BEGINNING if begun.get(name) == str(path) else None
            self.sinks[name] = resumable_sink(path, names, types, marks.get(name, mark))
        if self.checkpoint is not None and not marks:
            checkpoint.begin(self.checkpoint, {n: str(p) for n, p in self.paths.items()})

    # -------------------------------------------------------------------------- running

    def go(self) -> bool:
        """Everything from the first row to the closing table. Whether all was in order."""
        from streamlog.app.answers import Answers, columns_of
        from streamlog.runtime.lock import locked
        from streamlog.runtime.replacing import Replacing

        with ExitStack() as stack:
            stack.enter_context(locked(self.checkpoint) if self.checkpoint else nullcontext())
            files = stack.enter_context(Replacing())
            self.engine = self._engine()
            self.answers = Answers(partial(columns_of, self.engine), self.form, self.printed)
            done = self._resume(self.checkpoint) if self.checkpoint else {}
            if done.get("finished"):
                return self._finished(done["outputs"])
            if done:
                click.echo(f"going on after {sum(self.consumed)} rows", err=True)
            stack.callback(self._close_sinks)
            self._open_sinks(done.get("outputs", {}), files)
            with self._live():
                fine = self._feed()
                if fine:
                    self.engine.end()
                    fine = self._step(finished=True)
            self._close_sinks(complete=True)
            # Of a run that --strict has stopped, the rows that say why.
            kept = self.paths if fine else self.paths.keys() & {"rejects", "late"}
            files.commit(self.paths[name] for name in kept)
        self.answers.finish()
        self._closing()
        return fine

    def _finished(self, marks: Mapping[str, Any]) -> bool:
        from streamlog.runtime.envelope import CheckpointError
        from streamlog.runtime.sinks import missing_output

        for name, path in self.paths.items():
            if reason := missing_output(path, marks[name]):
                raise CheckpointError(
                    f"the run in '{self.checkpoint}' has finished, but {reason}: "
                    "start anew with another checkpoint folder"
                )
        click.echo(f"this run has finished; '{self.checkpoint}' has nothing to add", err=True)
        return True

    def _close_sinks(self, *, complete: bool = False) -> None:
        while self.sinks:
            _, sink = self.sinks.popitem()
            try:
                if complete and self.checkpoint is None:
                    sink.commit()
            finally:
                sink.close()

    def _feed(self) -> bool:
        from streamlog.runtime.sources import merged, read_files

        engine, streams = self.engine, self.streams
        left = {s: sum(i.pred == s for i in streams) for s in self.schema.streams}
        for name, count in left.items():
            if not count:  # nothing but the program's own facts
                engine.end(name)
        opened = read_files(streams, engine.checkers, self.consumed, self.prefixes)
        # Rows wait here for their stream's turn: until another stream's come, if that matters.
        waiting: dict[str, list[Any]] = {source.pred: [] for source in streams}
        turns = not engine.progress.independent
        last, left_of_step = "", self.every
        for which, row in merged(opened):
            pred = streams[which].pred
            if turns and pred != last:
                if last:
                    engine.push(last, waiting[last])
                    waiting[last].clear()
                last = pred
            if row is None:
                left[pred] -= 1
                if not left[pred]:
                    engine.push(pred, waiting[pred])
                    waiting[pred].clear()
                    engine.end(pred)
                continue
            waiting[pred].append(row)
            self.consumed[which] += 1
            left_of_step -= 1
            if not left_of_step:
                for name, rows in waiting.items():
                    engine.push(name, rows)
                    rows.clear()
                left_of_step = self.every
                if not self._step():
                    return False
        return True

    def _step(self, *, finished: bool = False) -> bool:
        for name, rows in self.engine.step().items():
            wanted = self.wanted.get(name)
            rows = rows if wanted is None else [r for r in rows if wanted(r)]
            if name in self.sinks:
                self.sinks[name].write(rows)
            else:
                self.answers.add(name, rows)
        strict_failure = self.strict and bool(self.engine.rejects)
        self._tell()
        if self.checkpoint and not strict_failure:
            self._save(finished)
        self._show()
        return not strict_failure

    def _save(self, finished: bool) -> None:
        """Not more than a fifth of the time goes into checkpoints; the last is always made."""
        from streamlog.runtime import checkpoint

        now = time.monotonic()
        if not finished and now - self.saved_at < 4 * self.saving:
            return
        assert self.checkpoint is not None
        sys.stdout.flush()
        extra = {
            "inputs": [
                {"pred": i.pred, "path": str(i.path), "rows": rows, **prefix.record()}
                for i, rows, prefix in zip(self.streams, self.consumed, self.prefixes, strict=True)
                if prefix is not None
            ],
            "outputs": {name: sink.commit() for name, sink in self.sinks.items()},
            "finished": finished,
        }
        checkpoint.save(self.engine, self.checkpoint, extra)
        self.saved_at = time.monotonic()
        self.saving = self.saved_at - now

    # -------------------------------------------------------------------------- telling

    def _tell(self) -> None:
        """Bad and late rows: the first few are shown, all go to their files."""
        from streamlog.app.snippet import visible
        from streamlog.runtime.ingest import Reject

        engine = self.engine
        for kind, found in (("rejects", engine.rejects), ("late", engine.late)):
            if not found:
                continue
            rows = []
            for record in found:
                where = record.where if isinstance(record, Reject) else ""
                raw = ascii(record.raw) if isinstance(record, Reject) else self._written(record)
                rows.append((record.stream, where, record.reason, raw))
                if self.told < TOLD:
                    word = "rejected" if isinstance(record, Reject) else "late"
                    place = f" {where}" if where else ""
                    click.echo(f"{word} {record.stream}{place}: {visible(record.reason)}", err=True)
                elif self.told == TOLD:
                    hint = "" if {"rejects", "late"} & self.paths.keys() else "; see --rejects"
                    click.echo(f"more such rows are counted, not shown{hint}", err=True)
                self.told += 1
            if kind in self.sinks:
                self.sinks[kind].write(rows)
        engine.rejects.clear()
        engine.late.clear()

    def _written(self, late: Late) -> str:
        """A row as it could have been read, times in words."""
        from streamlog.app.answers import columns_of
        from streamlog.runtime.sinks import json_object

        values = json_object(late.row, *columns_of(self.engine, late.stream)).values()
        return json.dumps(list(values), ensure_ascii=False)

    @contextmanager
    def _live(self) -> Iterator[None]:
        """A line that changes on a terminal, unless answers are written there at the same time."""
        self.status: Any = None
        busy = sys.stdout.isatty() and self.answers.form != "table" and bool(self.answers.preds)
        if not sys.stderr.isatty() or busy:
            yield
            return
        from streamlog.app.render import console

        with console(stderr=True).status("reading") as self.status:
            yield

    def _show(self) -> None:
        if self.status is None:
            return
        from streamlog.runtime.values import moment

        engine, report = self.engine, self.engine.report
        clocks = [c for c in engine.progress.clocks.values() if not c.ended]
        slowest = min(clocks, key=lambda c: c.progress, default=None)
        at = moment(slowest.progress, engine.clock(slowest.stream)) if slowest else "the end"
        rows = sum(c.rows for c in report.streams.values())
        self.status.update(
            f"{rows:,} rows · progress {at} · {report.state:,} rows of state · "
            f"{sum(report.answers.values()):,} answers"
        )

    def _closing(self) -> None:
        from rich.table import Table

        from streamlog.app.closing import closing_tables
        from streamlog.app.render import console

        out = console(stderr=True)
        seconds = time.monotonic() - self.began
        for block in closing_tables(self.engine, seconds):
            assert isinstance(block, Table | str)
            out.print(block)
