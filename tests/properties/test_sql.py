"""Random programs with random data: the queries give the kernel's answers, whatever the slices.

Every predicate's query reads the kernel's answers for the others, and for itself: the model is
what its own rules give. More of them:

    STREAMLOG_PAIRS=20000 STREAMLOG_SEED=1000000 pytest tests/properties/test_sql.py
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from random import Random

import best_programs
import pytest
import window_programs
from kernel_checks import compiled
from oracle import programs
from oracle.programs import Case
from sql_checks import check, connected
from unusual import unusual

from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Source

PAIRS = int(os.environ.get("STREAMLOG_PAIRS", "300"))  # a quarter of each kind
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))
SHARD = 30


def of_any_shape(rng: Random) -> tuple[Case, Program]:
    case = programs.random_case(rng)
    return case, compiled(case)


def with_a_best_row(rng: Random) -> tuple[Case, Program]:
    case = best_programs.random_case(rng)
    return case, compiled(case)


def unusual_windows(rng: Random) -> tuple[Case, Program]:
    case, program = window_programs.random_case(rng)
    case = unusual(case, rng, program.mode)
    return case, compile_source(Source("unusual", case.text), mode=program.mode)


MAKERS = (of_any_shape, window_programs.random_case, with_a_best_row, unusual_windows)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS // len(MAKERS), SHARD))
def test_the_queries_agree_with_the_kernel(
    first: int, make: Callable[[Random], tuple[Case, Program]]
) -> None:
    db = connected()
    done: Counter[str] = Counter()
    for seed in range(first, min(first + SHARD, SEED + PAIRS // len(MAKERS))):
        rng = Random(seed)
        case, program = make(rng)
        try:
            done += check(case, program, rng, db)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")
    assert done["compared"] > sum(n for why, n in done.items() if why.startswith("no query"))
    assert done["with rows"] > done["compared"] // 3
