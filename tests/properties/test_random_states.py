"""Random programs with states against snapshots: what holds is computed at every instant, and
compared with what the oracle and the kernel say, whatever the cuts.

    STREAMLOG_STATES=20000 pytest tests/properties/test_random_states.py
"""

from __future__ import annotations

import os
from random import Random

import pytest
from kernel_checks import check, compiled, expected
from state_programs import state_case

PROGRAMS = int(os.environ.get("STREAMLOG_STATES", "400"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))
SHARD = 50


@pytest.mark.parametrize("first", range(SEED, SEED + PROGRAMS, SHARD))
def test_what_holds_is_what_the_snapshots_say(first: int) -> None:
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        made = state_case(rng)
        try:
            program = compiled(made.case)
            full = expected(program, made.case)
            for name, rows in made.expected.items():
                assert full[name] == rows, name
            check(made.case, rng, cuts=2)
        except Exception as error:
            pytest.fail(
                f"seed {seed}: {error!r}\n{made.case.text}\n{made.case.facts}\n{made.case.tables}"
            )
