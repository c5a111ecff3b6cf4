"""Random programs against brute force: verdicts, bounds, order, delays, memory, cases, strides.

The programs come from a seed that stands in each test's name. Another seed, or more programs:

    STREAMLOG_SEED=7 STREAMLOG_PROGRAMS=20000 pytest tests/properties/test_time_contract.py

What has ever gone wrong lies in `found/`, shrunk, and is tried again each time.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from attrs import evolve
from checks import (
    LAST_PASS,
    Checked,
    bounds,
    cases,
    delays,
    every_problem,
    kept,
    no_marked_cycle,
    order,
)
from checks import stride as strides
from oracle.ground import GroundProgram, marked_cycle
from programs import RandomProgram

from streamlog.analysis.contract import Keeps, Kept, Released
from streamlog.compiler import Mode, Program, compile_source
from streamlog.diagnostics import Source

SEED = int(os.environ.get("STREAMLOG_SEED", "2012"))
PROGRAMS = int(os.environ.get("STREAMLOG_PROGRAMS", "2000"))
SHARE = 100  # programs in one test
FOUND = sorted((Path(__file__).parent / "found").glob("*.slog"))


def compiled(text: str, mode: Mode = Mode.STREAM) -> Program:
    return compile_source(Source("random.slog", text), mode=mode, until=LAST_PASS)


def problems(compilation: Program) -> list[str]:
    return [] if compilation.graph is None else list(every_problem(Checked(compilation)))


@pytest.mark.parametrize(
    "first", range(0, PROGRAMS, SHARE), ids=lambda first: f"seed {SEED}, from {first}"
)
def test_random_programs(first: int) -> None:
    print(f"seed {SEED}, programs {first} to {first + SHARE - 1}")
    verdicts: Counter[str] = Counter()
    for number in range(first, first + SHARE):
        text = RandomProgram(f"{SEED}/{number}").text
        compilation = compiled(text)
        codes = {d.code for d in compilation.diagnostics if d.is_error}
        verdicts["accepted"] += compilation.ok
        verdicts["no meaning"] += bool(codes & {"SL0402", "SL0404"})
        verdicts["too early"] += compilation.graph is None
        assert problems(compilation) == [], f"seed {SEED}, program {number}:\n{text}"
    # The programs are worth something only if they are of all sorts.
    assert verdicts["accepted"] >= 0.2 * SHARE, verdicts
    assert verdicts["no meaning"] >= 0.1 * SHARE, verdicts
    assert verdicts["too early"] <= 0.05 * SHARE, verdicts


@pytest.mark.parametrize("path", FOUND, ids=lambda p: p.stem)
def test_found_programs(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert compiled(text, Mode.BATCH).graph is not None, "it does not get as far as time"
    assert problems(compiled(text)) == []


# ----------------------------------------------------- the oracle and the checks themselves


def ground(text: str) -> GroundProgram:
    compilation = compiled(text)
    schema = compilation.schema
    return GroundProgram(compilation.module, schema.is_temporal, schema.streams)


def test_the_oracle_on_a_rule_one_can_read() -> None:
    program = ground("p(T) <- s(T), not (r(T1), T < T1, T1 <= T + 2).")
    stream, negated = program.sites
    assert stream.pairs(range(3)) == {(0, 0), (1, 1), (2, 2)}
    assert negated.pairs(range(4)) == {(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)}
    assert (stream.mark, negated.mark) == (None, "negation")
    assert negated.offsets(5) == {1, 2}


@pytest.mark.parametrize(
    ("comparisons", "offsets"),
    [
        ("T1 = T - 1", {-1}),
        ("T1 < T, T1 >= T - 3", {-3, -2, -1}),
        ("abs(T1 - T) <= 1", {-1, 0, 1}),
        ("abs(T1 - T) <= 1, T1 != T", {-1, 1}),
        ("T = max(T1, T1 + 2)", {-2}),
        ("G = T - T1, G <= 2, G >= 1", {-2, -1}),
        ("s(T2), T1 < T2, T2 < T, T1 > T - 4", {-3, -2}),
        ("w(W), T1 = T - W", {-3, -1}),
        ("T1 < T, T1 > T", set()),
    ],
)
def test_the_oracle_on_comparisons(comparisons: str, offsets: set[int]) -> None:
    program = ground(f"w(1). w(3). p(T) <- s(T), r(T1), {comparisons}.")
    site = next(s for s in program.sites if s.goal == "r")
    assert site.offsets(8) == offsets


def test_the_oracle_rounds() -> None:
    program = ground("p(floor(T, 3)) <- s(T). q(ceil(T, 3)) <- s(T).")
    down, up = program.sites
    assert down.pairs(range(5)) == {(0, 0), (0, 1), (0, 2), (3, 3), (3, 4)}
    assert up.pairs(range(5)) == {(0, 0), (3, 1), (3, 2), (3, 3)}


def test_the_oracle_finds_a_cycle() -> None:
    program = ground("p(T) <- s(T), not q(T). q(T) <- s(T), p(T1), T1 <= T.")
    cycle = marked_cycle(program.edges(range(3)))
    assert cycle is not None and cycle[0] == cycle[-1]
    earlier = ground("p(T) <- s(T), not q(T). q(T) <- s(T), p(T1), T1 < T.")
    assert marked_cycle(earlier.edges(range(3))) is None


WAITING = """
p(T, V) <- s(T, V), not (r(T1, _), T <= T1, T1 <= T + 3).
q(T, V) <- p(T, V), s(T1, V), T1 < T, T1 >= T - 2, not q(T - 2, V).
"""


def test_wrong_figures_are_noticed() -> None:
    """Each check can fail: every figure of a sound program, made wrong by one."""
    sound = compiled(WAITING)
    assert sound.ok and problems(sound) == []

    def said(check: object, **changes: object) -> list[str]:
        return list(check(Checked(evolve(sound, **changes))))  # type: ignore[operator]

    for change in ({"ahead": 2}, {"ahead": 4}, {"ahead": None}, {"back": 1}, {"back": -1}):
        times = tuple(
            evolve(
                t, goals=tuple(evolve(g, **change) if g.atom.pred == "r" else g for g in t.goals)
            )
            for t in sound.times
        )
        assert said(bounds, times=times), change
    impossible = tuple(evolve(t, goals=()) for t in sound.times)
    assert said(bounds, times=impossible)

    strata = sound.strata
    for wrong in (1, 3, None):
        changed = {n: wrong if s else s for n, s in strata.stride.items()}
        assert said(strides, strata=evolve(strata, stride=changed)), wrong

    promised = sound.contract

    def contract(name: str, **changes: object) -> dict[str, object]:
        entries = tuple(
            evolve(p, **changes) if p.predicate.name == name else p for p in promised.predicates
        )
        return {"contract": evolve(promised, predicates=entries)}

    later = tuple(evolve(d, by=4) for d in promised["p"].delays)
    assert said(delays, **contract("p", delays=later))
    assert said(delays, **contract("p", delays=promised["p"].delays[:1]))
    assert said(delays, **contract("p", released=Released.ARRIVAL))
    for much in (Kept(Keeps.NOTHING), Kept(Keeps.SPAN, 4), Kept(Keeps.SPAN, 6)):
        assert said(kept, **contract("s", kept=much)), much

    assert said(cases, cases=sound.cases[1:])
    assert said(cases, cases=(*sound.cases, sound.cases[0]))
    needless = tuple(evolve(c, needs=frozenset()) for c in sound.cases)
    assert said(cases, cases=needless)
    bare = tuple(
        evolve(c, body=tuple(x for x in c.body if type(x).__name__ != "Comparison"))
        for c in sound.cases
    )
    assert bare != sound.cases and said(cases, cases=bare)


@pytest.mark.parametrize(
    ("program", "wrong"),
    [
        ("p(T) <- s(T), q(T + 5). q(T) <- s(T), not p(T - 10).", {"potential": {"p": 4}}),
        ("p(T) <- s(T), q(T + 5). q(T) <- s(T), not p(T - 10).", {"potential": {"q": 5}}),
        ("p(T) <- s(T), not q(T). q(T) <- s(T), p(T - 1).", {"stratum": {"p": 0}}),
    ],
)
def test_a_wrong_order_is_noticed(program: str, wrong: dict[str, dict[str, int]]) -> None:
    sound = compiled(program)
    assert sound.ok and problems(sound) == []
    strata = sound.strata
    changes = {name: {**getattr(strata, name), **figures} for name, figures in wrong.items()}
    assert list(order(Checked(evolve(sound, strata=evolve(strata, **changes)))))


def test_a_wrong_verdict_is_noticed() -> None:
    refused = compiled("p(T) <- s(T), not q(T). q(T) <- s(T), p(T1), T1 <= T.")
    assert not refused.ok
    assert list(no_marked_cycle(Checked(evolve(refused, diagnostics=()))))
