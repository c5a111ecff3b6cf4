"""Of the rows in a window, those that few of the later ones exceed (`plan.rewrites.ranks`).

What is remembered follows from the rows in the index, and is found again where it is missing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from attrs import define, field

from streamlog.kernel.stores import Stored
from streamlog.plan.python.inserts import place
from streamlog.plan.steps import Ranked
from streamlog.runtime.executor import BEGIN

_FEW = 64  # entries that are not worth going through


@define
class _Row:
    time: int
    value: Any
    row: Any
    above: int  # how many exceed it


@define
class _Key:
    """What is known of the rows of one key up to a time."""

    until: int = BEGIN
    rows: list[_Row] = field(factory=list)  # that fewer than the limit exceed, in order of time
    # Of each value with rows that more exceed, the time of the latest.
    exceeded: dict[Any, int] = field(factory=dict)
    many: int = _FEW  # so many of them are gone through


class Ranks:
    """For each time that is asked for, the rows with how many exceed all rows of their value."""

    def __init__(self, step: Ranked) -> None:
        self._highest, self._same_time = step.highest, step.same_time
        self._least, self._limit = step.least, step.limit
        index = step.join.index
        self._value: Callable[[Any], Any] = itemgetter(place(index, step.column))
        if index.columns == (step.column,):  # a row is its value
            self._value = _itself
        self._keys: dict[Any, _Key] = {}

    def forget(self, stored: Stored) -> None:
        self._keys = {key: known for key, known in self._keys.items() if key in stored}

    def between(
        self, key: Any, times: list[int], rows: list[Any], low: int, high: int
    ) -> Iterator[tuple[Any, int]]:
        """Of rows by time, which are complete up to `high`."""
        known = self._keys.get(key)
        if known is None or known.until > high:
            known = self._keys[key] = _Key()
        self._add(known, times, rows, max(low, known.until + 1), high)
        known.until = high
        old = next((n for n, one in enumerate(known.rows) if one.time >= low), len(known.rows))
        del known.rows[:old]
        if len(known.exceeded) > known.many:
            known.exceeded = {v: at for v, at in known.exceeded.items() if at >= low}
            known.many = _FEW + 2 * len(known.exceeded)
        if not known.rows and not known.exceeded:
            del self._keys[key]
        totals: dict[Any, int] = {}
        for one in known.rows:
            totals[one.value] = totals.get(one.value, 0) + one.above
        for one in known.rows:
            total = totals[one.value]
            if self._least <= total < self._limit and known.exceeded.get(one.value, BEGIN) < low:
                yield one.row, total

    def _add(self, known: _Key, times: list[int], rows: list[Any], low: int, high: int) -> None:
        at, end = bisect_left(times, low), bisect_right(times, high)
        while at < end:
            after = bisect_right(times, times[at], at, end)
            self._instant(known, times[at], rows[at:after])
            at = after

    def _instant(self, known: _Key, time: int, rows: list[Any]) -> None:
        values = sorted(map(self._value, rows))
        for one in known.rows:
            one.above += self._above(one.value, values)
        for row in rows:
            value = self._value(row)
            known.rows.append(
                _Row(time, value, row, self._above(value, values) if self._same_time else 0)
            )
        left = []
        for one in known.rows:
            if one.above < self._limit:
                left.append(one)
            else:
                known.exceeded[one.value] = max(one.time, known.exceeded.get(one.value, BEGIN))
        known.rows = left

    def _above(self, value: Any, values: list[Any]) -> int:
        if self._highest:
            return len(values) - bisect_right(values, value)
        return bisect_left(values, value)


def _itself(row: Any) -> Any:
    return row
