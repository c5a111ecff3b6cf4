"""Asking a source how far it is, when it alone holds an answer back.

Rows move time on. A source may know more: that of a topic knows when its last message was written,
a generator of rows what it will give next. It is asked only when that helps: if some answer waits
for its stream and for no other. Streamlog's paper calls this backtracking, from the operator with
an empty buffer to the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from streamlog.compiler import Program
from streamlog.runtime.executor import END, Row
from streamlog.runtime.progress import Progress
from streamlog.runtime.reorder import Buffer
from streamlog.runtime.several_timelines import SeveralTimelines
from streamlog.runtime.status import best_way, events

if TYPE_CHECKING:
    from streamlog.runtime.engine import Engine

# Nothing earlier than what it returns will come any more; None: it does not know.
Frontier = Callable[[], int | str | None]


class Asking:
    """The sources of an engine that can be asked."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.frontiers: dict[str, Frontier] = {}
        self.asked: set[str] = set()  # in the last step

    def moves_time(self) -> bool:
        """Ask those for whose streams alone an answer waits; whether one has moved its stream."""
        self.asked.clear()
        if not self.frontiers:
            return False
        engine, before = self._engine, self._engine.progress.values()
        holding = engine.executor.holding()
        for timeline in _alone(engine.program, engine.progress, engine.buffers, holding):
            if (frontier := self.frontiers.get(timeline)) is not None:
                self.asked.add(timeline)
                if (time := frontier()) is not None:
                    engine.advance(time, timeline)
        return engine.progress.values() != before


def _alone(
    program: Program,
    progress: Progress,
    buffers: Mapping[str, Buffer | SeveralTimelines],
    holding: Mapping[str, list[Row]],
) -> Iterator[str]:
    """The timelines of streams for which alone an answer waits whose event has come."""
    found: dict[str, None] = {}
    for name in program.contract.outputs:
        promised = program.contract[name]
        waits = {delay: best_way(delay, progress)[0] for delay in promised.delays}
        complete = min(waits.values(), default=END)
        at = min(events(promised, progress, buffers, holding, complete), default=None)
        if at is None:
            continue
        waiting = [delay for delay, permitted in waits.items() if permitted <= at]
        timelines = [timeline for delay in waiting for timeline, _ in delay.ways]
        if len(set(map(program.schema.stream_of, timelines))) == 1:
            found |= dict.fromkeys(timelines)
    yield from found
