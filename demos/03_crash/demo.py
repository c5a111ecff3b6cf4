"""A run on Spark that is killed in the middle and started again, beside one that nobody killed."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

from streamlog.spark.session import TINY

OUT = Path("out")
ANSWERS = OUT / "alarms.csv"  # a folder: one file for each batch that had answers
START = datetime(2026, 11, 15, 8, tzinfo=timezone.utc)
AREAS = ("gate 1", "gate 2", "gate 3", "hall A", "hall B", "lounge")
FILES = 4  # of each stream, four minutes each

STREAMLOG = (sys.executable, "-m", "streamlog.app.cli", "run", "alarm.slog")
ON_SPARK = (
    *STREAMLOG,
    *("--engine", "spark", "--checkpoint", "out/state", "--files-per-batch", "1"),
    *("--input", "pre_alarm=out/pre_alarm", "--input", "report=out/report"),
    *("--output", f"pc_alarm={ANSWERS}"),
    *(f"--conf={key}={value}" for key, value in TINY.items()),  # a batch has a few rows
)
UNDISTURBED = (
    *STREAMLOG,
    *("--engine", "local", "--format", "csv"),
    *("--input", "pre_alarm=out/pre_alarm.csv", "--input", "report=out/report.csv"),
)


def make_events() -> None:
    """Folders of small files for Spark, and the same rows in one file each."""
    rng = Random(3)
    for name, each in (("pre_alarm", 8), ("report", 4)):
        (OUT / name).mkdir(parents=True)
        rows: list[tuple[str, str]] = []
        for number in range(FILES):
            seconds = sorted(rng.randrange(240) for _ in range(each))
            times = (START + timedelta(minutes=4 * number, seconds=s) for s in seconds)
            new = [(f"{t:%Y-%m-%dT%H:%M:%SZ}", rng.choice(AREAS)) for t in times]
            file = OUT / name / f"{number}.csv"
            write(file, new)
            # Spark takes the oldest file first; made at once, they would all be equally old.
            os.utime(file, (number, number))
            rows += new
        write(OUT / f"{name}.csv", rows)


def write(path: Path, rows: list[tuple[str, str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("T", "area"), *rows])


def answers() -> list[list[str]]:
    """All that is in the folder of answers, in no order."""
    found = []
    for part in ANSWERS.glob("batch=*/part.csv"):
        with part.open(newline="") as file:
            found += list(csv.reader(file))[1:]
    return found


def run_and_kill() -> None:
    """In a process group of its own, so that Java dies with it, as when a machine fails."""
    log = OUT / "first_run.log"
    with log.open("wb") as told:
        run = subprocess.Popen(ON_SPARK, start_new_session=True, stderr=told)
    try:
        while len(list(ANSWERS.glob("batch=*/part.csv"))) < 2:
            if run.poll() is not None:
                raise SystemExit(f"the first run has ended by itself; {log} says why")
            time.sleep(0.05)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    print(f"first run: ended by signal {-run.wait()} when two batches had given answers")


def run_again() -> None:
    log = OUT / "second_run.log"
    with log.open("wb") as told:
        if subprocess.run(ON_SPARK, stderr=told).returncode != 0:
            raise SystemExit(f"the second run has failed; {log} says why")
    print("second run: the same command, and it has gone through to the end")


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    make_events()
    run_and_kill()
    before = answers()

    run_again()
    told = subprocess.run(UNDISTURBED, check=True, capture_output=True, text=True)
    whole = list(csv.reader(told.stdout.splitlines()))[1:]
    found = answers()
    print(f"alarms of a run that nobody killed: {len(whole)}")
    print(f"alarms of the two runs: {len(found)}")
    print(f"the same, each once: {sorted(found) == sorted(whole)}")
    print(f"those from before the kill are among them: {all(row in found for row in before)}")


if __name__ == "__main__":
    main()
