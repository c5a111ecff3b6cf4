"""What moves a stream on although nothing comes: the wall clock, and `advance` from outside.

Both speak of rows that have come, and Spark reads these in micro-batches. So what is promised
between two micro-batches holds for a stream in the next one that brings it nothing: its sources
were asked after the promise was made, and had nothing left to be read.

Spark makes no micro-batch while nothing comes. A thread therefore leaves a file that asks for one
(`Store.pulse`), as soon as a promise could release an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from threading import Event, Thread

from streamlog.runtime.executor import BEGIN
from streamlog.runtime.progress import Progress
from streamlog.runtime.wall_clock import WallClock

_PAUSE = 0.1  # seconds between two looks at the clock
_STEP = 500_000  # microseconds by which the clock moves a stream at least


class Promises:
    def __init__(self, progress: Progress, clock: WallClock | None) -> None:
        """Without a clock, rows and `advance` alone move time."""
        self._progress, self._clock = progress, clock
        self._advanced: dict[str, int] = {}
        self._made: Mapping[str, int] = {}

    def advance(self, time: int, stream: str) -> None:
        """Nothing earlier will come."""
        self._advanced[stream] = max(time, self._advanced.get(stream, time))

    def make(self) -> None:
        """Between two micro-batches: the next one may rely on this."""
        self._made = self._now()

    def keep(self, silent: Collection[str]) -> None:
        """A micro-batch has nothing of these streams."""
        for stream in silent:
            for clock in self._progress.timelines(stream):
                if clock.stream in self._made:
                    self._progress.advance(self._made[clock.stream], clock.stream)

    @property
    def moves(self) -> bool:
        """Whether a stream would move far enough for a micro-batch of its own."""
        return any(
            self._progress[stream].progress + (0 if stream in self._advanced else _STEP) < time
            for stream, time in self._now().items()
        )

    def _now(self) -> dict[str, int]:
        found = dict(self._advanced)
        if self._clock is not None:
            reading = self._clock.now()
            for name, clock in self._progress.clocks.items():
                if clock.within is not None:
                    found[name] = max(reading - clock.within, found.get(name, BEGIN))
        return found


class Pulses:
    """The thread that asks for micro-batches."""

    def __init__(self, ask: Callable[[], None]) -> None:
        self._ask, self._stopped = ask, Event()
        self._thread = Thread(target=self._run, name="streamlog pulses", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(_PAUSE):
            self._ask()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
