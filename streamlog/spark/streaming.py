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
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamlog.compiler import Program
from streamlog.plan.parts import Strategy, stages
from streamlog.plan.pivot import how_many
from streamlog.plan.strategies import choose
from streamlog.runtime.executor import BEGIN, END, Limits
from streamlog.runtime.frontier import Frontiers
from streamlog.runtime.ingest import REPORT
from streamlog.runtime.progress import Progress
from streamlog.spark import arrival, wire
from streamlog.spark.arrival import Seen
from streamlog.spark.columns import ColumnTypes
from streamlog.spark.delivery import Delivery, Sink
from streamlog.spark.evaluation import Batch, Evaluation, Moment, clamped, context
from streamlog.spark.failures import explained
from streamlog.spark.files import Files
from streamlog.spark.inputs import REPORT_TYPES, Inputs
from streamlog.spark.keeping import Keeping
from streamlog.spark.reading import Reading
from streamlog.spark.session import Jobs
from streamlog.spark.shelves import additions, enough
from streamlog.spark.store import PULSE, SHELF, Commit, Folder, Store, is_new
from streamlog.spark.watching import Figures, Record

ROWS, FEW, BUFFER, STATE = "rows ", "few ", "buffer ", "state "
REJECTS, LATE = "rejects", "late"


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
    ) -> None:
        self.spark, self.program, self.inputs, self.types = spark, program, inputs, types
        self.schema, self.delivery = program.schema, Delivery(spark, sinks)
        self.outputs = program.contract.outputs
        closed = program.closed
        self.choices = choose(context(closed, types), strategy)
        strategies = {p: c.strategy for p, c in self.choices.items()}
        self.keeping = Keeping(closed, strategies)
        self.evaluation = Evaluation(
            spark, closed, types, stages(closed.plan, strategies), limits=limits
        )
        self.width = self.evaluation.width
        kernels = kernels or how_many(None, spark.sparkContext.defaultParallelism)
        if is_new(Files(spark, checkpoint)):
            self.delivery.begin(again=False)
        self.store = Store(spark, checkpoint, program, self.evaluation.layout, kernels)
        self.evaluation.kernels = self.store.kernels
        self.progress = Progress.of(program)
        self.reading = Reading(self.store, inputs, program)
        self._restore()
        self.record = Record()

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
        """The new rows of all streams. Where streams may be silent there is one source more, for
        which a batch leaves a file (`Store.pulse`) when it wants another one to follow."""
        streams = {n: self.inputs.validated(self.types, n) for n in self.reading.sources}
        new = arrival.united(streams, self.types, self.width)
        if any(clock.idle is not None for clock in self.progress.clocks.values()):
            self.store.files.make(PULSE)
            new = arrival.and_files_of(new, self.store.files.path(PULSE))
        return new

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
        self._work_in(self.spark if new is None else new.sparkSession)
        began = time.monotonic()
        most = self.evaluation.limits.seconds
        with explained(), Jobs(self.spark, f"streamlog: batch {batch}", most) as jobs:
            commit, figures = self._evaluate(new, batch, offsets)
        seconds = time.monotonic() - began
        if self.progress.may_follow:
            self.store.pulse(batch)
        self.store.commit(commit)
        self.record.add(Figures(batch, *figures, jobs.count, seconds))

    def _work_in(self, spark: SparkSession) -> None:
        """A streaming query has a session of its own, which knows its own views alone."""
        self.evaluation.spark = self.store.spark = spark
        self.inputs.work_in(spark)

    def _evaluate(
        self, new: DataFrame | None, batch: int, offsets: tuple[str, ...]
    ) -> tuple[Commit, tuple[Mapping[str, Seen], Mapping[str, int], int, int, int]]:
        last = self.store.last
        before = self._frontiers() if last is not None else None
        shelves: dict[str, DataFrame] = {}
        arrived: dict[str, DataFrame] = {}
        seen: Mapping[str, Seen] = {}
        if before is None:
            arrived |= self.inputs.tables(self.types)
        if new is None:
            offsets = last.offsets if last is not None else ()
            was = self.progress.values()
            self.progress.end()
            self._leave(arrived, shelves, {}, was)
        else:
            new = new.persist()
            self.progress.follow(self.reading.silent(offsets, last))
            seen = self._take(new, arrived, shelves)
        now = self._frontiers()
        moment = Moment(before, now, self.progress.values(), self._spoken_of())
        result = self.evaluation.run(arrived, self._kept(before), self._states(), moment)
        self._shelve(result, shelves, now)
        if before is None and self.reading.tables:
            self._report_tables(shelves)
        counts = self._write(shelves, batch)
        folders = self._folders(counts, batch, now)
        answers = {p: counts.get(ROWS + p, (0, None))[0] for p in self.outputs}
        self._deliver(counts, batch)
        result.release()
        if new is not None:
            new.unpersist()
        rows = sum(f.rows for found in folders.values() for f in found)
        commit = Commit(
            batch,
            {s: (c.progress, c.seen, c.reached, c.ended) for s, c in self.progress.clocks.items()},
            moment.spoken_of,
            self._counted(seen, answers),
            folders,
            {p: tuple(t.value for t in types) for p, types in self.types.items()},
            offsets,
            self.reading.identities,
            dict(self.delivery.delivered),
        )
        count = sum(len(found) for found in folders.values())
        return commit, (seen, answers, rows, count, result.rounds)

    # -------------------------------------------------------------------------- rows in

    def _take(
        self, new: DataFrame, arrived: dict[str, DataFrame], shelves: dict[str, DataFrame]
    ) -> Mapping[str, Seen]:
        """The first job: what has come. Then the clocks move, and rows leave the buffers."""
        clocks = self.progress.clocks
        seen = arrival.look(new, clocks.values())
        come: dict[str, DataFrame] = {}
        bad = self._rejects(new, [name for name, s in seen.items() if s.rejected])
        late: list[DataFrame] = []
        latest: dict[str, int | None] = {}
        for stream, clock in clocks.items():
            latest[stream] = seen[stream].latest
            limit = None
            if clock.horizon is not None and latest[stream] is not None:
                known = self.progress.known(stream)
                limit = arrival.believed(new, clock, known)
                if limit is not None:
                    latest[stream] = limit
                    bad.append(arrival.doubted_of(new, clock, self.types, limit))
            if seen[stream].rows:
                come[stream] = arrival.rows_of(new, clock, self.types, limit)
            if seen[stream].late:
                late.append(arrival.late_of(new, clock, self.types))
        for name, found in ((REJECTS, bad), (LATE, late)):
            if found:
                rows = reduce(DataFrame.unionAll, found)
                shelves[name] = wire.packed(rows, name, REPORT_TYPES, self.width)
        before = self.progress.values()
        for stream, clock in clocks.items():
            at = latest[stream]
            if at is not None:
                self.progress.saw(clock, at, max(clock.progress, at - clock.slack), lift=False)
        self._leave(arrived, shelves, come, before)
        return seen

    def _rejects(self, new: DataFrame, streams: Sequence[str]) -> list[DataFrame]:
        """The bad rows of streams. To number their lines, the files that have some are read anew,
        which costs nothing as long as there are none."""
        found = []
        in_files = [s for s in streams if self.inputs.records[s].anew is not None]
        files = arrival.bad_files(new, in_files) if in_files else {}
        for stream in streams:
            if stream in files:
                found.append(self.inputs.rejects_in(self.types, stream, files[stream]))
            else:
                found.append(arrival.rejects_of(new, stream))
        return found

    def _report_tables(self, shelves: dict[str, DataFrame]) -> None:
        """Tables are read once, in the first batch, and so are their bad rows."""
        rows = self.inputs.rejects(self.types)
        rows = wire.packed(rows, REJECTS, REPORT_TYPES, self.width)
        shelves[REJECTS] = shelves[REJECTS].unionAll(rows) if REJECTS in shelves else rows

    def _leave(
        self,
        arrived: dict[str, DataFrame],
        shelves: dict[str, DataFrame],
        come: Mapping[str, DataFrame],
        before: Mapping[str, int],
    ) -> None:
        """Rows up to the progress leave the buffers, each once."""
        facts = self.inputs.facts(self.types) if self.store.last is None else {}
        for stream, clock in self.progress.clocks.items():
            held = self._stored(BUFFER + stream, stream)
            parts = [come.get(stream), held, facts.get(stream)]
            rows = [part for part in parts if part is not None]
            if not rows:
                continue
            waiting = reduce(DataFrame.unionAll, rows).distinct()
            if clock.progress < END:
                staying = waiting.where(F.col("c0") > clamped(clock.progress))
                shelves[BUFFER + stream] = self._packed(staying, stream)
            leaving = waiting.where(F.col("c0") <= clamped(clock.progress))
            old = self._stored(ROWS + stream, stream)
            if old is not None:
                edge = old.where(F.col("c0") >= clamped(before[stream]))
                leaving = leaving.join(edge, on=leaving.columns, how="left_anti")
            arrived[stream] = leaving

    # ------------------------------------------------------------------------- state

    def _frontiers(self) -> Frontiers:
        closed = self.program.closed
        streams = closed.schema.streams
        frontiers = Frontiers(closed.contract, streams)
        frontiers.move(self.progress.values())
        return frontiers

    def _spoken_of(self) -> int:
        last = self.store.last.spoken_of if self.store.last else BEGIN
        clocks = self.progress.clocks.values()
        # Rows count when they have left the buffer, as they do in the other engines.
        times = [min(c.seen, c.progress) for c in clocks]
        times += (c.progress for c in clocks if c.progress < END)
        return max([last, *times])

    def _kept(self, before: Frontiers | None) -> dict[str, DataFrame]:
        """What is still needed of the past."""
        kept: dict[str, DataFrame] = {}
        if before is None:
            return kept
        for pred in self.types:
            need = self.keeping.kept(pred, before)
            rows = self._stored(ROWS + pred, pred)
            if rows is not None and need.since > BEGIN:
                rows = rows.where(F.col("c0") >= clamped(need.since))
            few = [self._stored(f"{FEW}{pred} {f.name}", pred) for f in need.few]
            found = [f for f in (rows, *few) if f is not None]
            if found:
                kept[pred] = reduce(DataFrame.unionAll, found)
                if len(found) > 1:
                    kept[pred] = kept[pred].distinct()
        return kept

    def _states(self) -> dict[int, DataFrame]:
        found = {
            number: self.store.table(f"{STATE}{number}", self.width)
            for number in range(len(self.evaluation.stages))
        }
        return {number: state for number, state in found.items() if state is not None}

    def _stored(self, shelf: str, pred: str) -> DataFrame | None:
        found = self.store.table(shelf, self.width)
        return None if found is None else wire.unpacked(found, None, self.types[pred])

    def _packed(self, rows: DataFrame, pred: str) -> DataFrame:
        return wire.packed(rows, pred, self.types[pred], self.width)

    def _shelve(self, result: Batch, shelves: dict[str, DataFrame], now: Frontiers) -> None:
        """What of a batch is stored: answers, and what later batches look at."""
        for pred, relation in result.relations.items():
            need = self.keeping.kept(pred, now)
            if relation.new is not None and (pred in self.outputs or need.since < END):
                shelves[ROWS + pred] = self._packed(relation.new, pred)
            for few in need.few:
                shelf = f"{FEW}{pred} {few.name}"
                found = additions(few, relation, few.until(now), self._stored(shelf, pred))
                if found is not None:
                    shelves[shelf] = self._packed(found, pred)
        for number, state in result.states.items():
            shelves[f"{STATE}{number}"] = state

    def _write(
        self, shelves: Mapping[str, DataFrame], batch: int
    ) -> dict[str, tuple[int, int | None]]:
        """The second job: everything at once. Returns rows and latest time by shelf."""
        out = [rows.withColumn(SHELF, F.lit(name)) for name, rows in shelves.items()]
        if not out:
            return {}
        counting = Observation()
        measured = []
        for number, name in enumerate(shelves):
            mine = F.col(SHELF) == name
            measured.append(F.count_if(mine).alias(f"n{number}"))
            measured.append(F.max(F.when(mine, F.col("i0"))).alias(f"t{number}"))
        rows = reduce(DataFrame.unionAll, out).coalesce(self.spark.sparkContext.defaultParallelism)
        rows = rows.observe(counting, *measured)
        place = self.store.place_of(batch)
        rows.write.mode("overwrite").partitionBy(SHELF).parquet(self.store.files.path(place))
        self.store.list(place)
        found: dict[str, Any] = counting.get
        return {
            name: (found[f"n{number}"], found[f"t{number}"])
            for number, name in enumerate(shelves)
            if found[f"n{number}"]
        }

    def _folders(
        self, counts: Mapping[str, tuple[int, int | None]], batch: int, now: Frontiers
    ) -> dict[str, tuple[Folder, ...]]:
        """Which folders of each shelf the next batch may need."""
        result: dict[str, tuple[Folder, ...]] = {}
        last = self.store.last.folders if self.store.last else {}
        for shelf in {**last, **counts}:
            rows, latest = counts.get(shelf, (0, None))
            new = (self.store.folder(batch, shelf, rows, latest),) if rows else ()
            if shelf.startswith((BUFFER, STATE)):
                result[shelf] = new  # written anew each time
            elif shelf.startswith(FEW):
                found = (*last.get(shelf, ()), *new)
                result[shelf] = self.store.compact(
                    batch, shelf, found, self.width, self._still_enough(shelf)
                )
            elif shelf.startswith(ROWS):
                pred = shelf.removeprefix(ROWS)
                since = self.keeping.kept(pred, now).since
                found = (*last.get(shelf, ()), *new)
                if self.evaluation.schema.is_temporal(pred):
                    found = tuple(f for f in found if f.latest is None or f.latest >= since)
                result[shelf] = self.store.compact(batch, shelf, found, self.width, _since(since))
        return {shelf: found for shelf, found in sorted(result.items()) if found}

    def _still_enough(self, shelf: str) -> Callable[[DataFrame], DataFrame]:
        pred, name = shelf.removeprefix(FEW).rsplit(" ", 1)
        (few,) = (f for f in self.keeping.few(pred) if f.name == name)
        types = self.types[pred]
        return lambda rows: self._packed(enough(few.rows, wire.unpacked(rows, None, types)), pred)

    # ------------------------------------------------------------------------ answers

    def _deliver(self, counts: Mapping[str, tuple[int, int | None]], batch: int) -> None:
        """New answers to their sinks."""
        names = self.program.schema.column_names
        for name in self.delivery.sinks:
            shelf = name if name in (REJECTS, LATE) else ROWS + name
            rows, _ = counts.get(shelf, (0, None))
            if not rows:
                self.delivery.nothing(name, batch)
                continue
            if shelf == name:
                columns, types = REPORT, REPORT_TYPES
            else:
                columns, types = names[name], self.types[name]
            found = wire.unpacked(self.store.written(batch, shelf, self.width), None, types)
            self.delivery.deliver(name, found, columns, types, batch)

    def _counted(self, seen: Mapping[str, Seen], answers: Mapping[str, int]) -> dict[str, Any]:
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
        tables = old.get("tables") or {
            name: [count.rows, count.rejected] for name, count in self.inputs.counts().items()
        }
        return {"streams": streams, "tables": tables, "answers": total}


def _since(since: int) -> Callable[[DataFrame], DataFrame]:
    return lambda rows: rows.where(F.col("i0") >= clamped(since)) if since > BEGIN else rows
