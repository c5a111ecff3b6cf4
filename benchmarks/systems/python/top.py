from collections import Counter, defaultdict

from common import rows, write


def run(data, out):
    hours = defaultdict(Counter)
    for text, _, stock, volume in rows(data / "trade.csv"):
        hours[text[:13]][stock] += int(volume)
    answers = (
        (f"{hour}:00:00Z", stock, volume)
        for hour, volumes in hours.items()
        for stock, volume in sorted(volumes.items(), key=lambda v: (-v[1], v[0]))[:3]
    )
    write(out, ("T", "stock", "volume"), answers)
