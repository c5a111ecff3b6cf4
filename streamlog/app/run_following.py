"""`streamlog run --engine local --follow`: growing files, folders being filled, standard input."""

from __future__ import annotations

import select
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import click

from streamlog.app.interrupts import asked_to_stop
from streamlog.app.run_base import Options
from streamlog.app.run_local import LocalRun
from streamlog.compiler import Program
from streamlog.control.metrics import LOOPBACK, Metrics, MetricsError
from streamlog.runtime.data_files import data_files, fixed_part, is_pattern, one_kind
from streamlog.runtime.following import follow
from streamlog.runtime.prefix import Prefix
from streamlog.runtime.replacing import Replacing
from streamlog.runtime.sinks import Sink, Types, resumable_sink
from streamlog.runtime.sources import Arriving, Input, SourceError
from streamlog.runtime.wall_clock import WallClock

_PAUSE = 0.2  # seconds between two looks at files


class FollowingRun(LocalRun):
    """Goes on until it is asked to stop, or standard input ends and there is nothing else."""

    asked: Event
    tails: list[Arriving]
    clock = WallClock()
    metrics: Metrics | None = None
    step_seconds = 0.0
    misuse = (*LocalRun.misuse, MetricsError)

    def __init__(self, program: Program, options: Options) -> None:
        super().__init__(program, options)
        followed = [source for source in self.given if source.pred in self.schema.streams]
        self.folders = [source for source in followed if source.form is None]
        self.filled = [s for s in self.folders if s.path.is_dir() or is_pattern(s.path)]
        self.standard = next((source for source in followed if source.form is not None), None)
        # Streams that come to an end: no file of theirs grows, and no folder is filled.
        growing = {s.pred for s in self.folders if s in self.filled or not s.is_whole}
        self.ending = {s.pred for s in followed} - growing
        self.stamps = any(self.schema[s].arrival is not None for s in self.schema.streams)
        self.has_ended = self.standard is None  # whether standard input has

    def _parts(self, source: Input) -> list[Input]:
        """Of a stream, what is there by now; there may be nothing yet."""
        path = source.path
        if source.form is not None or source.pred not in self.schema.streams:
            return super()._parts(source)
        if is_pattern(path) and not Path(fixed_part(path)).is_dir():
            raise SourceError(f"there is no folder '{fixed_part(path)}' for '{path}'")
        found = data_files(path)
        if found:
            one_kind(found, path)
        return [Input(source.pred, file, source.header) for file in found]

    # -------------------------------------------------------------------------- running

    def evaluate(self) -> None:
        port = self.options.metrics
        with ExitStack() as stack:
            self.asked = stack.enter_context(asked_to_stop())
            self.metrics = None if port is None else Metrics(port)
            if self.metrics is not None:
                stack.callback(self.metrics.close)
                click.echo(f"metrics: http://{LOOPBACK}:{self.metrics.port}/metrics", err=True)
            super().evaluate()

    def _all_rows(self) -> None:
        followed = {source.pred for source in self.given}
        for name in self.schema.streams:
            if name not in followed:  # nothing but the program's own facts
                self.engine.end(name)
        self.prefixes = [prefix or Prefix() for prefix in self.prefixes]
        self.tails = [self._tail(which) for which in range(len(self.streams))]
        self._follow()
        if self.failed:
            return
        if self.asked.is_set():
            self._save_rest(at_once=True)
        else:
            self.engine.end()
            self._step(finished=True)

    def _follow(self) -> None:
        """Round by round: what has come since the last is evaluated together."""
        while not self.is_over():
            has_come = self._take_round()
            if self.is_over():
                return
            if has_come or self.engine.progress.ticking:
                self._step()
            if self.metrics is not None:
                self.metrics.look(self.engine, self.step_seconds, self.withheld)
            if not has_come:
                self._save_rest()
                self._wait()

    def _take_round(self) -> bool:
        """Take what has come; whether something has."""
        before = sum(self.consumed), self.has_ended
        reading = self.clock.now()  # all that has come by now is read in this round
        self._look()
        unread = Counter(source.pred for source in self.streams)

        def is_read(pred: str) -> None:
            unread[pred] -= 1
            if not unread[pred]:
                self.engine.tick(pred, reading)
                self._ended(pred)

        self._push_all(self.tails, is_read)
        if not self.is_over():
            for folder in self.filled:
                if folder.pred not in unread:  # without any file yet
                    self.engine.tick(folder.pred, reading)
        return before != (sum(self.consumed), self.has_ended)

    def is_over(self) -> bool:
        nothing_left = self.has_ended and not self.folders
        return super().is_over() or nothing_left or self.asked.is_set()

    def _tail(self, which: int) -> Arriving:
        source, prefix = self.streams[which], self.prefixes[which]
        assert prefix is not None
        rows = follow(source, self.engine.checkers[source.pred], self.consumed[which], prefix)
        yield from rows
        self.has_ended = True  # only standard input has an end

    def _ended(self, pred: str) -> None:
        """All that there is of a stream has been read: for this round, or for good."""
        is_standard = self.standard is not None and self.standard.pred == pred
        if pred in self.ending and (self.has_ended or not is_standard):
            self.engine.end(pred)

    def _look(self) -> None:
        """New files of folders and patterns."""
        known = {(source.pred, source.path) for source in self.streams}
        for folder in self.filled:
            for part in self._parts(folder):
                if (part.pred, part.path) not in known:
                    self.streams.append(part)
                    self.consumed.append(0)
                    self.prefixes.append(Prefix())
                    self.tails.append(self._tail(len(self.streams) - 1))

    def _wait(self) -> None:
        if self.has_ended:
            self.asked.wait(_PAUSE)
        else:
            select.select([0], [], [], _PAUSE)

    # ------------------------------------------------------------------------ reporting

    def _live_line(self) -> str:
        return " · ".join((super()._live_line(), *self.silences))

    def _print_closing(self) -> None:
        super()._print_closing()
        self.print_status(map(str, self.engine.status()))

    # -------------------------------------------------------------------------- writing

    def _open_sink(self, path: Path, names: Sequence[str], types: Types, files: Replacing) -> Sink:
        """Answers are written as they become final."""
        if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe
            return super()._open_sink(path, names, types, files)
        return resumable_sink(path, names, types)

    def _step(self, *, finished: bool = False) -> None:
        began = time.monotonic()
        if self.stamps and self._so_far()[0] != self.saved[0]:
            # Rows that are read again get other stamps: nothing is computed before these are saved.
            self._save_rest(at_once=True)
        super()._step(finished=finished)
        self.step_seconds += time.monotonic() - began
        for sink in self.sinks.values():
            if self.checkpoint:
                sink.flush()
            else:
                sink.commit()
