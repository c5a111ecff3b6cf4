"""A program over complete files, all at once: DuckDB reads them, and only rows about which there is
a doubt go through Python (`duck.loading`).

This is for rules that queries can do. In all other cases nothing is said here, and rows go through
the engine one by one. What is rejected, and what is late, is the same both ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import field, frozen

from streamlog.duck.database import Rows
from streamlog.duck.executor import DuckExecutor
from streamlog.duck.loading import Loaded, loaded
from streamlog.duck.writing import lines
from streamlog.plan.parts import Strategy
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import Limits, Row
from streamlog.runtime.sources import Input
from streamlog.syntax.ast import Type

_AT_ONCE = 50_000  # rows in Python


@frozen
class Bulk:
    """All rows of all streams."""

    executor: DuckExecutor
    streams: Mapping[str, Loaded]

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
    if not _by_queries(executor):
        return None
    streams: dict[str, Loaded] = {}
    for stream in schema.streams:
        found = loaded(engine, executor.db, stream, [f for f in files if f.pred == stream])
        if found is None:
            return None
        streams[stream] = found
    return Bulk(executor, streams)


def _by_queries(executor: DuckExecutor) -> bool:
    """Whether kernels have nothing to do with rows of streams."""
    is_temporal = executor.schema.is_temporal
    temporal = [s for s in executor.stages if any(map(is_temporal, s.preds))]
    return bool(temporal) and all(s.strategy is not Strategy.KERNEL for s in temporal)
