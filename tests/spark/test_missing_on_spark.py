"""Columns with missing values, programs about data as it is: the kernel's answers on Spark."""

from __future__ import annotations

from random import Random

import best_programs
import data_programs
import pytest
from merging import merged
from oracle.missing import missing
from oracle.programs import Case, executor_steps, random_case
from test_random import collected, differences

from streamlog.runtime.executor import END
from streamlog.spark.executor import SparkExecutor

SHARD = 8


def any_case(rng: Random) -> Case:
    return missing(random_case, rng)


def best_case(rng: Random) -> Case:
    return missing(best_programs.random_case, rng)


@pytest.mark.parametrize("make", [any_case, best_case, data_programs.random_case])
def test_at_once_and_in_steps(make) -> None:
    given = merged(range(SHARD), make=make)
    executor = SparkExecutor(given.program.closed, given.tables)
    found = executor.step(given.facts, dict.fromkeys(given.facts, END))
    assert not differences(collected([found], list(given.answers)), given.answers)
    executor = SparkExecutor(given.program.closed, given.tables)
    steps = executor_steps(Random(1), given.facts)
    half = len(steps) // 2
    outputs = []
    for some in (steps[:half], steps[half:]):
        arrived: dict[str, list] = {}
        for rows, _ in some:
            for name, more in rows.items():
                arrived.setdefault(name, []).extend(more)
        outputs.append(executor.step(arrived, some[-1][1]))
    assert not differences(collected(outputs, list(given.answers)), given.answers)
