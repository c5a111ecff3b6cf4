"""Random programs with states against snapshots: what holds is computed at every instant, and
compared with what the kernel says, whatever the cuts, and for some with what the oracle does.

    STREAMLOG_STATES=20000 pytest tests/properties/test_random_states.py
"""

from __future__ import annotations

import os
from random import Random

import pytest
import state_programs
from kernel_checks import at_once, check, compiled, in_steps
from oracle.missing import missing
from state_programs import state_case
from unusual import unusual

PROGRAMS = int(os.environ.get("STREAMLOG_STATES", "2000"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))
SHARD = 50


@pytest.mark.parametrize("first", range(SEED, SEED + PROGRAMS, SHARD))
def test_what_holds_is_what_the_snapshots_say(first: int) -> None:
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        made = state_case(rng)
        try:
            program = compiled(made.case)
            found = at_once(program, made.case)
            for name, rows in made.expected.items():
                assert found[name] == rows, name
            if seed % 10:
                cut = in_steps(program, made.case, rng, restart=seed % 3 == 0, tidy=seed % 3 == 1)
                assert cut == found, "cut"
            else:
                check(made.case, rng)
            if seed % 50 == 0:
                # What else could stand in such a program; the oracle knows what it means.
                check(unusual(made.case, rng), rng, cuts=1)
                check(missing(state_programs.random_case, rng), rng, cuts=1)
        except Exception as error:
            pytest.fail(
                f"seed {seed}: {error!r}\n{made.case.text}\n{made.case.facts}\n{made.case.tables}"
            )
