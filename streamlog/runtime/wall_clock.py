"""The wall clock: what time it is where an engine runs."""

from __future__ import annotations

import time


class WallClock:
    """Readings in microseconds since 1970. They never decrease, whatever the machine is set to."""

    def __init__(self) -> None:
        self._latest = 0

    def now(self) -> int:
        self._latest = max(self._latest, time.time_ns() // 1000)
        return self._latest
