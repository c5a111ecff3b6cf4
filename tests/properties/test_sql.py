"""Random programs with random data: the queries give the kernel's answers, whatever the slices.

Every predicate's query reads the kernel's answers for the others, and for itself: the model is
what its own rules give. More of them:

    STREAMLOG_PAIRS=20000 STREAMLOG_SEED=1000000 pytest tests/properties/test_sql.py
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import duckdb
import pytest
from oracle.programs import random_case
from sql_checks import check

PAIRS = int(os.environ.get("STREAMLOG_PAIRS", "180"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))
SHARD = 30


@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS, SHARD))
def test_the_queries_agree_with_the_kernel(first: int) -> None:
    db = duckdb.connect(config={"threads": 1})
    done: Counter[str] = Counter()
    for seed in range(first, min(first + SHARD, SEED + PAIRS)):
        rng = Random(seed)
        case = random_case(rng)
        try:
            done += check(case, rng, db)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")
    assert done["compared"] > sum(n for why, n in done.items() if why.startswith("no query"))
