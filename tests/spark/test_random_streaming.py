"""Random programs as streaming runs: rows in any order that the slack permits, some of them twice,
the rows of each stream in files cut by chance, of which a micro-batch has one of each stream that
has any left, streams that may be silent or not, a restart between any two batches: the kernel's
answers, none twice.

    STREAMLOG_SPARK_STREAMS=300 STREAMLOG_SEED=5000 pytest tests/spark/test_random_streaming.py
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import best_programs
import pytest
from merging import merged
from oracle.missing import missing
from oracle.programs import Case, arrival_orders, random_case
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamlog.runtime.arrow_values import with_none
from streamlog.runtime.columns import column_types, types_of_rows
from streamlog.runtime.executor import Row
from streamlog.spark import arrival, store, wire
from streamlog.spark.delivery import Relations
from streamlog.spark.inputs import Inputs
from streamlog.spark.streaming import Run

PAIRS = int(os.environ.get("STREAMLOG_SPARK_STREAMS", "4"))
SEED = int(os.environ.get("STREAMLOG_SEED", "6"))  # programs of smaller seeds have few rows
SHARD, SLACK, BATCHES, IDLE = 4, 3, 3, 2


def missing_case(rng: Random) -> Case:
    return missing(random_case, rng)


@pytest.mark.parametrize(
    "make",
    [random_case, best_programs.random_case, missing_case],
    ids=["any", "best", "missing"],
)
@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS, SHARD))
def test_micro_batches(
    first: int,
    make: Callable[[Random], Case],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "_FOLDERS", 2)  # put together already in so few batches
    rng = Random(first)
    idle = rng.choice([None, IDLE])
    given = merged(range(first, min(first + SHARD, SEED + PAIRS)), SLACK, make, idle)
    program = given.program
    types = column_types(program.closed, types_of_rows({**given.facts, **given.tables}))
    found: dict[str, list[Row]] = {name: [] for name in given.answers}

    def frame(name: str, rows: list[Row]):
        return spark.createDataFrame(wire.relation(rows, types[name]), wire.columns(types[name]))

    def started() -> Run:
        # What no rule reads may be a stream with facts.
        own = types.keys() - program.schema.streams
        tables = {name: frame(name, rows) for name, rows in given.tables.items() if name in own}
        inputs = Inputs.of(spark, program, tables)
        sinks = {
            name: Relations(
                lambda rows, _, to=found[name]: to.extend(with_none(map(tuple, rows.collect())))
            )
            for name in found
        }
        run = Run(spark, program, inputs, types, sinks, str(tmp_path))
        run.reading.sources |= {name: range(i, i + 1) for i, name in enumerate(layout)}
        return run

    facts = {n: r for n, r in given.facts.items() if n in types}
    orders = arrival_orders(rng, facts, SLACK)
    layout = laid_out(rng, sorted(facts), [row for batch in orders for row in batch])
    run = started()
    for batch in range(BATCHES):
        frames = {
            name: frame(name, files[batch]).withColumns(
                {
                    c: F.lit(None).cast("string")
                    for c in (arrival.PLACE, arrival.REASON, arrival.TEXT, arrival.ODD)
                }
            )
            for name, files in layout.items()
            if batch < len(files)
        }
        offsets = (str(min(batch, len(files) - 1)) for files in layout.values())
        # As Spark would write them down.
        run.store.files.write(f"spark/offsets/{batch}", "\n".join(["v1", "{}", *offsets]))
        run.store.files.write("spark/metadata", "{}")
        run.take(arrival.united(frames, types, run.width), batch)
        if rng.random() < 0.5:
            run = started()
    run.step(None, BATCHES)
    assert {n: sorted(map(tuple, r)) for n, r in found.items()} == {
        n: sorted(r) for n, r in given.answers.items()
    }


def laid_out(
    rng: Random, names: list[str], rows: list[tuple[str, Row]]
) -> dict[str, list[list[Row]]]:
    """The files of each stream; one has a file for every batch, others may be at an end before.
    Files may be empty, and so may all files of a stream."""
    longest = rng.choice(names)
    result = {}
    for name in names:
        own = [row for n, row in rows if n == name for _ in range(rng.choice([1, 1, 2]))]
        count = BATCHES if name == longest else rng.randrange(1, BATCHES + 1)
        cuts = sorted(rng.choices(range(len(own) + 1), k=count - 1))
        result[name] = [
            own[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(own)], strict=True)
        ]
    return result
