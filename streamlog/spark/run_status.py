"""What an operator asks of a streaming run: is it alive, how far is it, and who holds it back."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from threading import Event
from typing import TYPE_CHECKING

from attrs import field, frozen, mutable
from pyspark.sql.streaming.listener import StreamingQueryListener

from streamlog.runtime.several_timelines import buffer_of
from streamlog.runtime.status import Held, held
from streamlog.runtime.values import moment
from streamlog.spark.arrival import Seen

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        SourceProgress,
    )

    from streamlog.spark.streaming import Run

# Micro-batches whose figures are kept; a run may have millions.
KEPT = 1000


@frozen
class Figures:
    """A micro-batch in numbers."""

    batch: int
    streams: Mapping[str, Seen]
    answers: Mapping[str, int]
    state: int  # rows that are stored
    folders: int  # that they are stored in
    rounds: int
    jobs: int
    seconds: float


@mutable
class Record:
    """The last micro-batches since the start, and sums over all of them."""

    last: deque[Figures] = field(factory=lambda: deque(maxlen=KEPT))
    batches: int = 0
    jobs: int = 0
    rounds: int = 0

    def add(self, figures: Figures) -> None:
        self.last.append(figures)
        self.batches += 1
        self.jobs += figures.jobs
        self.rounds += figures.rounds


@frozen
class Source:
    """A source of Spark's in its last micro-batch."""

    description: str
    rows: int
    rows_a_second: float  # as they come
    behind: int | None  # messages still to be read, of the topic's partition with the most


@frozen
class Status:
    """Where a run stands."""

    is_active: bool
    failure: str | None
    batch: int | None  # the last that counts
    rows: int  # since the very first start, as are the answers
    answers: int
    state: int  # rows that are stored
    progress: Mapping[str, str]  # how far each stream has come, in words
    held: tuple[Held, ...]  # outputs, and the stream that each waits for most
    sources: tuple[Source, ...]
    rows_a_second: float  # that the last micro-batch has worked off
    seconds: float  # that the last micro-batch took

    @property
    def slowest(self) -> str | None:
        """The stream that holds back the most, when there are several to wait for."""
        if len(self.progress) < 2 or not self.held:
            return None
        most = min(self.held, key=lambda h: (h.complete, h.output))
        seen = "never seen" if most.seen is None else f"last seen {moment(most.seen, most.clock)}"
        return f"held by `{most.stream}`, {seen}"


class Watch(StreamingQueryListener):
    """What Spark tells of one query: rates, and why it ended."""

    def __init__(self) -> None:
        self.run_id = ""  # of the query, once it has one
        self.sources: tuple[Source, ...] = ()
        self.rows_a_second = 0.0
        self.failure: str | None = None
        self.has_ended = Event()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        report = event.progress
        if str(report.runId) == self.run_id and report.numInputRows:
            self.sources = tuple(map(_source, report.sources))
            self.rows_a_second = report.processedRowsPerSecond

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        if str(event.runId) == self.run_id:
            self.failure = event.exception
            self.has_ended.set()


def _source(report: SourceProgress) -> Source:
    behind = dict(report.metrics or {}).get("maxOffsetsBehindLatest")
    return Source(
        report.description,
        report.numInputRows,
        report.inputRowsPerSecond,
        None if behind is None else int(behind),
    )


def status_of(run: Run, watch: Watch, is_active: bool) -> Status:
    commit, clocks = run.store.last, run.progress.clocks
    figures = commit.figures if commit else {}
    # Which rows wait is in files; how far the streams are says who is waited for.
    progress = run.progress
    none_known = {s: buffer_of(progress.timelines(s)) for s in run.schema.streams}
    last = run.record.last[-1] if run.record.last else None
    return Status(
        is_active=is_active,
        failure=watch.failure,
        batch=commit.batch if commit else None,
        rows=sum(count for count, *_ in figures.get("streams", {}).values()),
        answers=sum(figures.get("answers", {}).values()),
        state=sum(f.rows for found in commit.folders.values() for f in found) if commit else 0,
        progress={
            name: "the end" if c.ended else moment(c.progress, c.type) for name, c in clocks.items()
        },
        held=held(run.program, progress, none_known, {}, lambda name: run.types[name][0]),
        # The last one is ours, for micro-batches without rows (`Run.query`).
        sources=watch.sources[:-1],
        rows_a_second=watch.rows_a_second,
        seconds=last.seconds if last else 0.0,
    )
