"""Every file of a checkpoint deleted, cut short, or with a byte changed: a start refuses it by
name, or the answers are right all the same.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from laid_out import lay_out
from pyspark.sql import SparkSession

import streamlog
from streamlog.kernel import Kernel
from streamlog.runtime.columns import column_types
from streamlog.runtime.envelope import CheckpointError
from streamlog.runtime.executor import END, Row
from streamlog.spark import Running, start, store
from streamlog.spark.inputs import Inputs
from streamlog.spark.streaming import Run

# Rows that wait, old ones of which few are enough, a table, and a kernel with its own state.
PROGRAM = """
stream ask(T: int, x: string) slack 3 idle 2.
stream answer(T: int, x: string) slack 3 idle 2.
table known(x: string).
output open, first, streak.
open(T, X) <- ask(T, X), known(X), not (answer(T1, X), T <= T1, T1 <= T + 5).
first(T, X) <- ask(T, X), not earlier(T, X).
earlier(T, X) <- ask(T0, X), T0 < T.
streak(T, X) <- ask(T, X), not (streak(T1, X), T1 < T, T <= T1 + 7).
"""
STREAMS, OUTPUTS = ("ask", "answer"), ("open", "first", "streak")


class Checkpoint:
    """A run that was stopped, as often as it is needed; then the last files come."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.saved, self.spark = root / "live", root / "saved", spark
        self.program = streamlog.compile(PROGRAM)
        rng = Random(3)
        self.rows = {
            "ask": [(time, rng.choice("abcd")) for time in range(0, 40, 3)],
            # Silent for a while, then there again.
            "answer": [(time, rng.choice("abcd")) for time in (*range(0, 18, 2), 36)],
        }
        lay_out(self.root, self.rows, (4, 4))
        pq.write_table(pa.table({"x": list("abc")}), self.root / "known.parquet")
        for stream in STREAMS:
            (self.root / stream / "003.parquet").rename(self.root / f"{stream}.parquet")
        running = self.start()
        running.catch_up()
        running.stop()
        for stream in STREAMS:
            (self.root / f"{stream}.parquet").rename(self.root / stream / "003.parquet")
        shutil.copytree(self.root, self.saved)
        below = (self.saved / "state").rglob("*")
        self.files = sorted(p.relative_to(self.saved) for p in below if p.is_file())

    def restore(self) -> None:
        shutil.rmtree(self.root)
        shutil.copytree(self.saved, self.root)

    def _inputs(self) -> dict:
        reader = self.spark.readStream.schema("T long, x string").option("maxFilesPerTrigger", 1)
        inputs = {stream: reader.parquet(str(self.root / stream)) for stream in STREAMS}
        return inputs | {"known": self.spark.read.parquet(str(self.root / "known.parquet"))}

    def _sinks(self) -> dict:
        return {name: str(self.root / "out" / name) for name in OUTPUTS}

    def start(self) -> Running:
        state = str(self.root / "state")
        return start(self.program, self._inputs(), self._sinks(), state)

    def problem(self) -> str | None:
        """What a start would say against it, before it reads any rows."""
        given = Inputs.of(self.spark, self.program, self._inputs())
        types = column_types(self.program.closed, given.types)
        state = str(self.root / "state")
        try:
            Run(self.spark, self.program, given, types, self._sinks(), state)
        except CheckpointError as error:
            return str(error)
        return None

    def run(self) -> dict[str, list[Row]]:
        running = self.start()
        running.catch_up()
        running.end()
        found: dict[str, list[Row]] = {}
        for name in OUTPUTS:
            files = (self.root / "out" / name).rglob("part*.parquet")
            rows = (r for f in files for r in pq.ParquetFile(f).read().to_pylist())
            found[name] = sorted(tuple(r.values()) for r in rows)
        return found

    def wanted(self) -> dict[str, list[Row]]:
        kernel = Kernel(self.program.closed, {"known": [(x,) for x in "abc"]})
        answers = kernel.step(self.rows, dict.fromkeys(STREAMS, END))
        return {name: sorted(answers[name]) for name in OUTPUTS}


@pytest.fixture(scope="module")
def checkpoint(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_FOLDERS", 1)  # put together already in so few batches
        return Checkpoint(tmp_path_factory.mktemp("damage"), spark)


def delete(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[len(data) // 2] ^= 0x41
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [delete, truncate, flip])
def test_every_file(damage: Callable[[Path], None], checkpoint: Checkpoint) -> None:
    """Damage that is not refused is done all at once, and is harmless."""
    kinds = {path.parts[1] for path in checkpoint.files}
    assert kinds >= {"run.json", "commits", "batches", "merged", "pulse", "spark", "lock"}
    harmless: list[Path] = []
    for path in checkpoint.files:
        checkpoint.restore()
        damage(checkpoint.root / path)
        problem = checkpoint.problem()
        if problem is None:
            harmless.append(path)
            continue
        name = path.name.removeprefix(".").removesuffix(".crc")
        inside = path.parent.relative_to("state").as_posix()
        assert (f"{inside}/{name}" if inside != "." else name) in problem
    checkpoint.restore()
    for path in harmless:
        damage(checkpoint.root / path)
    assert checkpoint.run() == checkpoint.wanted()


@pytest.mark.parametrize(
    ("folder", "named"),
    [
        ("state/commits", "'commits/"),
        ("state/batches", "'batches/"),
        ("state/merged", "'merged/"),
        ("state/spark", "'spark/"),
        ("state/spark/offsets", "'spark/offsets/"),
        ("state/spark/sources", "'spark/sources/0/0'"),
        ("state/spark/sources/1", "'spark/sources/1/0'"),
        ("out", "out/open/batch="),
        ("out/first", "out/first/batch="),
    ],
)
def test_folders(folder: str, named: str, checkpoint: Checkpoint) -> None:
    checkpoint.restore()
    shutil.rmtree(checkpoint.root / folder)
    assert named in (checkpoint.problem() or "")
