"""A folder that is filled, a file for each minute, while a program runs over it on Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

import streamlog
from streamlog.spark import DataFrame, session, start
from streamlog.spark.session import TINY

OUT = Path("out")
DOORS = ("front", "back", "garage", "cellar", "roof")
START = datetime(2026, 11, 15, 8, tzinfo=timezone.utc)
MINUTES = 6

Row = tuple[datetime, str, str]


def rows(rng: Random) -> list[Row]:
    """Some doors are opened each minute, and most of them are closed a little later."""
    found: list[Row] = []
    for minute in range(MINUTES):
        for door in rng.sample(DOORS, 2):
            opened = START + timedelta(minutes=minute, seconds=rng.randrange(60))
            found.append((opened, door, "open"))
            if rng.random() < 0.6:
                found.append((opened + timedelta(seconds=rng.randrange(10, 90)), door, "closed"))
    return found


def minutes(rng: Random) -> Iterator[list[Row]]:
    """The rows of each minute, in any order. One of the first is sent again at the end."""
    found = rows(rng)
    for minute in range(MINUTES):
        begin = START + timedelta(minutes=minute)
        new = [row for row in found if begin <= row[0] < begin + timedelta(minutes=1)]
        rng.shuffle(new)
        yield [*new, found[0]] if minute == MINUTES - 1 else new


def write(name: str, new: list[Row]) -> None:
    """Beside the folder first, then moved: Spark must not see half a file."""
    lines = [
        json.dumps({"T": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "door": door, "what": what})
        for at, door, what in new
    ]
    unfinished = OUT / name
    unfinished.write_text("".join(f"{line}\n" for line in lines))
    unfinished.rename(OUT / "doors" / name)
    print(f"{name}: {len(new)} rows")


def tell(answers: DataFrame, batch: int) -> None:
    """A sink: what is done with the new answers of a batch."""
    for at, door in sorted(answers.selectExpr("date_format(T, 'HH:mm:ss')", "D").collect()):
        print(f"    left open: {door}, since {at}")


def tell_late(late: DataFrame, batch: int) -> None:
    for row in late.collect():
        print(f"    late: {row['reason']}")


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    (OUT / "doors").mkdir(parents=True)
    spark = session(conf=TINY)  # settings for a few rows at a time
    doors = spark.readStream.schema("T string, door string, what string").json("out/doors")
    running = start(
        streamlog.compile("door.slog"),
        {"door": doors},
        {"left_open": tell, "late": tell_late},
        "out/state",
    )
    for number, new in enumerate(minutes(Random(5))):
        write(f"08_{number:02}.jsonl", new)
        # A real source does not wait. Here it does, so that each time the same is printed.
        running.catch_up()
    print("the end: nothing more will come")
    running.end()
    figures = running.figures
    print(f"{len(figures)} batches, {sum(f.answers['left_open'] for f in figures)} answers")


if __name__ == "__main__":
    main()
