"""How rows lie in an index: `stored`, what a key leads to, by the kind of store.

    EARLIEST   a timestamp
    ROWS       a list of rows; a dict of them where those that look alike are stored once; `ONCE`
               where there is nothing to know but that there is one
    BY_TIME    lists side by side, in the order of time: timestamps; rows, if `has_rows`; and
               running totals, which start with one more: that before the first row

A key of one column is its value, and so is a row of which one column is stored.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from attrs import frozen

from streamlog.plan.steps import Index, Store
from streamlog.runtime.executor import BEGIN, Row

Stored = dict[Any, Any]
ONCE = ((),)


# ------------------------------------------------------- what the generated code calls


def between(stored: Any, part: int, low: int, high: int) -> Sequence[Any]:
    """What one of the lists holds from one time to another."""
    if stored is None:
        return ()
    times = stored[0]
    rows: Sequence[Any] = stored[part][bisect_left(times, low) : bisect_right(times, high)]
    return rows


def any_between(stored: Any, low: int, high: int) -> bool:
    if stored is None:
        return False
    times = stored[0]
    at = bisect_left(times, low)
    return at < len(times) and times[at] <= high


def put_late(stored: Any, time: int, rows: Sequence[Any], values: Sequence[Any]) -> None:
    """Into lists by time, one that comes after later ones: its row, if rows are stored, and the
    values that the totals are of."""
    at = bisect_right(stored[0], time)
    stored[0].insert(at, time)
    if rows:
        stored[1].insert(at, rows[0])
    for totals, value in zip(stored[1 + len(rows) :], values, strict=True):
        totals[at + 1 :] = [totals[at] + value, *(total + value for total in totals[at + 1 :])]


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


def load(index: Index, stored: Stored, rows: Iterable[Row], arity: int) -> None:
    """What `saved` returned, in the same order."""
    stored.clear()
    width = len(index.key)
    for row in rows:
        match index.store:
            case Store.EARLIEST:
                stored[_one(row[1:])] = row[0]
            case Store.ROWS if index.columns is None:
                stored.setdefault(key_of(index, row), []).append(row)
            case Store.ROWS if index.is_set and not index.columns:
                stored[_one(row)] = ONCE
            case Store.ROWS if index.is_set:
                stored.setdefault(_one(row[:width]), {})[_one(row[width:])] = None
            case Store.ROWS:
                stored.setdefault(_one(row[:width]), []).append(_one(row[width:]))
            case Store.BY_TIME:
                key, after = _one(row[:width]), row[width + 1 :]
                held = stored.get(key)
                if held is None:
                    held = stored[key] = nothing(index)
                held[0].append(row[width])
                if index.has_rows:
                    size = arity if index.columns is None else len(index.columns)
                    one = after[:size]
                    held[1].append(one if index.columns is None else _one(one))
                    after = after[size:]
                for totals, value in zip(held[1 + index.has_rows :], after, strict=True):
                    totals.append(totals[-1] + value)


def nothing(index: Index) -> tuple[list[Any], ...]:
    """Lists by time without rows."""
    return ([], *([[]] if index.has_rows else []), *([0] for _ in index.sums))


def key_of(index: Index, row: Row) -> Any:
    return _one(tuple(row[p] for p in index.key))


def _one(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else values


def _many(value: Any, columns: tuple[int, ...]) -> tuple[Any, ...]:
    return (value,) if len(columns) == 1 else value


# -------------------------------------------------------------------------- forgetting


@frozen
class Ages:
    """What may go: rows earlier than `horizon`; and of rows earlier than `old`, all but one of
    those in which `picked` is the same."""

    horizon: int
    old: int = BEGIN
    picked: Callable[[Any], Any] = itemgetter(0)


def picker(index: Index, columns: tuple[int, ...]) -> Callable[[Any], Any]:
    """Some columns of a stored row."""
    if not columns:
        return lambda row: ()
    if index.columns is None:
        return itemgetter(*columns)
    if len(index.columns) == 1:
        return lambda row: row
    return itemgetter(*(index.columns.index(column) for column in columns))


def forget(index: Index, stored: Stored, ages: Ages) -> int:
    """Drop what may go; returns how many rows are left."""
    left = 0
    for key, held in list(stored.items()):
        if index.store is Store.BY_TIME:
            times = held[0]
            if times[0] < ages.horizon:
                cut = bisect_left(times, ages.horizon)
                for part in held:  # totals keep that before the first row
                    del part[:cut]
            if len(times) > 1 and times[1] < ages.old:
                _keep_one_of_each(index, held, bisect_left(times, ages.old), ages)
            count = len(times)
        elif 0 in index.key:  # the first column of the key, then
            time = key if len(index.key) == 1 else key[0]
            count = len(held) if time >= ages.horizon else 0
        else:
            count = _forget_rows(index, held, ages)
        if not count:
            del stored[key]
        left += count
    return left


def _forget_rows(index: Index, held: Any, ages: Ages) -> int:
    columns = index.columns
    if columns is not None and 0 not in columns:  # for ever
        return len(held)
    if columns == (0,):
        kept = [time for time in held if time >= ages.horizon]
    else:
        kept = [row for row in held if row[0] >= ages.horizon]
    if len(kept) > 1 and ages.old > ages.horizon:
        kept = _without_doubles(columns == (0,), kept, ages)
    if len(kept) < len(held):
        if index.is_set:
            held.clear()
            held.update(dict.fromkeys(kept))
        else:
            held[:] = kept
    return len(kept)


def _without_doubles(is_time: bool, rows: list[Any], ages: Ages) -> list[Any]:
    seen: set[Any] = set()
    kept = []
    for row in rows:
        if (row if is_time else row[0]) < ages.old:
            picked = ages.picked(row)
            if picked in seen:
                continue
            seen.add(picked)
        kept.append(row)
    return kept


def _keep_one_of_each(index: Index, held: Any, until: int, ages: Ages) -> None:
    if not index.has_rows:
        for part in held:
            del part[1:until]
        return
    first: dict[Any, int] = {}
    for at, row in enumerate(held[1][:until]):
        first.setdefault(ages.picked(row), at)
    if len(first) < until:
        for part in held:
            part[:until] = [part[at] for at in first.values()]


def remove(index: Index, stored: Stored, row: Row) -> None:
    """A whole row that a better one replaces."""
    key = key_of(index, row)
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
