"""Random programs with random data: DuckDB gives the oracle's answers, whatever the strategy and
the cuts. Each pair runs as in `properties/test_kernel.py`. More of them:

    STREAMLOG_DUCK_PAIRS=3000 STREAMLOG_SEED=1000000 pytest tests/duck/test_random_in_duckdb.py
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import best_programs
import data_programs
import limit_programs
import pytest
import state_programs
import window_programs
from kernel_checks import at_once, check, compiled, in_steps
from oracle.missing import missing
from oracle.programs import Case, random_case
from unusual import unusual

from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Source
from streamlog.duck import DuckExecutor
from streamlog.plan.parts import Strategy

PAIRS = int(os.environ.get("STREAMLOG_DUCK_PAIRS", "10"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))
SHARD = 5
FOUND = sorted((Path(__file__).parents[1] / "properties" / "found").glob("*.slog"))


def unusual_case(rng: Random) -> Case:
    return unusual(random_case(rng), rng)


def unusual_best(rng: Random) -> Case:
    return unusual(best_programs.random_case(rng), rng)


def missing_case(rng: Random) -> Case:
    return missing(random_case, rng)


MAKERS = (
    random_case,
    best_programs.random_case,
    unusual_case,
    unusual_best,
    limit_programs.random_case,
    data_programs.random_case,
    state_programs.random_case,
)


WANTED = (None, Strategy.FIXPOINT)


def strategies(program: Program, wanted: Strategy | None) -> Counter[str]:
    executor = DuckExecutor(program.closed, {}, strategy=wanted)
    return Counter(stage.strategy.value for stage in executor.stages)


@pytest.mark.parametrize(
    "make", MAKERS, ids=["any", "best", "unusual", "unusual_best", "limits", "data", "states"]
)
@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS, SHARD))
def test_duckdb_agrees_with_the_oracle(first: int, make: Callable[[Random], Case]) -> None:
    done: Counter[str] = Counter()
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case = make(rng)
        wanted = rng.choice([None, Strategy.FIXPOINT])
        try:
            check(case, rng, executor=partial(DuckExecutor, strategy=wanted))
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")
        done += strategies(compiled(case), wanted)
    assert done["sql"] + done["fixpoint"] >= SHARD / 3


@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS, SHARD))
def test_missing_values_agree_with_the_oracle(first: int) -> None:
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case = missing_case(rng)
        try:
            check(case, rng, executor=partial(DuckExecutor, strategy=rng.choice(WANTED)))
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")


@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS, SHARD))
def test_windows_agree_with_the_kernel(first: int) -> None:
    done: Counter[str] = Counter()
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case, program = window_programs.random_case(rng)
        if rng.random() < 0.5:
            case = unusual(case, rng, program.mode)
            program = compile_source(Source("unusual", case.text), mode=program.mode)
        try:
            expected = at_once(program, case)
            assert at_once(program, case, DuckExecutor) == expected
            assert in_steps(program, case, rng, restart=True, executor=DuckExecutor) == expected
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")
        done += strategies(program, None)
    assert done["sql"] >= SHARD / 3


@pytest.mark.parametrize("path", FOUND, ids=lambda p: p.stem)
def test_found_programs(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    program = compile_source(Source(path.name, text))
    if program.schema.facts:
        case = Case(text, {s: [] for s in program.schema.streams}, {})
        check(case, Random(1), executor=DuckExecutor)
