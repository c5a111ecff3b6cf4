"""Some minutes of events in three orders, below out/: in_order, within the slack, beyond it.

The rows of the three are the same. A row arrives some seconds after its time, and a file has its
rows in the order of their arrival.
"""

from __future__ import annotations

import csv
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

OUT = Path("out")
START = datetime(2026, 11, 15, 8, tzinfo=timezone.utc)
SLACK = 60  # seconds, as in alarm.slog
VERY_LATE = 480

Row = tuple[int, str]  # seconds after the start, area


def events(rng: Random) -> dict[str, list[Row]]:
    """A pre-alarm every 8 to 24 seconds, each in another room, and reports on most of them."""
    pre_alarms: list[Row] = []
    reports: list[Row] = []
    at = 0
    for number in range(101, 131):
        pre_alarms.append((at, f"room {number}"))
        if number % 6:
            reports.append((at + rng.randrange(30, 180), f"room {number}"))
        at += rng.randrange(8, 24)
    return {"pre_alarm": pre_alarms, "report": sorted(reports)}


def shuffled(rows: list[Row], rng: Random, very_late: str = "") -> list[Row]:
    """By arrival, which is up to the slack behind, and more for the room that is very late."""

    def arrival(row: Row) -> float:
        at, room = row
        return at + (VERY_LATE if room == very_late else rng.uniform(0, SLACK))

    return sorted(rows, key=arrival)


def write(folder: Path, name: str, rows: list[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("T", "area"))
        for seconds, area in rows:
            at = START + timedelta(seconds=seconds)
            writer.writerow((at.strftime("%Y-%m-%dT%H:%M:%SZ"), area))
    behind = sum(row < max(rows[: number + 1]) for number, row in enumerate(rows))
    print(f"{folder / name}.csv: {len(rows)} rows, {behind} of them after a later one")


def main() -> None:
    rng = Random(2026)
    very_late = {"pre_alarm": "room 102", "report": "room 103"}
    for name, rows in events(rng).items():
        write(OUT / "in_order", name, rows)
        write(OUT / "within", name, shuffled(rows, rng))
        write(OUT / "beyond", name, shuffled(rows, rng, very_late[name]))


if __name__ == "__main__":
    main()
