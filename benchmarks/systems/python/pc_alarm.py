"""Times of one form compare as texts; only the few that are compared with a limit are read."""

from bisect import bisect_left
from collections import defaultdict
from datetime import datetime, timedelta

from common import rows, write

TIME = "%Y-%m-%dT%H:%M:%SZ"


def run(data, out):
    reports = defaultdict(list)
    for t, area in rows(data / "report.csv"):
        reports[area].append(t)
    for times in reports.values():
        times.sort()
    limits = {}
    alarms = set()
    for t, area in rows(data / "pre_alarm.csv"):
        times = reports.get(area, ())
        place = bisect_left(times, t)
        if place < len(times):
            limit = limits.get(t)
            if limit is None:
                later = datetime.strptime(t, TIME) + timedelta(minutes=5)
                limit = limits[t] = later.strftime(TIME)
            if times[place] <= limit:
                continue
        alarms.add((t, area))
    write(out, ("T", "area"), alarms)
