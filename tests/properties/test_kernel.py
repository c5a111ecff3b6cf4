"""Random programs with random data: the kernel gives the oracle's answers, whatever the cuts.

Each pair runs at once and cut into steps three times: once saved and loaded between two steps,
once checked at every step against what the contract promises by then. More of them:

    STREAMLOG_PAIRS=20000 STREAMLOG_SEED=1000000 pytest tests/properties/test_kernel.py

What has gone wrong lies in `found/`, with facts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import best_programs
import data_programs
import limit_programs
import path_programs
import pytest
import rank_programs
from kernel_checks import at_once, check, check_answers_alone, check_one_per_key, compiled
from oracle.missing import missing
from oracle.programs import Case, random_case
from unusual import unusual

from streamlog.compiler import compile_source
from streamlog.diagnostics import Source
from streamlog.plan.steps import Ranked

PAIRS = int(os.environ.get("STREAMLOG_PAIRS", "900"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))
SHARD = 30
FOUND = sorted((Path(__file__).parent / "found").glob("*.slog"))


@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS, SHARD))
def test_the_kernel_agrees_with_the_oracle(first: int) -> None:
    for seed in range(first, min(first + SHARD, SEED + PAIRS)):
        rng = Random(seed)
        case = random_case(rng)
        try:
            check(case, rng)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")


@pytest.mark.parametrize("make", [random_case, best_programs.random_case])
@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS // 10, SHARD))
def test_unusual_programs_agree_with_the_oracle(first: int, make: Callable[[Random], Case]) -> None:
    changed = 0
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        usual = make(rng)
        case = unusual(usual, rng)
        changed += case != usual
        try:
            check(case, rng)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")
    assert changed > SHARD / 2


@pytest.mark.parametrize(
    "make", [random_case, best_programs.random_case, path_programs.random_case]
)
@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS // 5, SHARD))
def test_missing_values_agree_with_the_oracle(first: int, make: Callable[[Random], Case]) -> None:
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case = missing(make, rng)
        try:
            check(case, rng)
            check_answers_alone(case, rng)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")


@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS // 5, SHARD))
def test_rules_made_for_the_answers_alone_agree_with_the_oracle(first: int) -> None:
    changed = 0
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case = random_case(rng)
        try:
            changed += check_answers_alone(case, rng)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")
    assert changed >= SHARD / 10


@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS // 5, SHARD))
def test_one_row_per_key_is_held_where_the_contract_says_so(first: int) -> None:
    promised = 0
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case = random_case(rng)
        try:
            promised += check_one_per_key(case, rng)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")
    assert promised >= SHARD / 6


@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS // 4, SHARD))
def test_the_best_of_the_old_rows_are_enough(first: int) -> None:
    chosen = 0
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case = best_programs.random_case(rng)
        try:
            check(case, rng)
            check_one_per_key(case, rng)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}")
        plan = compiled(case).closed.plan
        chosen += any(rows.best for old in plan.thinned.values() for rows in old.sufficient)
    assert chosen >= SHARD / 2


@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS // 4, SHARD))
def test_closures_made_from_their_base_agree_with_the_oracle(first: int) -> None:
    made = 0
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case = path_programs.random_case(rng)
        try:
            check(case, rng)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")
        made += bool(compiled(case).closed.plan.closures)
    assert SHARD / 3 < made < SHARD


@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS // 4, SHARD))
def test_rows_that_few_exceed_agree_with_the_oracle(first: int) -> None:
    ranked = 0
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case = rank_programs.random_case(rng)
        try:
            check(case, rng)
            check_answers_alone(case, rng)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}")
        rules = compiled(case).closed.plan.rules
        ranked += any(isinstance(step, Ranked) for rule in rules for step in rule.checks)
    assert SHARD / 4 < ranked < SHARD


@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS // 4, SHARD))
def test_limits_over_the_past_agree_with_the_oracle(first: int) -> None:
    few = 0
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case = limit_programs.random_case(rng)
        try:
            check(case, rng)
            check_answers_alone(case, rng)
            check_one_per_key(case, rng)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")
        plan = compiled(case).closed.plan
        kept = [rows.best for old in plan.thinned.values() for rows in old.sufficient]
        few += any(best is not None and best.count > 1 for best in kept)
    assert SHARD / 10 <= few < SHARD


@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS // 10, SHARD))
def test_programs_about_data_agree_with_the_oracle(first: int) -> None:
    answered = 0
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case = data_programs.random_case(rng)
        try:
            check(case, rng)
            check_answers_alone(case, rng)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")
        answered += any(at_once(compiled(case), case).values())
    assert answered > SHARD / 2


@pytest.mark.parametrize("path", FOUND, ids=lambda p: p.stem)
def test_found_programs(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    program = compile_source(Source(path.name, text))
    schema = program.schema
    assert program.ok, program.diagnostics
    if schema.facts:
        for seed in range(5):
            check(Case(text, {s: [] for s in schema.streams}, {}), Random(seed))
