"""Two streams in folders, laid out in files, and what is to be answered."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from streamlog.compiler import Program
from streamlog.kernel import Kernel
from streamlog.runtime.executor import END, Row
from streamlog.spark import Running, start

STREAMS = ("ask", "answer")
IDLE = 10
PROGRAM = """
stream ask(T: int, x: string){idle}.
stream answer(T: int, x: string){idle}.
output open.
open(T, X) <- ask(T, X), not (answer(T1, X), T <= T1, T1 <= T + 5).
"""


def rows_of(rng: Random) -> dict[str, list[Row]]:
    return {
        "ask": [(time, rng.choice("abcd")) for time in range(0, 100, 3)],
        "answer": [(time, rng.choice("abcd")) for time in range(1, 70, 4)],  # then silent
    }


def lay_out(root: Path, rows: dict[str, list[Row]], files: tuple[int, int]) -> None:
    """The rows of each stream in so many files, in the order of time; some files are empty."""
    for (stream, some), count in zip(rows.items(), files, strict=True):
        (root / stream).mkdir(parents=True)
        size = -(-len(some) // count)
        for number in range(count):
            part = some[number * size : (number + 1) * size]
            table = pa.table(
                {"T": pa.array([r[0] for r in part], pa.int64()), "x": [r[1] for r in part]},
                schema=pa.schema({"T": pa.int64(), "x": pa.string()}),
            )
            path = root / stream / f"{number:03}.parquet"
            pq.write_table(table, path)
            os.utime(path, (number, number))


def wanted(program: Program, rows: Mapping[str, list[Row]], idle: bool, ended: bool) -> list[Row]:
    """What is known when everything has been read, or will be known at the end."""
    latest = {stream: max(time for time, _ in some) for stream, some in rows.items()}
    progress = dict.fromkeys(STREAMS, END)
    if not ended:
        furthest = max(latest.values()) - IDLE if idle else 0
        progress = {stream: max(time, furthest) for stream, time in latest.items()}
    return sorted(Kernel(program.closed, {}).step(rows, progress).get("open", []))


def begin(
    root: Path, spark: SparkSession, program: Program, per_batch: int | None = None
) -> Running:
    reader = spark.readStream.schema("T long, x string")
    if per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", per_batch)
    inputs = {stream: reader.parquet(str(root / stream)) for stream in STREAMS}
    return start(program, inputs, {"open": str(root / "out")}, str(root / "state"))


def answers(root: Path) -> list[Row]:
    files = (root / "out").rglob("part*.parquet")
    return sorted(tuple(r.values()) for f in files for r in pq.ParquetFile(f).read().to_pylist())
