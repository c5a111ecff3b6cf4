"""Random programs with random data: Spark gives the kernel's answers, whatever the strategy and
the cuts. The kernel's are compared with the oracle's in `tests/properties`. All programs run at
once with the strategy that is chosen for them, a tenth with the others too, and in steps.

    STREAMLOG_SPARK_PAIRS=1000 STREAMLOG_SEED=5000 pytest tests/spark/test_random.py
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import best_programs
import limit_programs
import pytest
import relation_programs
import state_programs
from kernel_checks import Answers, arrivals, at_once, closed_derived, compiled, tables
from merging import Merged, merged
from oracle.programs import Case, executor_steps, random_case
from unusual import unusual

from streamlog.plan.parts import Strategy
from streamlog.runtime.executor import END
from streamlog.spark.executor import SparkExecutor

PAIRS = int(os.environ.get("STREAMLOG_SPARK_PAIRS", "210"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))
SHARD = 15
SHARDS = range(SEED, SEED + PAIRS, SHARD)
SOME = SHARDS[::10]
FOUND = sorted((Path(__file__).parents[1] / "properties" / "found").glob("*.slog"))


def collected(outputs: list, names: list[str]) -> Answers:
    result: Answers = {name: set() for name in names}
    for found in outputs:
        for name, rows in found.items():
            if name in result:
                assert not result[name] & set(rows), f"{name} twice"
                assert len(rows) == len(set(rows)), f"{name} twice"
                result[name] |= set(rows)
    return result


def differences(found: Answers, wanted: Answers) -> dict[str, tuple]:
    return {
        n: (sorted(found[n] - wanted[n]), sorted(wanted[n] - found[n]))
        for n in wanted
        if found[n] != wanted[n]
    }


@cache
def together(first: int, make: Callable[[Random], Case] = random_case) -> Merged:
    return merged(range(first, min(first + SHARD, SEED + PAIRS)), make=make)


OTHERS = [(first, s) for first in SOME for s in (Strategy.FIXPOINT, Strategy.KERNEL)]


@pytest.mark.parametrize(("first", "strategy"), [*((first, None) for first in SHARDS), *OTHERS])
def test_at_once(first: int, strategy: Strategy | None) -> None:
    given = together(first)
    executor = SparkExecutor(given.program.closed, given.tables, strategy=strategy)
    found = executor.step(given.facts, dict.fromkeys(given.facts, END))
    assert not differences(collected([found], list(given.answers)), given.answers)


def unusual_case(rng: Random) -> Case:
    return unusual(random_case(rng), rng)


@pytest.mark.parametrize("first", SHARDS[::7])
def test_unusual_programs(first: int) -> None:
    given = together(first, unusual_case)
    executor = SparkExecutor(given.program.closed, given.tables)
    found = executor.step(given.facts, dict.fromkeys(given.facts, END))
    assert not differences(collected([found], list(given.answers)), given.answers)


@pytest.mark.parametrize("strategy", [None, Strategy.KERNEL])
def test_programs_that_went_wrong(strategy: Strategy | None) -> None:
    """All at once, as one program. Spark takes a minute to plan thirty joins."""
    paths = [p for p in FOUND if strategy is not None or p.stem != "many_goals"]
    texts = iter([p.read_text(encoding="utf-8") for p in paths])
    given = merged(range(len(paths)), make=lambda rng: Case(next(texts), {}, {}))
    executor = SparkExecutor(given.program.closed, given.tables, strategy=strategy)
    found = executor.step(given.facts, dict.fromkeys(given.facts, END))
    assert not differences(collected([found], list(given.answers)), given.answers)


def relation_case(rng: Random) -> Case:
    """With relations between columns, and several timelines."""
    return relation_programs.random_case(rng)[0]


STEPPED = (random_case, best_programs.random_case, limit_programs.random_case, relation_case)


@pytest.mark.parametrize("make", STEPPED, ids=["any", "best", "limits", "relations"])
@pytest.mark.parametrize("first", SOME)
def test_in_steps(first: int, make: Callable[[Random], Case]) -> None:
    given = together(first, make)
    rng = Random(first)
    strategy = rng.choice([None, Strategy.FIXPOINT])
    executor = SparkExecutor(given.program.closed, given.tables, strategy=strategy)
    steps = executor_steps(rng, given.facts, given.program.schema.views)
    cuts = sorted(rng.sample(range(1, len(steps)), min(2, len(steps) - 1)))
    outputs = []
    for start, stop in zip([0, *cuts], [*cuts, len(steps)], strict=True):
        arrived: dict[str, list] = {}
        for rows, _ in steps[start:stop]:
            for name, some in rows.items():
                arrived.setdefault(name, []).extend(some)
        outputs.append(executor.step(arrived, steps[stop - 1][1]))
    assert not differences(collected(outputs, list(given.answers)), given.answers)


@pytest.mark.parametrize(("count", "strategy"), [(1, None), (3, Strategy.KERNEL)])
def test_states(count: int, strategy: Strategy | None) -> None:
    """A few of them, since a state is many rules, and Spark takes long to plan their queries."""
    seeds = range(SEED + 1, SEED + 1 + count)
    given = merged(seeds, make=state_programs.random_case)
    executor = SparkExecutor(given.program.closed, given.tables, strategy=strategy)
    found = executor.step(given.facts, dict.fromkeys(given.facts, END))
    assert not differences(collected([found], list(given.answers)), given.answers)


def speaks_of_all_time(seed: int) -> bool:
    program = compiled(random_case(Random(seed)))
    assert program.closed.plan
    return any(c.is_timer or "tick" in c.preds for c in program.closed.plan.components)


@pytest.mark.parametrize("seed", [s for s in range(SEED, SEED + 30) if speaks_of_all_time(s)])
def test_programs_that_speak_of_all_time(seed: int) -> None:
    """Timers and `tick`, which cannot be merged with others."""
    case = random_case(Random(seed))
    program = compiled(case)
    executor = SparkExecutor(program.closed, tables(program, case))
    facts = arrivals(program, case)
    found = collected([executor.step(facts, dict.fromkeys(facts, END))], closed_derived(program))
    assert not differences(found, at_once(program, case))
