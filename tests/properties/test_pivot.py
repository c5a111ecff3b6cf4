"""Random programs in parts: several kernels, each with its share of the rows, find what one does,
step by step.

    STREAMLOG_PIVOT_CASES=5000 STREAMLOG_SEED=7000 pytest tests/properties/test_pivot.py
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from random import Random

import pytest
from attrs import evolve
from kernel_checks import arrivals, compiled, tables
from oracle.programs import Case, executor_steps, random_case

from streamlog.analysis.builtins import TICK
from streamlog.compiler import Program
from streamlog.kernel import Kernel
from streamlog.plan.parts import part
from streamlog.plan.pivot import Pivot, find, seat
from streamlog.plan.steps import Plan
from streamlog.runtime.executor import BEGIN, END, Limits, Row
from streamlog.spark.tasks import ANSWER, STATE, Job, shipped, stepped

CASES = int(os.environ.get("STREAMLOG_PIVOT_CASES", "200"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))
SHARD = 50

Rows = Mapping[str, list[Row]]


def pivots(program: Program) -> Iterator[tuple[Plan, Pivot]]:
    """Parts that have one: all components together, and each on its own."""
    plan, closed = program.closed.plan, program.closed
    schema, types = closed.schema, closed.types
    defined = {r.rule.head.pred for r in plan.rules}
    with_rules = [c for c in plan.components if c.preds[0] in defined]
    for components in {tuple(with_rules), *((c,) for c in with_rules)}:
        piece = part(plan, components)
        pivot = find(piece, schema.is_temporal, types.column)
        if pivot is not None:
            yield piece, pivot


class Kernels:
    """What the tasks of a part do in one batch after another."""

    def __init__(self, program: Program, plan: Plan, pivot: Pivot, kernels: int) -> None:
        self.kernels, self.pivot = kernels, pivot
        self.job = Job(shipped(program.closed, plan), {}, BEGIN, Limits(), 0, pivot, kernels)
        self.states: list[dict[str, list[Row]]] = [{} for _ in range(kernels)]

    def step(self, given: Rows, progress: Mapping[str, int], last: int) -> dict[str, list[Row]]:
        job = evolve(self.job, progress=progress, spoken_of=last)
        answers: dict[str, list[Row]] = {}
        for number in range(self.kernels):
            mine = {pred: self._dealt(number, pred, rows) for pred, rows in given.items()}
            found = stepped(job, number, {**mine, **self.states[number]})
            self.states[number] = {n: r for n, r in found.items() if n.startswith(STATE) and r}
            for name, rows in found.items():
                if name.startswith(ANSWER):
                    answers.setdefault(name.removeprefix(ANSWER), []).extend(rows)
        return answers

    def _dealt(self, number: int, pred: str, rows: list[Row]) -> list[Row]:
        column = self.pivot.columns.get(pred)
        if column is None:
            return rows
        return [r for r in rows if seat(r[column], self.kernels) == number]


def check(case: Case, rng: Random) -> int:
    """Returns how many parts had a pivot."""
    program = compiled(case)
    static = tables(program, case)
    found = list(pivots(program))
    facts = arrivals(program, case)
    for plan, pivot in found:
        defined = {r.rule.head.pred for r in plan.rules}
        steps = executor_steps(rng, facts)
        if rng.random() < 0.3:
            steps = [(facts, dict.fromkeys(facts, END))]
        one = Kernel(program.closed, static)
        several = Kernels(program, plan, pivot, rng.choice([2, 3]))
        last = BEGIN
        for number, (arrived, progress) in enumerate(steps):
            wanted = one.step(arrived, progress)
            times = [r[0] for rows in arrived.values() for r in rows]
            last = max([last, *times, *(at for at in progress.values() if at < END)])
            given: dict[str, list[Row]] = {**(static if number == 0 else {}), **arrived, **wanted}
            given[TICK] = sorted({(t,) for t in times})
            read = {p: rows for p, rows in given.items() if p in plan.arity and p not in defined}
            answers = several.step(read, progress, last)
            for pred in defined:
                here = sorted(answers.get(pred, []))
                assert here == sorted(wanted.get(pred, [])), f"{pred} at step {number}: {pivot}"
    return len(found)


WRITTEN = {
    "a timer": Case(
        "due(T + 2, X) <- start(T, X). due(T + 2, X) <- due(T, X), not stop(T, X).",
        {"start": [(1, "a"), (2, "b"), (4, "c")], "stop": [(9, "a"), (12, "c"), (20, "a")]},
        {},
    ),
    "facts, constants, and a rule without goals": Case(
        "seen(0, a). seen(1, d). seen(2, X) <- X = c.\n"
        "seen(T, X) <- s(T, X), not (seen(T0, X), T0 < T, T <= T0 + 3).\n"
        "seen(T, all) <- s(T, _), not (seen(T0, all), T0 < T, T <= T0 + 3).",
        {"s": [(t, "abcd"[t * t % 4]) for t in range(20)]},
        {},
    ),
    "tables alone": Case(
        "table arc(a: int, b: int).\npath(X, Y) <- arc(X, Y). path(X, Z) <- path(X, Y), arc(Y, Z).",
        {},
        {"arc": [(x, x * 3 % 7) for x in range(7)]},
    ),
}


@pytest.mark.parametrize("title", WRITTEN)
def test_what_chance_would_not_find(title: str) -> None:
    for seed in range(20):
        assert check(WRITTEN[title], Random(seed))


@pytest.mark.parametrize("first", range(SEED, SEED + CASES, SHARD))
def test_several_kernels_find_what_one_does(first: int) -> None:
    checked = 0
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case = random_case(rng)
        try:
            checked += check(case, rng)
        except Exception as error:
            raise AssertionError(
                f"seed {seed}\n{case.text}\n{case.facts}\n{case.tables}"
            ) from error
    assert checked > SHARD // 2
