"""Random programs about facts with several times: what is inferred of their columns holds, and the
kernel gives the oracle's answers, whatever the cuts.

    STREAMLOG_RELATIONS=20000 pytest tests/properties/test_random_relations.py
"""

from __future__ import annotations

import os
from random import Random

import pytest
from kernel_checks import check, expected
from oracle.programs import Case
from relation_programs import beside, random_case
from unusual import unusual

from streamlog.analysis.column_relations import at
from streamlog.compiler import Program

PROGRAMS = int(os.environ.get("STREAMLOG_RELATIONS", "300"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))
SHARD = 50


@pytest.mark.parametrize("first", range(SEED, SEED + PROGRAMS, SHARD))
def test_relations_hold_and_answers_are_the_oracles(first: int) -> None:
    mattered = 0
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case, program = random_case(rng)
        mattered += any(time.related for time in program.times)
        try:
            holds(program, case)
            check(case, rng)
            if seed % 5 == 0:
                check(unusual(case, rng), rng)
            if "s" in program.schema.views and seed % 5 < 3:
                check(beside(case, rng), rng)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")
    assert mattered > SHARD / 4


def holds(program: Program, case: Case) -> None:
    """Every fact keeps to what is known of its predicate's columns."""
    for pred, rows in {**expected(program, case), **case.facts, **case.tables}.items():
        relation = program.relations.get(pred)
        if relation is None:
            continue
        columns = [c for c in range(program.schema[pred].arity) if at(c) in relation.names]
        for row in rows:
            for left in columns:
                for right in columns:
                    most = relation.most(at(left), at(right))
                    assert most is None or row[left] - row[right] <= most, (pred, row)
