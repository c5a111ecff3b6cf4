"""The parts of the calendar: when the one in which a time lies began, how long it is at most."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from attrs import frozen

from streamlog.syntax.literals import EPOCH, MICROSECOND
from streamlog.syntax.time_forms import zone_of

__all__ = ["TRUNCATIONS", "Truncation", "truncated", "width", "zone_of"]


@frozen
class Truncation:
    begin: Callable[[datetime], datetime]  # of a time without a zone
    longest: timedelta


def _day(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _week(moment: datetime) -> datetime:
    """Weeks begin on Monday; the first of all, in the year 1, too."""
    return _day(moment) - timedelta(days=moment.weekday())


TRUNCATIONS: dict[str, Truncation] = {
    "minute": Truncation(lambda m: m.replace(second=0, microsecond=0), timedelta(minutes=1)),
    "hour": Truncation(lambda m: m.replace(minute=0, second=0, microsecond=0), timedelta(hours=1)),
    "day": Truncation(_day, timedelta(days=1)),
    "week": Truncation(_week, timedelta(weeks=1)),
    "month": Truncation(lambda m: _day(m.replace(day=1)), timedelta(days=31)),
    "quarter": Truncation(
        lambda m: _day(m.replace(month=(m.month - 1) // 3 * 3 + 1, day=1)), timedelta(days=92)
    ),
    "year": Truncation(lambda m: _day(m.replace(month=1, day=1)), timedelta(days=366)),
}

# Parts that the clocks can show twice as a whole.
_SHORT = ("minute", "hour")
_FIRST_DAY = datetime(1800, 1, 1, tzinfo=timezone.utc)


def truncated(unit: str, at: int, local: datetime) -> int:
    """The beginning of the minute, hour, day, … in which a time lies, by the clocks of a zone;
    `local` is what they show. If they show the beginning twice, it is the first of the two; if they
    skip it, it is when they are put forward."""
    assert isinstance(local.tzinfo, ZoneInfo)
    naive = TRUNCATIONS[unit].begin(local.replace(tzinfo=None, fold=0))
    begin = _instant(naive, local.tzinfo)
    # The second time that the clocks show an hour it has a beginning of its own.
    if local.fold and unit in _SHORT:
        again = _instant(naive.replace(fold=1), local.tzinfo)
        begin = again if again <= at else begin
    return min(begin, at)


def _instant(naive: datetime, zone: ZoneInfo) -> int:
    local = naive.replace(tzinfo=zone)
    back = local.astimezone(timezone.utc).astimezone(zone).replace(tzinfo=None, fold=0)
    if back != naive.replace(fold=0):
        # Skipped: what the clocks show when they go on is this much later.
        earlier, later = (local.replace(fold=n).astimezone(timezone.utc) for n in (1, 0))
        return _transition(earlier, later, zone)
    return (local.astimezone(timezone.utc) - EPOCH) // MICROSECOND


def _transition(low: datetime, high: datetime, zone: ZoneInfo) -> int:
    """When the clocks were changed between two times."""
    before = low.astimezone(zone).utcoffset()
    while high - low > MICROSECOND:
        middle = low + (high - low) // 2
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return (high - EPOCH) // MICROSECOND


def width(unit: str, zone: str) -> int | None:
    """How long a part of the calendar is at most, in microseconds, by the clocks of a zone."""
    if unit not in TRUNCATIONS or zone_of(zone) is None:
        return None
    if unit in _SHORT:
        return _longest(unit, zone)
    longest = TRUNCATIONS[unit].longest
    return (longest + _set_back(zone, longest.days + 2)) // MICROSECOND


@lru_cache
def _longest(unit: str, name: str) -> int:
    """Of the minutes or hours, all are as long as usual but those in which clocks are set back."""
    size = most = TRUNCATIONS[unit].longest // MICROSECOND
    zone = zone_of(name)
    assert zone is not None
    for (_, before), (day, after) in pairwise(_changes(name)):
        if after < before:
            high = _FIRST_DAY + timedelta(days=day)
            change = _transition(high - timedelta(days=1), high, zone)
            back = (before - after) // MICROSECOND
            ends = [change]
            for offset in (before, after):
                first = change - size + (-(change + offset // MICROSECOND) % size)
                ends += range(first, change + back + 2 * size, size)
            for end in ends:
                last = EPOCH + (end - 1) * MICROSECOND
                most = max(most, end - truncated(unit, end - 1, last.astimezone(zone)))
    return most


def _set_back(zone: str, days: int) -> timedelta:
    """How much the clocks of a zone have been set back at most within some days."""
    changes = _changes(zone)
    most = timedelta()
    for i, (_, before) in enumerate(changes):
        # An offset holds until the next change.
        until = changes[i + 1][0] if i + 1 < len(changes) else 0
        for day, after in changes[i + 1 :]:
            if day - until > days:
                break
            most = max(most, before - after)
    return most


@lru_cache
def _changes(name: str) -> tuple[tuple[int, timedelta], ...]:
    """The offsets of a zone, each with the day from which on it holds. What zones do after 2037
    they do in that year too."""
    zone = zone_of(name)
    assert zone is not None
    changes: list[tuple[int, timedelta]] = []
    for day in range(241 * 366):
        offset = (_FIRST_DAY + timedelta(days=day)).astimezone(zone).utcoffset() or timedelta()
        if not changes or changes[-1][1] != offset:
            changes.append((day, offset))
    return tuple(changes)
