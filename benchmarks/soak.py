"""200 micro-batches of the pre-alarm rule: does anything grow?

    pip install matplotlib
    python benchmarks/soak.py [BATCHES]

Seconds a batch, size of its plan, rows and files of state, and what is in use in Python and, after
a collection, in Java, printed and drawn to benchmarks/results/soak.png.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib import pyplot
from pyspark.sql import DataFrame, SparkSession

import streamlog
from streamlog.spark import session, start
from streamlog.spark.session import TINY
from streamlog.spark.streaming import Run

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


def measure_plans(sizes: list[int]) -> None:
    """From now on, how many steps the plans of each batch have."""
    write = Run._write

    def measured(run: Run, shelves: Mapping[str, DataFrame], batch: int) -> Any:
        plans: list[Any] = [rows._jdf.queryExecution().analyzed() for rows in shelves.values()]
        sizes.append(sum(plan.toString().count("\n") for plan in plans))
        return write(run, shelves, batch)

    Run._write = measured  # type: ignore[method-assign]


def in_java(spark: SparkSession) -> float:
    jvm: Any = spark._jvm
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 2**20


def in_python() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def main() -> None:
    batches = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    spark = session("local[2]", TINY)
    rng = Random(3)
    plans: list[int] = []
    measure_plans(plans)
    found: dict[str, list[float]] = {
        title: []
        for title in (
            "seconds a batch",
            "steps of plans",
            "rows of state",
            "files of state",
            "MiB in Java",
            "MiB in Python",
            "jobs",
        )
    }
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
            files = sum(1 for _ in (root / "state" / "batches").rglob("*.parquet"))
            files += sum(1 for _ in (root / "state" / "merged").rglob("*.parquet"))
            values = (last.seconds, plans[-1], last.state, files, in_java(spark), in_python())
            for column, value in zip(found.values(), (*values, last.jobs), strict=True):
                column.append(value)
        running.stop()
    draw(found)
    quarter = max(batches // 4, 1)
    for begin in range(0, batches, quarter):
        part = {title: values[begin : begin + quarter] for title, values in found.items()}
        told = (
            f"{title} {sum(v) / len(v):.4g} (at most {max(v):.4g})" for title, v in part.items()
        )
        print(f"batches from {begin}:", ", ".join(told))


def draw(found: Mapping[str, list[float]]) -> None:
    figure, axes = pyplot.subplots(len(found), 1, sharex=True, figsize=(8, 11))
    for axis, (title, values) in zip(axes, found.items(), strict=True):
        axis.plot(values, linewidth=1)
        axis.set_ylabel(title, fontsize=8)
        axis.set_ylim(bottom=0)
    axes[-1].set_xlabel("micro-batch")
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    figure.savefig(results / "soak.png", dpi=80)


if __name__ == "__main__":
    main()
