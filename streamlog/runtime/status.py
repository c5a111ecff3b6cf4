"""What an output waits for, in words."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping

from attrs import frozen

from streamlog.analysis.contract import Delay, PredicateContract, Released
from streamlog.compiler import Program
from streamlog.runtime.executor import BEGIN, END, Row
from streamlog.runtime.progress import Progress
from streamlog.runtime.reorder import Buffer
from streamlog.runtime.several_timelines import SeveralTimelines
from streamlog.runtime.values import moment
from streamlog.syntax.ast import Type


@frozen
class Held:
    """An output that is not complete, and the stream that holds it back most."""

    output: str
    stream: str
    complete: int  # every answer earlier than this has been given
    at: int | None  # the first event from then on, whose answers wait
    needs: int | None  # the answers at `at` are decided when the stream has passed this
    progress: int  # of the stream
    seen: int | None  # the latest row of the stream
    clock: Type | None
    asked: bool = False  # the source of the stream has been asked, and knows no more

    @property
    def message(self) -> str:
        seen = "never seen"
        if self.seen is not None:
            seen = f"last seen {moment(self.seen, self.clock)}"
        asked = "; its source was asked" if self.asked else ""
        if self.at is None:
            return f"{self.output}: waiting for `{self.stream}`, {seen}{asked}"
        at = moment(self.at, self.clock)
        if self.seen is not None and at[:11] == moment(self.seen, self.clock)[:11] and "T" in at:
            seen = f"last seen {moment(self.seen, self.clock)[11:-1]}"
        return f"{self.output} at {at}: waiting for `{self.stream}`, {seen}{asked}"

    def __str__(self) -> str:
        return self.message


def held(
    program: Program,
    progress: Progress,
    buffers: Mapping[str, Buffer | SeveralTimelines],
    holding: Mapping[str, list[Row]],
    clock: Callable[[str], Type | None],
    asked: Container[str] = (),
) -> tuple[Held, ...]:
    """One for each output that some stream still holds back. The sources of some were `asked`."""
    contract = program.contract
    found = []
    for name in contract.outputs:
        promised = contract[name]
        waiting = [d for d in promised.delays if progress[d.stream].progress < END]
        if not waiting:
            continue
        # p(T) is final when every stream has passed T + delay, on one of its timelines.
        best = [best_way(delay, progress) for delay in waiting]
        complete, stream, by = min(best, key=lambda way: way[:2])
        behind = progress[stream]
        times = list(events(promised, progress, buffers, holding, complete))
        at = min(times, default=None)
        needs = None if at is None or by is None else at + by
        found.append(
            Held(
                name,
                stream,
                complete,
                at,
                needs,
                behind.progress,
                behind.last_seen,
                clock(name),
                stream in asked,
            )
        )
    return tuple(found)


def best_way(delay: Delay, progress: Progress) -> tuple[int, str, int | None]:
    """Where the answers begin that this stream does not let be decided yet; by which of its
    timelines, and how far that lies behind."""

    def permits(timeline: str, by: int | None) -> int:
        at = progress[timeline].progress
        return at if at >= END else BEGIN if by is None else at - by

    return max(((permits(*way), *way) for way in delay.ways), key=lambda way: way[0])


def events(
    promised: PredicateContract,
    progress: Progress,
    buffers: Mapping[str, Buffer | SeveralTimelines],
    holding: Mapping[str, list[Row]],
    complete: int,
) -> Iterator[int]:
    """The times at which something has come that may still make an answer."""
    for delay in promised.delays:
        clock = progress[delay.stream]
        stream = next(s for s in buffers if clock in progress.timelines(s))
        earliest = buffers[stream].earliest(clock.column)
        if earliest is not None:
            yield earliest
        if promised.released is Released.CLOSE:
            for row in holding.get(delay.stream, ()):
                if row and isinstance(row[0], int) and row[0] >= complete:
                    yield row[0]
