"""The highest value, or the lowest, of the rows up to a time.

    not (tempr(T0, _, D), D > C, T0 < T)
        unless the highest D up to T - 1 is above C

Questions come in the order of time, so each row is looked at once. What is remembered follows from
the rows in the index, and is found again where it is missing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from streamlog.kernel.stores import Stored
from streamlog.plan.python.inserts import place
from streamlog.plan.steps import Index
from streamlog.runtime.executor import BEGIN


class Peaks:
    """Of a column of an index by time, for each key."""

    def __init__(self, index: Index, column: int, highest: bool) -> None:
        self._best: Callable[..., Any] = max if highest else min
        self._value: Callable[[Any], Any] | None = None  # a row is its value
        if index.columns != (column,):
            self._value = itemgetter(place(index, column))
        self._known: dict[Any, tuple[int, Any]] = {}

    def forget(self, stored: Stored) -> None:
        self._known = {key: known for key, known in self._known.items() if key in stored}

    def up_to(self, key: Any, times: list[int], rows: list[Any], high: int) -> Any:
        """None if there is no row. All rows up to `high` must have come."""
        until, best = self._known.get(key, (BEGIN, None))
        if until > high:
            until, best = BEGIN, None
        elif until == high:
            return best
        new = rows[bisect_right(times, until) : bisect_right(times, high)]
        if new:
            found = self._best(map(self._value, new) if self._value else new)
            best = found if best is None else self._best(best, found)
        if best is not None:
            self._known[key] = (high, best)
        return best
