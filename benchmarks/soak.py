"""200 micro-batches of the pre-alarm rule: does anything grow?

    pip install matplotlib
    python benchmarks/soak.py [BATCHES]

Time per batch, rows and folders of state, files in the checkpoint and the driver's memory, printed
and drawn to benchmarks/results/soak.png.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib import pyplot

import streamlog
from streamlog.spark import session, start
from streamlog.spark.session import TINY

PROGRAM = """
stream pre_alarm(T: time, area: string) slack 10s.
stream report(T: time, area: string) slack 10s.
output pc_alarm.
pc_alarm(T, A) <- pre_alarm(T, A), not (report(T1, A), T <= T1, T1 <= T + 5min).
"""
SECOND = 1_000_000
ROWS, SPAN = 500, 30 * SECOND  # of a micro-batch


def filled(folder: Path, stream: str, number: int, rng: Random) -> None:
    times = sorted(number * SPAN + rng.randrange(SPAN) for _ in range(ROWS))
    areas = [f"a{rng.randrange(1000)}" for _ in times]
    pq.write_table(pa.table({"T": times, "area": areas}), folder / stream / f"{number}.parquet")


def main() -> None:
    batches = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    spark = session("local[2]", TINY)
    rng = Random(3)
    seconds, folders, state, files, memory, jobs = [], [], [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for stream in ("pre_alarm", "report"):
            (root / stream).mkdir()
        reader = spark.readStream.schema("T long, area string")
        inputs = {s: reader.parquet(str(root / s)) for s in ("pre_alarm", "report")}
        program = streamlog.compile(PROGRAM)
        running = start(program, inputs, {"pc_alarm": str(root / "out")}, str(root / "state"))
        for number in range(batches):
            for stream in inputs:
                filled(root, stream, number, rng)
            running.catch_up()
            last = running.figures[-1]
            seconds.append(last.seconds)
            folders.append(last.folders)
            state.append(last.state)
            jobs.append(last.jobs)
            files.append(sum(1 for _ in (root / "state" / "batches").rglob("*.parquet")))
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        running.stop()
    figure, axes = pyplot.subplots(4, 1, sharex=True, figsize=(8, 9))
    for axis, values, title in zip(
        axes,
        (seconds, state, files, memory),
        ("seconds a batch", "rows of state", "files of state", "driver's memory at most (MiB)"),
        strict=True,
    ):
        axis.plot(values, linewidth=1)
        axis.set_ylabel(title, fontsize=8)
        axis.set_ylim(bottom=0)
    axes[-1].set_xlabel("micro-batch")
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    figure.savefig(results / "soak.png", dpi=100)
    for start_, stop in ((0, batches // 4), (batches // 4, batches // 2), (batches // 2, batches)):
        part = slice(start_, stop)
        print(
            f"batches {start_}-{stop}: {sum(seconds[part]) / len(seconds[part]):.2f} s a batch, "
            f"up to {max(state[part]):,} rows in {max(files[part])} files, "
            f"{max(memory[part]):.0f} MiB, {max(jobs[part])} jobs"
        )


if __name__ == "__main__":
    main()
