"""How far each stream has come: everything earlier than its progress has arrived. A stream with
several timelines has a clock for each.

A fact at T moves its stream's progress to T - slack. `advance` and `end` move it by word. With
`idle d`, a stream that is more than d behind the furthest other one is taken to be silent: its
progress is lifted to d behind that other. With `horizon d`, a row more than d after every time
known so far is not believed, so one absurd timestamp cannot close time. All of this is counted in
event time, so a run's outcome depends on the order of arrival alone.

With `arrives within d`, rows come at most d after their time by the wall clock. So once all that
had come by a reading of it is here, progress is at least that reading less d (`tick`). A timeline
of times of arrival is one with `arrives within 0s`. Only a run that follows its inputs reads the
wall clock; over complete data it says nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType

from attrs import mutable

from streamlog.compiler import Program
from streamlog.runtime.executor import BEGIN, END
from streamlog.syntax.ast import Type

Views = Mapping[str, Iterable[str]]  # the other timelines of those streams that have several
NO_VIEWS: Views = MappingProxyType({})


@mutable
class Clock:
    """One stream's time; of several timelines each has its own."""

    stream: str
    type: Type | None = None
    slack: int = 0
    idle: int | None = None
    horizon: int | None = None
    within: int | None = None
    column: int = 0  # of the stream, where its timestamps are
    progress: int = BEGIN
    seen: int = BEGIN  # the latest time of an accepted row
    reached: int = BEGIN  # the progress that facts and `advance` have made, `end` apart
    ended: bool = False

    @property
    def last_seen(self) -> int | None:
        return None if self.seen == BEGIN else self.seen

    @property
    def is_first(self) -> bool:
        """Whether it is the one that is compared with those of other streams."""
        return self.column == 0


class Progress:
    """The clocks of all streams, and how one moves another."""

    def __init__(self, clocks: Iterable[Clock], views: Views = NO_VIEWS) -> None:
        self.clocks = {c.stream: c for c in clocks}
        self._views = views
        self._idle = [c for c in self.clocks.values() if c.idle is not None]

    @staticmethod
    def of(program: Program) -> Progress:
        """The clocks that the program's declarations ask for."""
        schema, types = program.schema, program.clocks

        def option(stream: str, name: str) -> int | None:
            found = schema[stream].option(name)
            return None if found is None else int(found.value.value)

        def column(stream: str) -> int:
            view = schema[stream].view
            return 0 if view is None else view.column

        clocks = (
            Clock(
                stream,
                types.get(stream),
                option(stream, "slack") or 0,
                option(stream, "idle"),
                option(stream, "horizon"),
                schema[stream].arrives_within,
                column(stream),
            )
            for stream in schema.timelines
        )
        return Progress(clocks, schema.views)

    @property
    def independent(self) -> bool:
        """Whether no stream moves another or vouches for it, so that only the order within
        each stream matters."""
        return all(c.idle is None and c.horizon is None for c in self.clocks.values())

    def __getitem__(self, stream: str) -> Clock:
        return self.clocks[stream]

    def timelines(self, stream: str) -> tuple[Clock, ...]:
        """The clocks of a stream, that of its first column first."""
        return tuple(self.clocks[name] for name in (stream, *self._views.get(stream, ())))

    def values(self) -> dict[str, int]:
        return {name: clock.progress for name, clock in self.clocks.items()}

    def known(self, stream: str) -> int:
        """The latest time that this stream's rows, or any stream's progress, vouch for."""
        clock = self.clocks[stream]
        if not clock.is_first:
            return max(clock.seen, clock.reached)
        others = (c.reached for c in self.clocks.values() if c.is_first and c.type is clock.type)
        return max(clock.seen, *others)

    def saw(self, clock: Clock, latest: int, progress: int, *, lift: bool = True) -> None:
        """Rows have come up to `latest` and moved the progress. Without `lift` it is for the caller
        to say which streams are silent (`follow`)."""
        clock.seen = max(clock.seen, latest)
        if progress > clock.progress:
            clock.progress = progress
            clock.reached = max(clock.reached, progress)
            if lift:
                self._lift()

    def follow(self, silent: Container[str]) -> None:
        """Of the streams with `idle`, these have nothing to say at the moment."""
        for clock in self._idle:
            if clock.stream in silent:
                clock.progress = max(clock.progress, self._followed(clock))

    @property
    def may_follow(self) -> bool:
        """Whether some stream would be lifted if it were known to be silent."""
        return any(self._followed(clock) > clock.progress for clock in self._idle)

    def advance(self, time: int, stream: str | None = None) -> None:
        """Nothing earlier than `time` will come any more, in one stream or timeline or in all."""
        for clock in [self.clocks[stream]] if stream else self.clocks.values():
            if not clock.ended and time > clock.progress:
                clock.progress = clock.reached = time
        self._lift()

    @property
    def ticking(self) -> bool:
        """Whether the wall clock moves some stream."""
        return any(c.within is not None and not c.ended for c in self.clocks.values())

    def tick(self, reading: int, stream: str) -> None:
        """Of a stream, all rows that had come when the wall clock had this reading are here."""
        for clock in self.timelines(stream):
            if clock.within is not None:
                self.advance(reading - clock.within, clock.stream)

    def end(self, stream: str | None = None) -> None:
        """Nothing will come any more, in one stream or in all."""
        for clock in self.timelines(stream) if stream else self.clocks.values():
            clock.progress, clock.ended = END, True

    def _lift(self) -> None:
        """Silent streams no longer hold the others back.

        What is lifted stays behind the furthest, so one round is enough. A stream that has ended
        counts with what it had reached: its end says nothing about the time of the others.
        """
        for clock in self._idle:
            clock.progress = max(clock.progress, self._followed(clock))

    def _followed(self, clock: Clock) -> int:
        """How far a silent stream is taken to be."""
        assert clock.idle is not None
        others = (
            c.reached
            for c in self.clocks.values()
            if c is not clock and c.is_first and c.type is clock.type
        )
        return max(others, default=BEGIN) - clock.idle
