"""Structured Streaming: a program as a query that runs until it is stopped."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from streamlog import prepared
from streamlog.compiler import Program
from streamlog.plan.parts import Strategy
from streamlog.runtime.columns import column_types
from streamlog.runtime.executor import Limits
from streamlog.runtime.python_functions import check_allowed
from streamlog.runtime.values import to_time
from streamlog.runtime.wall_clock import WallClock
from streamlog.spark.arrivals import LATE, REJECTS
from streamlog.spark.delivery import Sink
from streamlog.spark.failures import in_our_words
from streamlog.spark.files import Files
from streamlog.spark.holding import held
from streamlog.spark.inputs import InputError, Inputs, check_given
from streamlog.spark.promises import Pulses
from streamlog.spark.run_status import Figures, Status, Watch, status_of
from streamlog.spark.session import usable
from streamlog.spark.skipped import ERRORS
from streamlog.spark.streaming import Run

# What goes to sinks that are not outputs.
WHAT = {REJECTS: "rejected rows", LATE: "late rows", ERRORS: "what cannot be computed"}
_PATIENCE = 2.0  # seconds


class Running:
    """A program that runs, and holds its checkpoint until `stop` or `end`."""

    def __init__(self, run: Run, query: StreamingQuery, watch: Watch, held: ExitStack) -> None:
        self.run, self.query, self._watch, self._held = run, query, watch, held
        watch.run_id = str(query.runId)
        self._pulses = Pulses(run.pulse)

    @property
    def figures(self) -> list[Figures]:
        """Of the last micro-batches since it was started; `run.record` has sums over all."""
        return list(self.run.record.last)

    @property
    def status(self) -> Status:
        return status_of(self.run, self._watch, self.is_active)

    @property
    def is_active(self) -> bool:
        return self.query.isActive

    def wait(self, seconds: float | None = None) -> bool:
        """Until it is stopped, or fails; whether that was within the time."""
        try:
            if seconds is None:
                self.query.awaitTermination()
                return True
            return bool(self.query.awaitTermination(int(seconds)))
        except StreamingQueryException as error:
            raise in_our_words(error) or error from None

    def catch_up(self) -> None:
        """Until all that has come by now has been evaluated."""
        try:
            self.query.processAllAvailable()
        except StreamingQueryException as error:
            raise in_our_words(error) or error from None

    def advance(self, time: int | str, stream: str | None = None) -> None:
        """Nothing earlier than `time` will come any more, in one stream, on one timeline
        (`report.sys`) or in all streams. It counts with
        the next micro-batch that finds nothing of the stream unread; a run that is killed before
        has to be told again."""
        at = time if type(time) is int else to_time(time)
        schema = self.run.schema
        for name in schema.timelines if stream is None else (stream,):
            timeline = schema.timeline(name)
            if timeline is None:
                raise InputError(f"`{name}` is not a stream")
            self.run.promises.advance(at, timeline)

    def stop(self) -> None:
        """After the micro-batch at hand; a new start goes on from there."""
        with self._held:
            self._stop()

    def _stop(self) -> None:
        self._pulses.stop()
        before = self.run.store.last
        while self.run.store.last is before and self.query.status["isTriggerActive"]:
            time.sleep(0.02)
        self.query.stop()
        # Spark tells of the end a little later, and complains if nobody is there any more.
        self._watch.has_ended.wait(_PATIENCE)
        self.run.spark.streams.removeListener(self._watch)

    def end(self) -> None:
        """Stop, and take it that nothing will come any more: what waited is decided."""
        with self._held:
            self._stop()
            last = self.run.store.last
            if not self.run.has_ended:
                self.run.step(None, 0 if last is None else last.batch + 1)


def start(
    program: Program,
    inputs: Mapping[str, DataFrame],
    sinks: Mapping[str, Sink],
    checkpoint: str,
    *,
    trigger: Mapping[str, Any] | None = None,
    strategy: Strategy | None = None,
    limits: Limits | None = None,
    kernels: int | None = None,
    empty: Collection[str] = (),
    on_error: str = "stop",
    allow_python: bool = False,
    partitions: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Running:
    """Evaluate a compiled program over streaming DataFrames.

    `inputs` has a streaming DataFrame for each stream, and DataFrames for tables; inputs that have
    no rows are named in `empty`. `sinks` has for
    each output, and for `rejects` and `late`, a folder or a function that takes the new answers
    and the number of the micro-batch; a folder may be partitioned by columns
    (`partitions`). With `on_error="skip"` what cannot be computed is left out, and goes to the sink
    `errors`; `allow_python` lets the program call the Python functions that it declares.
    `trigger` is Spark's: `{"processingTime": "1 second"}`,
    `{"availableNow": True}`. A run that was stopped or killed is continued by the same call, with
    as many kernels as it was begun with: one for each core, unless `kernels` says otherwise.
    """
    frames = [frame for frame in inputs.values() if frame.isStreaming]
    if not frames:
        raise InputError("none of the DataFrames is a streaming one; `run` is for complete data")
    program = prepared(program, on_error, allow_python)
    check_given(program, inputs, empty)
    given = Inputs.of(usable(frames[0].sparkSession), program, inputs, empty)
    return started(
        program,
        given,
        sinks,
        checkpoint,
        trigger=trigger,
        strategy=strategy,
        limits=limits,
        kernels=kernels,
        partitions=partitions,
    )


def started(
    program: Program,
    given: Inputs,
    sinks: Mapping[str, Sink],
    checkpoint: str,
    *,
    trigger: Mapping[str, Any] | None = None,
    strategy: Strategy | None = None,
    limits: Limits | None = None,
    kernels: int | None = None,
    partitions: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Running:
    """`start`, for inputs that are known to be the program's."""
    for name in program.contract.outputs:
        if name in (REJECTS, LATE, ERRORS):
            raise InputError(f"the sink `{name}` is for {WHAT[name]}: rename the output `{name}`")
    for name in sinks:
        if name not in (*program.contract.outputs, REJECTS, LATE, ERRORS):
            raise InputError(f"the program has no output `{name}`")
    check_allowed(program)
    types = column_types(program.closed, given.types)
    goes_on = not {"availableNow", "once"} & (trigger or {}).keys()
    with ExitStack() as holding:
        holding.enter_context(held(Files(given.spark, checkpoint)))
        run = Run(
            given.spark,
            program,
            given,
            types,
            sinks,
            checkpoint,
            strategy=strategy,
            limits=limits,
            kernels=kernels,
            partitions=partitions,
            clock=WallClock() if goes_on else None,
        )
        if run.has_ended:
            raise InputError(
                f"the run in '{checkpoint}' has ended; start a new one in a new folder"
            )
        writer = (
            run.query()
            .writeStream.foreachBatch(run.take)
            .queryName(f"streamlog {checkpoint}")  # one session may have several
            .option("checkpointLocation", run.store.files.path("spark"))
        )
        if trigger:
            writer = writer.trigger(**trigger)
        watch = Watch()
        given.spark.streams.addListener(watch)
        return Running(run, writer.start(), watch, holding.pop_all())
