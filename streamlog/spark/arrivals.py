"""What has come with a micro-batch: the clocks move, and rows leave the buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from attrs import field, frozen
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamlog.runtime.evaluation import clamped
from streamlog.runtime.executor import BEGIN, END
from streamlog.runtime.progress import Clock, Progress
from streamlog.spark import arrival, wire
from streamlog.spark.arrival import Seen
from streamlog.spark.ingest import PLACE
from streamlog.spark.inputs import REPORT_TYPES, Inputs
from streamlog.spark.retained_rows import BUFFER, ROWS, RetainedRows, Shelves

REJECTS, LATE = "rejects", "late"


@frozen
class Arrived:
    rows: dict[str, DataFrame]  # what goes to the rules, none twice; in the first batch tables too
    shelves: Shelves  # what waits, and what is set aside
    seen: Mapping[str, Seen] = field(factory=dict)


class Arrivals:
    def __init__(self, inputs: Inputs, progress: Progress, retained: RetainedRows) -> None:
        self.inputs, self.progress, self.retained = inputs, progress, retained
        self.types, self.width = retained.types, retained.width

    def take(self, new: DataFrame, *, is_first: bool) -> Arrived:
        """One job looks at the new rows (`arrival.united`). The order of rows within a micro-batch
        means nothing: a row is late if it is earlier than the progress its stream had before."""
        spark = new.sparkSession
        streams = {s: self.progress.timelines(s) for s in self.inputs.program.schema.streams}
        seen = arrival.look(new, streams)
        come: dict[str, DataFrame] = {}
        rejected = [name for name, s in seen.items() if s.rejected]
        inputs = self.inputs.within(spark) if is_first or rejected else self.inputs
        bad = self._rejects(inputs, new, rejected)
        late: list[DataFrame] = []
        latest: dict[str, int | None] = {}
        for stream, timelines in streams.items():
            reached, limits = seen[stream].latest, dict[str, int]()
            for clock, at in zip(timelines, reached, strict=True):
                if clock.horizon is not None and at is not None:
                    known = self.progress.known(clock.stream)
                    limit = arrival.believed(new, stream, clock, known)
                    if limit is not None:
                        limits[clock.stream] = limit
                        bad.append(arrival.doubted_of(new, stream, clock, self.types, limit))
            if limits and len(timelines) > 1:  # a row that one of them doubts moves none
                reached = arrival.reach(new, timelines, limits)
            elif limits:
                reached = (limits[stream],)
            latest |= dict(zip((c.stream for c in timelines), reached, strict=True))
            if seen[stream].rows:
                come[stream] = arrival.rows_of(new, timelines, self.types, limits)
            if seen[stream].late:
                late.append(arrival.late_of(new, timelines, self.types))
        before = self.progress.values()
        for clock in self.progress.clocks.values():
            at = latest[clock.stream]
            if at is not None:
                self.progress.saw(clock, at, max(clock.progress, at - clock.slack), lift=False)
        arrived = self._leaving(spark, come, before, inputs if is_first else None)
        if is_first and self._has_tables:
            bad.append(inputs.rejects(self.types))
        for name, found in ((REJECTS, bad), (LATE, late)):
            if found:
                rows = reduce(DataFrame.unionAll, found)
                arrived.shelves[name] = wire.packed(rows, name, REPORT_TYPES, self.width)
        return Arrived(arrived.rows, arrived.shelves, seen)

    def end(self, spark: SparkSession, *, is_first: bool) -> Arrived:
        """The streams have ended."""
        before = self.progress.values()
        self.progress.end()
        inputs = self.inputs.within(spark) if is_first else None
        arrived = self._leaving(spark, {}, before, inputs)
        if inputs is not None and self._has_tables:
            rows = inputs.rejects(self.types)
            arrived.shelves[REJECTS] = wire.packed(rows, REJECTS, REPORT_TYPES, self.width)
        return arrived

    @property
    def spoken_of(self) -> int:
        """The latest time of a row or of the progress of a stream."""
        clocks = self.progress.clocks.values()
        # Rows count when they have left the buffer, as they do in the other engines.
        times = [min(c.seen, c.progress) for c in clocks]
        times += (c.progress for c in clocks if c.progress < END)
        last = self.retained.store.last
        return max([last.spoken_of if last else BEGIN, *times])

    @property
    def _has_tables(self) -> bool:
        return bool(self.inputs.records.keys() - self.progress.clocks.keys())

    def _rejects(self, inputs: Inputs, new: DataFrame, streams: Sequence[str]) -> list[DataFrame]:
        """The bad rows of streams. To number their lines, the files that have some are read anew,
        which costs nothing as long as there are none."""
        in_files = [s for s in streams if inputs.records[s].anew is not None]
        files = arrival.bad_files(new, in_files) if in_files else {}
        found = []
        for stream in streams:
            if stream not in files:
                found.append(arrival.rejects_of(new, stream))
                continue
            found.append(inputs.rejects_in(self.types, stream, files[stream]))
            if inputs.program.schema[stream].arrival is not None:
                found.append(arrival.rejects_of(new.where(F.col(PLACE).isNull()), stream))
        return found

    def _leaving(
        self,
        spark: SparkSession,
        come: Mapping[str, DataFrame],
        before: Mapping[str, int],
        first: Inputs | None,
    ) -> Arrived:
        """Rows up to the progress leave the buffers, each once; the `first` time with tables and
        the program's own facts."""
        stored = self.retained.stored
        facts = first.facts(self.types) if first is not None else {}
        arrived = Arrived(first.tables(self.types) if first is not None else {}, {})
        schema = self.inputs.program.schema
        for stream in schema.streams:
            timelines = self.progress.timelines(stream)
            held = stored(spark, BUFFER + stream, stream)
            parts = [come.get(stream), held, facts.get(stream)]
            rows = [part for part in parts if part is not None]
            if not rows:
                continue
            waiting = reduce(DataFrame.unionAll, rows).distinct()
            passed = _any_of(timelines, lambda c: _time(c) <= clamped(c.progress))
            if timelines[0].progress < END:
                staying = waiting.where(~passed)
                arrived.shelves[BUFFER + stream] = self.retained.packed(staying, stream)
            leaving = waiting.where(passed)
            old = stored(spark, ROWS + stream, stream)
            if old is not None:
                gone = _any_of(timelines, lambda c: _time(c) < clamped(before[c.stream]))
                edge = old.where(~gone)
                edge = edge.toDF(*(f"e{i}" for i in range(len(edge.columns))))
                same = (f"{c} <=> e{i}" for i, c in enumerate(leaving.columns))
                leaving = leaving.join(edge, on=F.expr(" AND ".join(same)), how="left_anti")
            arrived.rows[stream] = leaving
            for name, view in schema.views.get(stream, {}).items():
                arrived.rows[name] = wire.viewed(leaving, view)
        return arrived


def _time(clock: Clock) -> Column:
    return F.col(f"c{clock.column}")


def _any_of(timelines: Sequence[Clock], test: Callable[[Clock], Column]) -> Column:
    return reduce(Column.__or__, map(test, timelines))
