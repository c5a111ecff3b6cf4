"""A program over streaming DataFrames: every micro-batch is a step, and counts whole or not at all.

All streams are one query, so that a micro-batch has the new rows of all of them. It costs two
jobs, and one for each output that has new answers: the first looks at the new rows (how many, how
far in time, which are late), the second computes and stores everything: new rows, answers,
reorder buffers, the states of kernels. The order of rows within a micro-batch means nothing: a
row is late if it is earlier than the progress that its stream had before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamlog.compiler import Program
from streamlog.plan.parts import Strategy, stages
from streamlog.plan.pivot import how_many
from streamlog.plan.strategies import choose
from streamlog.runtime.columns import ColumnTypes
from streamlog.runtime.errors import EvaluationError
from streamlog.runtime.evaluation import Moment, context
from streamlog.runtime.executor import Limits
from streamlog.runtime.frontier import Frontiers
from streamlog.runtime.ingest import REPORT, SKIPPED
from streamlog.runtime.keeping import Keeping
from streamlog.runtime.progress import Progress
from streamlog.runtime.wall_clock import WallClock
from streamlog.spark import arrival
from streamlog.spark.arrival import Seen
from streamlog.spark.arrivals import LATE, REJECTS, Arrivals
from streamlog.spark.delivery import Delivery, Sink
from streamlog.spark.evaluation import Batch, Evaluation, release
from streamlog.spark.failures import explained
from streamlog.spark.files import Files
from streamlog.spark.ingest import doubt_of
from streamlog.spark.inputs import REPORT_TYPES, Inputs
from streamlog.spark.promises import Promises
from streamlog.spark.reading import Reading
from streamlog.spark.retained_rows import ROWS, Counts, RetainedRows
from streamlog.spark.run_status import Figures, Record
from streamlog.spark.session import Jobs
from streamlog.spark.skipped import ERRORS, SKIPPED_TYPES, rules_of_errors, skipped
from streamlog.spark.stamping import Stamping
from streamlog.spark.store import PULSE, Commit, Store, is_new


class Run:
    """A program on its way through micro-batches, with its state in a checkpoint folder."""

    def __init__(
        self,
        spark: SparkSession,
        program: Program,
        inputs: Inputs,
        types: ColumnTypes,
        sinks: Mapping[str, Sink],
        checkpoint: str,
        *,
        strategy: Strategy | None = None,
        limits: Limits | None = None,
        kernels: int | None = None,
        partitions: Mapping[str, Sequence[str]] = MappingProxyType({}),
        clock: WallClock | None = None,
    ) -> None:
        """Without a clock, the rows alone move time; they are stamped by the machine's."""
        self.spark, self.program, self.inputs, self.types = spark, program, inputs, types
        self.schema, self.delivery = program.schema, Delivery(spark, sinks, partitions)
        self.outputs = program.contract.outputs
        self.errors = rules_of_errors(program)
        closed = program.closed
        self.choices = choose(context(closed, types), strategy)
        strategies = {p: c.strategy for p, c in self.choices.items()}
        order = stages(closed.plan, strategies)
        evaluation = Evaluation(spark, closed, types, order, limits=limits)
        self.width = evaluation.width
        kernels = kernels or how_many(None, spark.sparkContext.defaultParallelism)
        if is_new(Files(spark, checkpoint)):
            self.delivery.begin(again=False)
        self.store = Store(spark, checkpoint, program, evaluation.layout, kernels)
        self.evaluation = evaluation.within(spark, self.store.kernels)
        self.progress = Progress.of(program)
        self.promises = Promises(self.progress, clock)
        self.reading = Reading(self.store, inputs, program)
        keeping, stored = Keeping(closed, strategies), (*self.outputs, *self.errors)
        self.retained = RetainedRows(self.store, keeping, types, self.width, stored)
        self.arrivals = Arrivals(inputs, self.progress, self.retained)
        now = clock or WallClock()
        self.stamping = Stamping(self.store, program, types, self.progress, now)
        self._restore()
        self._asked: int | None = None  # after which micro-batch another one was asked for
        self.record = Record()
        self._blame: Callable[[], EvaluationError | None] = lambda: None

    def _restore(self) -> None:
        """Where the last run has left it, if all that it has left is there."""
        last = self.store.last
        self.reading.verify(last)
        if last is None:
            self.delivery.begin(again=True)
            return
        self.delivery.go_on(last.delivered, last.batch)
        for stream, clock in last.clocks.items():
            own = self.progress[stream]
            own.progress, own.seen, own.reached, own.ended = clock

    @property
    def has_ended(self) -> bool:
        return self.store.last is not None and self.store.last.has_ended

    def query(self) -> DataFrame:
        """The new rows of all streams. There is one source more: a file there (`Store.pulse`) asks
        for a micro-batch although nothing comes."""
        streams = {n: self.inputs.validated(self.types, n) for n in self.reading.sources}
        self.store.files.make(PULSE)
        new = arrival.united(streams, self.types, self.width)
        return arrival.and_files_of(new, self.store.files.path(PULSE))

    # --------------------------------------------------------------------------- a batch

    def take(self, new: DataFrame, batch: int) -> None:
        """A micro-batch of `query`."""
        self.step(new, batch, self.reading.offsets(batch))

    def step(self, new: DataFrame | None, batch: int, offsets: tuple[str, ...] = ()) -> None:
        """Take a micro-batch (`arrival.united`), in which the query's sources have been read up to
        `offsets`; None: the streams have ended.

        One that counts already comes again when a crash lay between our commit and Spark's.
        """
        last = self.store.last
        if last is not None and batch <= last.batch:
            return
        if batch != (0 if last is None else last.batch + 1):
            raise self.store.refused(f"'spark' goes on with batch {batch}, but not 'commits'")
        began, most = time.monotonic(), self.evaluation.limits.seconds
        with (
            explained(lambda: self._blame()),
            Jobs(self.spark, f"streamlog: batch {batch}", most) as jobs,
        ):
            commit, figures = self._evaluated(new, batch, offsets)
        if self.progress.may_follow:
            self.store.pulse(batch)
        self.store.commit(commit)
        self.promises.make()
        self.record.add(figures(jobs.count, time.monotonic() - began))

    def _evaluated(
        self, new: DataFrame | None, batch: int, offsets: tuple[str, ...]
    ) -> tuple[Commit, Callable[[int, float], Figures]]:
        """What has come, what follows from it, what is stored, what is delivered."""
        spark = self.spark if new is None else new.sparkSession  # a query has its own
        last, before = self.store.last, self._frontiers() if self.store.last else None
        if new is None:
            offsets = last.offsets if last is not None else ()
            arrived = self.arrivals.end(spark, is_first=last is None)
        else:
            silent = self.reading.silent(offsets, last)
            self.promises.keep(silent)
            new = self.stamping.stamped(new, batch, silent).persist()
            self.progress.follow(silent)
            arrived = self.arrivals.take(new, is_first=last is None)
        moment = Moment(before, self._frontiers(), self.progress.values(), self.arrivals.spoken_of)
        needed = self.retained.needed(spark, before)
        states = self.retained.states(spark, len(self.evaluation.stages))
        evaluation, result = self.evaluation.within(spark, self.store.kernels), Batch(states=states)
        self._blame = partial(evaluation.blame, result, moment)
        evaluation.evaluate(result, arrived.rows, needed, moment)
        shelves = arrived.shelves | self.retained.of_batch(spark, result, moment.now)
        counts = self.retained.write(spark, shelves, batch)
        folders = self.retained.folders(spark, counts, batch, moment.now)
        self._deliver(spark, counts, batch)
        release(result)
        if new is not None:
            new.unpersist()
        answers = {p: counts.get(ROWS + p, (0, None))[0] for p in self.outputs}
        failed = {p: counts.get(ROWS + p, (0, None))[0] for p in self.errors}
        commit = Commit(
            batch,
            {s: (c.progress, c.seen, c.reached, c.ended) for s, c in self.progress.clocks.items()},
            moment.spoken_of,
            self._counted(arrived.seen, answers, failed),
            folders,
            {p: tuple(t.value for t in types) for p, types in self.types.items()},
            offsets,
            self.reading.identities,
            dict(self.delivery.delivered),
        )
        rows = sum(f.rows for found in folders.values() for f in found)
        count = sum(len(found) for found in folders.values())
        return commit, partial(Figures, batch, arrived.seen, answers, rows, count, result.rounds)

    def pulse(self) -> None:
        """Ask for a micro-batch if there are rows for which what is promised may make a
        difference."""
        last = self.store.last
        waits = last is not None and any(last.folders.values())
        if last is not None and waits and self._asked != last.batch and self.promises.moves:
            self._asked = last.batch
            self.store.pulse(last.batch)

    def _frontiers(self) -> Frontiers:
        closed = self.program.closed
        frontiers = Frontiers(closed.contract, closed.schema)
        frontiers.move(self.progress.values())
        return frontiers

    def _deliver(self, spark: SparkSession, counts: Counts, batch: int) -> None:
        """New answers to their sinks."""
        names, written = self.program.schema.column_names, self.retained.written
        for name in self.delivery.sinks:
            if name == ERRORS:
                preds = [p for p in self.errors if ROWS + p in counts]
                found = {p: written(spark, batch, ROWS + p, self.types[p]) for p in preds}
                errors = skipped(found, self.errors)
                if errors is None:
                    self.delivery.nothing(name, batch)
                else:
                    self.delivery.deliver(name, errors, SKIPPED, SKIPPED_TYPES, batch)
                continue
            if name in (REJECTS, LATE):
                shelf, columns, types = name, REPORT, REPORT_TYPES
            else:
                shelf, columns, types = ROWS + name, names[name], self.types[name]
            if shelf in counts:
                rows = written(spark, batch, shelf, types)
                self.delivery.deliver(name, rows, columns, types, batch)
            else:
                self.delivery.nothing(name, batch)

    def _counted(
        self, seen: Mapping[str, Seen], answers: Mapping[str, int], failed: Mapping[str, int]
    ) -> dict[str, Any]:
        """The figures of the run so far."""
        old = self.store.last.figures if self.store.last else {}
        streams = dict(old.get("streams", {}))
        for name, found in seen.items():
            so_far = streams.get(name, [0, 0, 0])
            now = (found.rows, found.rejected, found.late)
            streams[name] = [a + b for a, b in zip(so_far, now, strict=True)]
        total = dict(old.get("answers", {}))
        for name, count in answers.items():
            total[name] = total.get(name, 0) + count
        errors = dict(old.get("skipped", {}))
        for pred, count in failed.items():
            errors[self.errors[pred]] = errors.get(self.errors[pred], 0) + count
        tables = old.get("tables") or {
            name: [count.rows, count.rejected] for name, count in self.inputs.counts().items()
        }
        doubts = dict(old["doubts"]) if old else self.inputs.doubts()
        for name, found in seen.items():
            if found.odd and name not in doubts:
                doubts[name] = doubt_of(self.program, name, found.odd)
        return {
            "streams": streams,
            "tables": tables,
            "answers": total,
            "skipped": errors,
            "doubts": doubts,
        }
