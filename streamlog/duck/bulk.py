"""A program over complete files: DuckDB reads them, and only rows about which there is a doubt go
through Python (`duck.loading`).

If queries can do the rules, no other row does, either. If not, the rows are handed over in the
order of their times, some at a time, each checked, and none late or twice. Where what becomes of a
row depends on the others that have come by then, nothing is said here, and rows go through the
engine one by one. What is rejected, and what is late, is the same both ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import field, frozen

from streamlog.duck.database import OUT_OF_MEMORY, Rows
from streamlog.duck.executor import DuckExecutor
from streamlog.duck.loading import Loaded, loaded
from streamlog.duck.writing import lines
from streamlog.plan.parts import Strategy
from streamlog.runtime.engine import Engine
from streamlog.runtime.evaluation import clamped
from streamlog.runtime.executor import BEGIN, END, Limits, Row
from streamlog.runtime.sources import Input
from streamlog.syntax.ast import Type

_AT_ONCE = 50_000  # rows in Python


@frozen
class Bulk:
    """All rows of all streams."""

    executor: DuckExecutor
    streams: Mapping[str, Loaded]
    by_queries: bool

    @property
    def count(self) -> int:
        return sum(loaded.good for loaded in self.streams.values())

    def report_to(self, engine: Engine) -> None:
        """What has become of the rows in the files."""
        for stream, found in self.streams.items():
            engine.counts.took(stream, found.count, len(found.late), len(found.rejects))
            engine.buffers[stream].duplicates += found.duplicates
            engine.rejects += found.rejects
            engine.late += found.late

    def slices(self, size: int) -> Iterator[tuple[dict[str, list[Row]], int]]:
        """About so many rows at a time, in the order of their times, and before which time these
        are all there are."""
        db, first = self.executor.db, BEGIN
        found = {name: loaded.rows for name, loaded in self.streams.items() if loaded.good}
        times = " UNION ALL ".join(f"SELECT c0 FROM ({rows.query})" for rows in found.values())
        numbered = f"SELECT c0, row_number() OVER (ORDER BY c0) AS number FROM ({times})"
        every = f"SELECT DISTINCT c0 FROM ({numbered}) WHERE number % {size} = 0 ORDER BY c0"
        ends = [int(at) for (at,) in db.fetch(every, [Type.TIME])] if found else []
        for end in [*ends, END]:
            part = f"WHERE c0 >= {clamped(first)} AND c0 <= {clamped(end - 1)} ORDER BY c0"
            yield (
                {
                    name: db.fetch(f"SELECT * FROM ({rows.query}) {part}", rows.types)
                    for name, rows in found.items()
                },
                end,
            )
            first = end

    def evaluate(self) -> Answers:
        given = {name: loaded.rows for name, loaded in self.streams.items()}
        latest = [loaded.latest for loaded in self.streams.values() if loaded.latest is not None]
        return Answers(self.executor, self.executor.at_once(given, latest))


@frozen
class Answers:
    executor: DuckExecutor
    _found: Mapping[str, Rows | None] = field(repr=False)

    def of(self, pred: str) -> Iterator[list[Row]]:
        """The answers of an output, sorted, some at a time."""
        rows = self._found[pred]
        return iter(()) if rows is None else rows.sorted(_AT_ONCE)

    def lines(
        self, pred: str, types: Sequence[Type | None]
    ) -> Iterator[tuple[int, memoryview]] | None:
        """The same as lines of a CSV file; None: that is for `runtime.sinks` to do."""
        rows = self._found[pred]
        return None if rows is None else lines(self.executor.db, rows, types, _AT_ONCE)


def load(engine: Engine, files: Sequence[Input], limits: Limits) -> Bulk | None:
    """The rows of the files, for an engine's program; None: not in this way."""
    schema = engine.schema
    has_facts = schema.facts_of.keys() & {*schema.streams}
    if not engine.progress.independent or has_facts or schema.views:
        return None
    executor = DuckExecutor(engine.program.closed, engine.tables, limits)
    temporal = [s for s in executor.stages if any(map(schema.is_temporal, s.preds))]
    by_queries = bool(temporal) and all(s.strategy is not Strategy.KERNEL for s in temporal)
    if not by_queries and executor.db.memory is not None:
        executor.db.memory //= 2  # the kernel has the other half
    streams: dict[str, Loaded] = {}
    for stream in schema.streams:
        own = [file for file in files if file.pred == stream]
        try:
            found = loaded(engine, executor.db, stream, own, in_order=not by_queries)
        except OUT_OF_MEMORY:
            return None  # one by one, rows need less
        if found is None:
            return None
        streams[stream] = found
    return Bulk(executor, streams, by_queries)
