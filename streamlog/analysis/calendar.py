"""The parts of the calendar to which a time can be cut, and how long they are at most."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import lru_cache

from attrs import frozen

from streamlog.syntax.literals import MICROSECOND
from streamlog.syntax.time_forms import zone_of

__all__ = ["TRUNCATIONS", "Truncation", "width", "zone_of"]


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


def width(unit: str, zone: str) -> int | None:
    """How long a part of the calendar is at most, in microseconds, by the clocks of a zone."""
    if unit not in TRUNCATIONS or zone_of(zone) is None:
        return None
    longest = TRUNCATIONS[unit].longest
    return (longest + _set_back(zone, longest.days + 2)) // MICROSECOND


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
    first = datetime(1800, 1, 1, tzinfo=timezone.utc)
    changes: list[tuple[int, timedelta]] = []
    for day in range(241 * 366):
        offset = (first + timedelta(days=day)).astimezone(zone).utcoffset() or timedelta()
        if not changes or changes[-1][1] != offset:
            changes.append((day, offset))
    return tuple(changes)
