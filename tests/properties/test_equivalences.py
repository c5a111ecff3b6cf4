"""Other ways to the same answers: the program formatted, nothing forgotten, the bistate program
run instant by instant.

    STREAMLOG_PAIRS=20000 pytest tests/properties/test_equivalences.py
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from random import Random

import pytest
from kernel_checks import Answers, arrivals, at_once, closed_derived, compiled, in_steps, tables
from oracle.programs import Case, random_case

from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Source
from streamlog.kernel import Kernel
from streamlog.kernel.memory import Memory
from streamlog.runtime.executor import Row
from streamlog.syntax.format import format_source
from streamlog.syntax.pretty import pretty

PAIRS = int(os.environ.get("STREAMLOG_PAIRS", "3000")) // 20
SEED = int(os.environ.get("STREAMLOG_SEED", "0")) + 700_000
SHARD = 20
LAST_INSTANT = 36  # later than any clock of a random program


def pairs(check: Callable[[Case, Program, Random], bool | None]) -> Callable[[int], None]:
    """A test over many random programs, in shards; a check says False when it does not apply,
    which must be the exception."""

    @pytest.mark.parametrize("first", range(SEED, SEED + PAIRS, SHARD))
    def test(first: int) -> None:
        seeds = range(first, min(first + SHARD, SEED + PAIRS))
        applied = 0
        for seed in seeds:
            rng = Random(seed)
            case = random_case(rng)
            try:
                applied += check(case, compiled(case), rng) is not False
            except Exception as error:
                pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")
        assert applied > len(seeds) // 2

    return test


@pairs
def test_formatted(case: Case, program: Program, rng: Random) -> None:
    assert program.parsed is not None
    text = format_source(program.source, program.parsed)
    formatted = compile_source(Source("formatted.slog", text))
    assert at_once(formatted, case) == at_once(program, case)


@pairs
def test_nothing_forgotten(case: Case, program: Program, rng: Random) -> None:
    expected = in_steps(program, case, Random(1), restart=False, certain=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Memory, "forget", lambda self, frontiers, exactly=False: None)
        assert in_steps(program, case, Random(1), restart=False, certain=False) == expected


@pairs
def test_always_forgotten(case: Case, program: Program, rng: Random) -> None:
    expected = at_once(program, case)
    forget = Memory.forget
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Memory, "forget", lambda self, f, exactly=False: forget(self, f, True))
        assert in_steps(program, case, rng, restart=False, certain=False) == expected


@pairs
def test_bistate(case: Case, program: Program, rng: Random) -> bool:
    if re.search(r"\b(first|last)\(", case.text):
        return False  # they go by timestamps, which the bistate program has dropped
    if program.bistate is None:  # a limit, or an aggregate over an open predicate that would be old
        assert any(program.safety.open.values()) or " limit " in case.text
        return False
    assert by_instants(program, case) == at_once(program, case)
    return True


def by_instants(program: Program, case: Case) -> Answers:
    """The bistate program once for each instant, what is new added to what is old after it."""
    made = program.bistate
    assert made is not None
    text = pretty(made.module)
    instant = compile_source(Source("bistate.slog", text))
    assert instant.ok, (instant.diagnostics, text)
    rows = arrivals(program, case)
    rows["tick"] = sorted({r[:1] for found in rows.values() for r in found})
    old: dict[str, set[Row]] = {}
    result: Answers = {name: set() for name in closed_derived(program)}
    static = tables(program, case)
    for clock in range(LAST_INSTANT):
        given = {name: list(found) for name, found in static.items()}
        given["now"] = [(clock,)]
        for name, found in rows.items():
            given[f"{name}_new"] = [r[1:] for r in found if r[0] == clock]
        for name, kept in old.items():
            timed = name in made.timed
            given[f"{name}_old"] = list(dict.fromkeys(r if timed else r[1:] for r in kept))
        found = Kernel(instant.closed, given).step({}, {})
        for name in made.arity:
            at = clock - made.potential.get(name, 0)
            new = {(at, *r) for r in found.get(f"{name}_new", ())}
            new |= {r for r in rows.get(name, ()) if r[0] == clock}
            old.setdefault(name, set()).update(new)
            if name in result:
                result[name] |= new
        for name in result.keys() - made.arity.keys():
            result[name] |= set(found.get(name, ()))
        old.setdefault("tick", set()).update(r for r in rows["tick"] if r[0] == clock)
    return result
