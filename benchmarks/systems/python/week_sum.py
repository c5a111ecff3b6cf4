from collections import defaultdict, deque
from datetime import datetime, timezone

from common import rows, write

WEEK = 7 * 24 * 3600


def run(data, out):
    windows, totals, answers = defaultdict(deque), defaultdict(int), {}
    for text, _, stock, volume in rows(data / "trade.csv"):
        t = datetime.fromisoformat(text[:-1]).replace(tzinfo=timezone.utc).timestamp()
        window, volume = windows[stock], int(volume)
        window.append((t, volume))
        total = totals[stock] + volume
        while window[0][0] <= t - WEEK:
            total -= window.popleft()[1]
        totals[stock] = total
        answers[text, stock] = total
    write(out, ("T", "stock", "volume"), ((t, s, v) for (t, s), v in answers.items()))
