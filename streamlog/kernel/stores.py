"""How rows lie in an index: `stored`, what a key leads to, by the kind of store.

    EARLIEST   a timestamp
    ROWS       a list of rows; a dict of them where those that look alike are stored once; `ONCE`
               (`runtime.functions`) where there is nothing to know but that there is one
    BY_TIME    lists side by side, in the order of time: timestamps; rows, if `has_rows`; and
               running totals, which start with one more: that before the first row

A key of one column is its value, and so is a row of which one column is stored.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest, nsmallest
from operator import itemgetter
from typing import Any

from streamlog.analysis.sufficient_rows import SufficientRows
from streamlog.plan.steps import Index, Store
from streamlog.runtime.executor import Row

Stored = dict[Any, Any]


# -------------------------------------------------------------------------- saving


def saved(index: Index, stored: Stored) -> list[Row]:
    """All that an index holds, as rows of the columns `positions` names."""
    if index.store is Store.EARLIEST:
        return [(time, *_many(key, index.key)) for key, time in stored.items()]
    return [row for key, held in stored.items() for row in _flat(index, key, held)]


def positions(index: Index, arity: int) -> tuple[int, ...]:
    match index.store:
        case Store.EARLIEST:
            return (0, *index.key)
        case Store.ROWS:
            return tuple(range(arity)) if index.columns is None else (*index.key, *index.columns)
        case Store.BY_TIME:
            rows = tuple(range(arity)) if index.columns is None else index.columns
            return (*index.key, 0, *(rows if index.has_rows else ()), *index.sums)


def _flat(index: Index, key: Any, held: Any) -> Iterator[Row]:
    keys = _many(key, index.key)
    if index.store is Store.ROWS:
        if index.columns is None:
            yield from held
        else:
            yield from ((*keys, *_many(row, index.columns)) for row in held)
        return
    for at, time in enumerate(held[0]):
        row = ()
        if index.has_rows:
            row = held[1][at] if index.columns is None else _many(held[1][at], index.columns)
        sums = held[1 + index.has_rows :]
        yield (*keys, time, *row, *(totals[at + 1] - totals[at] for totals in sums))


def _many(value: Any, columns: tuple[int, ...]) -> tuple[Any, ...]:
    return (value,) if len(columns) == 1 else value


# -------------------------------------------------------------------------- forgetting


def forget(index: Index, stored: Stored, horizon: int) -> int:
    """Drop rows that are earlier; returns how many are left."""
    left = 0
    for key, held in list(stored.items()):
        if index.store is Store.BY_TIME:
            times = held[0]
            if times[0] < horizon:
                cut = bisect_left(times, horizon)
                for part in held:  # totals keep that before the first row
                    del part[:cut]
            count = len(times)
        elif 0 in index.key:  # the first column of the key, then
            time = key if len(index.key) == 1 else key[0]
            count = len(held) if time >= horizon else 0
        else:
            count = _forget_rows(index, held, horizon)
        if not count:
            del stored[key]
        left += count
    return left


def forget_elsewhere(
    index: Index, stored: Stored, needed: Sequence[Mapping[int, int]], arity: int
) -> int:
    """Drop rows that no reader needs: to each they are earlier, in some column, than what
    `needed` says there. Returns how many went."""
    place = {column: at for at, column in enumerate(positions(index, arity))}
    asked = [{place[c]: since for c, since in one.items() if c in place} for one in needed]
    if not asked or index.sums or not all(asked):
        return 0
    gone = 0
    for key, held in list(stored.items()):
        rows: Iterable[tuple[Any, ...]] = _flat(index, key, held)
        drop = {
            at
            for at, row in enumerate(rows)
            if not any(all(row[p] >= since for p, since in one.items()) for one in asked)
        }
        if drop:
            gone += len(drop)
            _drop(index, stored, key, drop)
    return gone


def _forget_rows(index: Index, held: Any, horizon: int) -> int:
    columns = index.columns
    if columns is not None and 0 not in columns:  # forever
        return len(held)
    if columns == (0,):
        kept = [time for time in held if time >= horizon]
    else:
        kept = [row for row in held if row[0] >= horizon]
    if len(kept) < len(held):
        _replace(held, kept)
    return len(kept)


def _replace(held: Any, kept: list[Any]) -> None:
    if isinstance(held, dict):
        held.clear()
        held.update(dict.fromkeys(kept))
    else:
        held[:] = kept


# ---------------------------------------------------------------------------- thinning


def thin(
    index: Index, stored: Stored, until: int, enough: Sequence[SufficientRows], arity: int
) -> int:
    """Of rows earlier than `until`, keep those that are enough; returns how many went."""
    place = {column: at for at, column in enumerate(positions(index, arity))}
    if 0 not in place or index.sums:
        return 0
    chosen = [Chosen(rows, place) for rows in enough]
    if all(one.is_within(index.key) for one in chosen):
        most = min(one.best.count if one.best else 1 for one in chosen)
        keys = [[key] for key, held in stored.items() if _has_more(index, held, until, most)]
    else:
        keys = [list(stored)]
    gone = 0
    for some in keys:
        old = [(key, at, row) for key in some for at, row in _old(index, key, stored, until, place)]
        if len(old) < 2:
            continue
        kept: set[int] = set()
        try:
            for one in chosen:
                kept |= one.pick([row for _, _, row in old], kept)
        except TypeError:  # values of different kinds: none is better
            continue
        if len(kept) < len(old):
            gone += len(old) - len(kept)
            drop: dict[Any, set[int]] = {}
            for number, (key, at, _) in enumerate(old):
                if number not in kept:
                    drop.setdefault(key, set()).add(at)
            for key, places in drop.items():
                _drop(index, stored, key, places)
    return gone


def _has_more(index: Index, held: Any, until: int, most: int) -> bool:
    """Whether more than so many rows of a key may be earlier."""
    if index.store is Store.BY_TIME:
        return len(held[0]) > most and bool(held[0][most] < until)
    return len(held) > most


def _old(
    index: Index, key: Any, stored: Stored, until: int, place: dict[int, int]
) -> Iterator[tuple[int, Row]]:
    """The rows of a key that are earlier, as `saved` has them, each with its place."""
    held, time = stored[key], place[0]
    if index.store is Store.BY_TIME and held[0][0] >= until:
        return
    for at, row in enumerate(_flat(index, key, held)):
        at_time: Any = row[time]
        if at_time < until:
            yield at, row
        elif index.store is Store.BY_TIME:
            return


def _drop(index: Index, stored: Stored, key: Any, places: set[int]) -> None:
    held = stored[key]
    parts = held if index.store is Store.BY_TIME else (held,)
    if len(places) == len(parts[0]):
        del stored[key]
        return
    for part in parts:
        _replace(part, [value for at, value in enumerate(part) if at not in places])


class Chosen:
    """Which of some rows are enough."""

    def __init__(self, rows: SufficientRows, place: dict[int, int]) -> None:
        """`place` says where in a row the columns are; the others have one value only."""
        self.columns = _picking([place[c] for c in rows.columns if c in place])
        self.best = rows.best
        if rows.best is not None:
            self.value = place[rows.best.column]
            self.group = _picking([place[c] for c in rows.best.group if c in place])

    def is_within(self, key: tuple[int, ...]) -> bool:
        """Whether only rows of one key ever stand for each other."""
        return self.best is None or {*key} <= {*self.best.group}

    def pick(self, rows: list[Row], already: set[int]) -> set[int]:
        """The numbers of the rows to keep, where possible of those that are kept already."""
        numbers = self._best(rows) if self.best else range(len(rows))
        if already:
            numbers = sorted(numbers, key=lambda number: number not in already)
        found: dict[Any, int] = {}
        for number in numbers:
            found.setdefault(self.columns(rows[number]), number)
        return set(found.values())

    def _best(self, rows: list[Row]) -> list[int]:
        assert self.best is not None
        pick = nlargest if self.best.highest else nsmallest
        values: dict[Any, set[Any]] = {}
        groups = list(map(self.group, rows))
        for group, row in zip(groups, rows, strict=True):
            values.setdefault(group, set()).add(row[self.value])
        best = {group: {*pick(self.best.count, some)} for group, some in values.items()}
        return [
            number
            for number, (group, row) in enumerate(zip(groups, rows, strict=True))
            if row[self.value] in best[group]
        ]


def _picking(places: list[int]) -> Callable[[Row], Any]:
    return itemgetter(*places) if places else lambda row: ()


def remove(index: Index, stored: Stored, row: Row) -> None:
    """A whole row that a better one replaces."""
    values = tuple(row[p] for p in index.key)
    key = values[0] if len(values) == 1 else values
    held = stored[key]
    if index.store is Store.BY_TIME:
        at = held[1].index(row, bisect_left(held[0], row[0]))
        del held[0][at], held[1][at]
        for totals in held[2:]:
            value = totals.pop(at + 1) - totals[at]
            totals[at + 1 :] = [total - value for total in totals[at + 1 :]]
        empty = not held[0]
    else:
        held.remove(row)
        empty = not held
    if empty:
        del stored[key]
