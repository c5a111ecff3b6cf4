"""File layouts, batch sizes and moments of a crash: the answers are the same, whichever it is.

Streams may be silent (`idle`) or not. A stream whose files are not all read yet is never silent.

    STREAMLOG_LAYOUTS=50 STREAMLOG_SEED=1000 pytest tests/spark/test_layouts.py
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest
from attrs import frozen
from laid_out import IDLE, PROGRAM, answers, begin, lay_out, rows_of, wanted
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import streamlog
from streamlog.spark.streaming import Run

RANDOM = int(os.environ.get("STREAMLOG_LAYOUTS", "2"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))


@pytest.mark.parametrize(
    ("files", "idle"), [((4, 4), True), ((2, 4), True), ((4, 1), True), ((2, 4), False)], ids=str
)
def test_one_file_of_each_at_a_time(
    files: tuple[int, int], idle: bool, spark: SparkSession, tmp_path: Path
) -> None:
    program = streamlog.compile(PROGRAM.format(idle=f" idle {IDLE}" if idle else ""))
    rows = rows_of(Random(1))
    lay_out(tmp_path, rows, files)
    running = begin(tmp_path, spark, program, 1)
    running.catch_up()
    assert answers(tmp_path) == wanted(program, rows, idle, ended=False)
    running.end()
    assert answers(tmp_path) == wanted(program, rows, idle, ended=True)


# --------------------------------------------------------------------------------- crashes


class CrashError(Exception):
    pass


def before_the_batch(step: Callable, *args: object) -> None:
    raise CrashError


def before_our_commit(step: Callable, *args: object) -> None:
    (run,) = (a for a in args if isinstance(a, Run))
    commit = run.store.commit

    def crash(_: object) -> None:
        raise CrashError

    run.store.commit = crash  # type: ignore[method-assign]
    try:
        step(*args)
    finally:
        run.store.commit = commit  # type: ignore[method-assign]


def after_our_commit(step: Callable, *args: object) -> None:
    step(*args)
    raise CrashError


def forget(root: Path, batch: int, sources: int) -> None:
    """Spark had written down what its first sources have, but not the batch's offsets."""
    spark = root / "state" / "spark"

    def offsets(of: int) -> list[str]:
        path = spark / "offsets" / str(of)
        return path.read_text().splitlines()[2:] if path.exists() else ["-"] * 9

    before = offsets(batch - 1)
    names = [f"offsets/{batch}"]
    names += (
        f"sources/{source}/{json.loads(offset)['logOffset']}"
        for source, offset in enumerate(offsets(batch))
        if offset != before[source] and source >= sources
    )
    for name in names:
        (spark / name).unlink()
        (spark / name).with_name(f".{(spark / name).name}.crc").unlink()


@pytest.fixture
def crashing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable, int], None]]:
    """Crash in a way in a batch."""
    step = Run.step

    def crash(how: Callable, at: int) -> None:
        def stepped(run: Run, new: object, batch: int, *more: object) -> None:
            (partial(how, step) if batch == at else step)(run, new, batch, *more)

        monkeypatch.setattr(Run, "step", stepped)

    yield crash


@frozen
class Scenario:
    files: tuple[int, int]
    per_batch: int | None
    idle: bool
    at: int  # the batch of the crash
    how: Callable
    forgotten: int | None = None  # how many sources had been written down, but not the batch

    @staticmethod
    def random(rng: Random) -> Scenario:
        files = (rng.randrange(1, 7), rng.randrange(1, 7))
        per_batch = rng.choice([1, 1, 2, None])
        at = rng.randrange(-(-max(files) // per_batch)) if per_batch else 0
        how = rng.choice([before_the_batch, before_our_commit, after_our_commit])
        forgotten = rng.choice([None, 0, 1, 9]) if how is before_the_batch else None
        return Scenario(files, per_batch, rng.random() < 0.8, at, how, forgotten)


BETWEEN_THE_LOGS = Scenario((4, 4), 1, True, 1, before_the_batch, 1)
FOUND = [Scenario.random(Random(seed)) for seed in range(SEED, SEED + RANDOM)]


@pytest.mark.parametrize("scenario", [BETWEEN_THE_LOGS, *FOUND], ids=lambda s: f"{s.files}")
def test_any_layout_and_any_crash(
    scenario: Scenario,
    spark: SparkSession,
    tmp_path: Path,
    crashing: Callable[[Callable, int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    idle = scenario.idle
    program = streamlog.compile(PROGRAM.format(idle=f" idle {IDLE}" if idle else ""))
    rows = rows_of(Random(str(scenario.files)))
    lay_out(tmp_path, rows, scenario.files)
    crashing(scenario.how, scenario.at)
    running = begin(tmp_path, spark, program, scenario.per_batch)
    with pytest.raises(StreamingQueryException, match="CrashError"):
        running.catch_up()
    running.stop()
    monkeypatch.undo()
    if scenario.forgotten is not None:
        forget(tmp_path, scenario.at, scenario.forgotten)
    running = begin(tmp_path, spark, program, scenario.per_batch)
    running.catch_up()
    assert answers(tmp_path) == wanted(program, rows, idle, ended=False)
    running.end()
    assert answers(tmp_path) == wanted(program, rows, idle, ended=True)
