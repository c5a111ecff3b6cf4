"""Random programs: what a rule gives is what its body, asked as a query, gives over all facts, and
every fact has a derivation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from random import Random

import pytest
import window_programs
from kernel_checks import compiled
from oracle.programs import Case, random_case

from streamlog.compiler import Program
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import Row
from streamlog.runtime.functions import EvaluationError
from streamlog.runtime.why import Missing, why
from streamlog.syntax.ast import Agg, Rule
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import walk

PAIRS = int(os.environ.get("STREAMLOG_PAIRS", "3000")) // 20
SEED = int(os.environ.get("STREAMLOG_SEED", "0")) + 900_000
SHARD = 30
EXPLAINED = 5  # facts of a predicate


def usual(rng: Random) -> tuple[Case, Program]:
    case = random_case(rng)
    return case, compiled(case)


@pytest.mark.parametrize("make", [usual, window_programs.random_case], ids=["usual", "windows"])
@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS, SHARD))
def test_rules_asked_as_queries(first: int, make: Callable[[Random], tuple[Case, Program]]) -> None:
    compared = 0
    for seed in range(first, first + SHARD):
        case, program = make(Random(seed))
        try:
            compared += check(case, program)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{case.tables}")
    assert compared


def check(case: Case, program: Program) -> int:
    """How many predicates could be compared."""
    engine = Engine(program, Kernel, case.tables)
    for stream, rows in case.facts.items():
        engine.push(stream, sorted(rows))
    engine.end()
    try:
        engine.step()
    except EvaluationError:  # of the rules; nothing has been released
        return 0
    timers = {r.rule.head.pred for r in program.closed.plan.rules if r.is_timer}
    compared = 0
    for pred, rules in program.schema.rules_of.items():
        if program.safety.is_open(pred):
            continue
        facts = engine.facts(pred)
        for row in facts[:EXPLAINED]:
            assert not isinstance(why(engine, pred, row), Missing), (pred, row)
        written = (s for s in program.parsed.statements if isinstance(s, Rule))
        mine = [rule for rule in written if rule.head.pred == pred]
        groups = any(r.limit or isinstance(n, Agg) for r in mine for n in walk(r.head))
        made_of_parts = any(r.is_auxiliary for r in rules)
        if pred not in timers and not groups and not made_of_parts:  # timers stop when time does
            given = {fact.row for fact in program.schema.facts_of.get(pred, ())}
            asked = {row for rule in mine for row in answers(engine, rule)}
            assert asked | given == set(facts), pred
            compared += 1
    return compared


def answers(engine: Engine, rule: Rule) -> Iterator[Row]:
    names = [f"Head{i}" for i in range(rule.head.arity)]
    head = [f"{n} = {pretty(a)}" for n, a in zip(names, rule.head.args, strict=True)]
    for found in engine.query(", ".join([pretty(rule.body), *head])):
        yield tuple(found[n] for n in names)
