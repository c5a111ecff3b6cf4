"""`streamlog run --engine local`: a program over files, in this process."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamlog.app.run import pairs

if TYPE_CHECKING:
    from streamlog.compiler import Compilation
    from streamlog.runtime.engine import Engine, Late
    from streamlog.runtime.sinks import Sink
    from streamlog.runtime.sources import Input

TOLD = 5  # rejected or late rows that are shown; the rest is counted


def _here(place: str) -> Path:
    """A path of this machine, which is all that this process can use alone."""
    if "://" in place:
        raise click.UsageError(f"'{place}' is for --engine spark")
    return Path(place)


class LocalRun:
    """One run: inputs, engine, outputs, and what is told along the way."""

    def __init__(
        self,
        program: Compilation,
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
    ) -> None:
        from streamlog.analysis.schema import Kind
        from streamlog.app.answers import Answers, asked, columns_of
        from streamlog.compiler import the

        self.program, self.schema = program, the(program.schema)
        self.checkpoint = _here(checkpoint) if checkpoint else None
        self.strict, self.every = strict, every
        answers = the(program.contract).outputs
        sources = [n for n, p in self.schema.predicates.items() if p.kind is not Kind.DERIVED]
        given = [(name, _here(place)) for name, place in pairs(inputs, "--input", sources)]
        self.inputs = self._inputs(given, not no_header)
        places = dict(pairs(outputs, "--output", answers))
        places |= {n: p for n, p in (("rejects", rejects), ("late", late)) if p}
        self.paths = {name: _here(place) for name, place in places.items()}
        printed = [n for n in answers if n not in self.paths]
        if checkpoint and printed and form == "table":
            # Tables are printed at the end: what came before an interruption would be missing.
            raise click.UsageError(
                f"--checkpoint needs --output {printed[0]}=PATH, or --format csv or json"
            )
        self.engine = self._engine(not no_header)
        self.answers = Answers(partial(columns_of, self.engine), form, printed)
        self.wanted = {} if self.schema.outputs else asked(self.schema.queries)
        self.streams = [i for i in self.inputs if i.pred in self.schema.streams]
        self.consumed = [0] * len(self.streams)
        self.sinks: dict[str, Sink] = {}
        self.told = 0
        self.began = time.monotonic()
        self.saving = self.saved_at = 0.0

    # ------------------------------------------------------------------------ preparing

    def _inputs(self, given: list[tuple[str, Path]], header: bool) -> list[Input]:
        from streamlog.runtime.sources import Input, SourceError, declared_inputs, format_of

        named = {name for name, _ in given}
        found = [Input(name, path, header) for name, path in given]
        found += (i for i in declared_inputs(self.program, header=header) if i.pred not in named)
        for source in found:
            if not source.path.exists():
                raise SourceError(f"there is no file '{source.path}' for `{source.pred}`")
            format_of(source.path)
        return found

    def _engine(self, header: bool) -> Engine:
        from streamlog.compiler import focused
        from streamlog.kernel import Kernel
        from streamlog.runtime.engine import Engine
        from streamlog.runtime.ingest import Checker
        from streamlog.runtime.sources import read

        tables: dict[str, list[Any]] = {}
        for source in self.inputs:
            if source.pred not in self.schema.streams:
                checker = Checker(self.program, source.pred)
                tables.setdefault(source.pred, []).extend(read(source, checker))
        return Engine(focused(self.program), Kernel, tables, remember=False)

    def _resume(self) -> Mapping[str, Any]:
        """What the last checkpoint says about files, if there is one."""
        from streamlog.runtime import checkpoint

        done = checkpoint.load(self.engine, self.checkpoint) if self.checkpoint else None
        if done is None:
            return {}
        names = [[i.pred, str(i.path)] for i in self.streams]
        if done["inputs"] != names or done["outputs"].keys() != self.paths.keys():
            raise checkpoint.CheckpointError(
                f"the checkpoint in '{self.checkpoint}' was made with other inputs or outputs"
            )
        self.consumed = list(done["consumed"])
        return done

    def _open_sinks(self, marks: Mapping[str, int]) -> None:
        from streamlog.app.answers import columns_of
        from streamlog.runtime.sinks import open_sink

        for name, path in self.paths.items():
            names: Sequence[str] = ("stream", "where", "reason", "row")
            types: Sequence[Any] = (None,) * 4
            if name not in ("rejects", "late"):
                names, types = columns_of(self.engine, name)
            self.sinks[name] = open_sink(
                path, names, types, parts=self.checkpoint is not None, mark=marks.get(name)
            )

    # -------------------------------------------------------------------------- running

    def go(self) -> bool:
        """Everything from the first row to the closing table. Whether all was in order."""
        done = self._resume()
        if done.get("finished"):
            click.echo(f"this run has finished; '{self.checkpoint}' has nothing to add", err=True)
            return True
        if done:
            click.echo(f"going on after {sum(self.consumed)} rows", err=True)
        self._open_sinks(done.get("outputs", {}))
        try:
            with self._live():
                fine = self._feed()
                if fine:
                    self.engine.end()
                    fine = self._step(finished=True)
        finally:
            for sink in self.sinks.values():
                sink.close()
        self.answers.finish()
        self._closing()
        return fine

    def _feed(self) -> bool:
        from streamlog.runtime.sources import merged, read

        engine, streams = self.engine, self.streams
        left = {s: sum(i.pred == s for i in streams) for s in self.schema.streams}
        for name, count in left.items():
            if not count:  # nothing but the program's own facts
                engine.end(name)
        opened = [
            read(source, engine.checkers[source.pred], skip)
            for source, skip in zip(streams, self.consumed, strict=True)
        ]
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
            "inputs": [[i.pred, str(i.path)] for i in self.streams],
            "consumed": self.consumed,
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
