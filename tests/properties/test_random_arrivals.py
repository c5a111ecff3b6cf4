"""Random programs over streams whose rows are stamped as they arrive: whatever the clock shows and
wherever the run is cut and restarted, the answers are those of the oracle over the log.

    STREAMLOG_ARRIVALS=2000 pytest tests/properties/test_random_arrivals.py
"""

from __future__ import annotations

import os
from random import Random

import pytest
from kernel_checks import Answers, expected
from oracle.programs import Case
from test_several_timelines import random_program

from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Source
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.runtime.wall_clock import WallClock

PROGRAMS = int(os.environ.get("STREAMLOG_ARRIVALS", "150"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))
SHARE = 50
BEGIN = 1_800_000_000_000_000


class Readings(WallClock):
    def __init__(self) -> None:
        self.reading = BEGIN

    def now(self) -> int:
        return self.reading


def accepted(rng: Random) -> tuple[str, Program]:
    while True:
        text, _ = random_program(rng)
        if " arrival" in text:
            program = compile_source(Source("random.slog", text))
            if program.ok:
                return text, program


class Live:
    """A run with a clock of its own."""

    def __init__(self, program: Program, rng: Random) -> None:
        self.program, self.rng, self.clock = program, rng, Readings()
        self.engine = Engine(program, Kernel, clock=self.clock)
        self.answers: Answers = {name: set() for name in program.contract.outputs}
        self.late = self.restarts = 0

    def go_on(self) -> None:
        rng, engine, now = self.rng, self.engine, self.clock.reading
        for _ in range(rng.randint(0, 4)):
            at, x = now + rng.randint(-3, 3), rng.choice("ab")
            engine.push(*rng.choice([("s", [(at, x)]), ("s", [(at, x)]), ("r", [(at, x)])]))
        if rng.random() < 0.4:
            engine.tick("s", now)
        if rng.random() < 0.2:
            engine.advance(now - rng.randrange(3), rng.choice(["s", "r"]))
        if rng.random() < 0.6:
            self.step()
        if rng.random() < 0.2:
            self.restarts += 1
            self.late += len(engine.late)
            self.engine = Engine(self.program, Kernel, clock=self.clock)
            self.engine.load(engine.save())
        self.clock.reading += rng.choice([-2, 0, 0, 1, 1, 2, 5])

    def step(self) -> None:
        for name, rows in self.engine.step().items():
            assert not self.answers[name] & set(rows), "an answer came twice"
            self.answers[name] |= set(rows)


@pytest.mark.parametrize("first", range(SEED, SEED + PROGRAMS, SHARE))
def test_answers_are_those_of_the_log(first: int) -> None:
    found = restarts = 0
    for seed in range(first, first + SHARE):
        rng = Random(f"{seed}/arrivals")
        text, program = accepted(rng)
        live = Live(program, rng)
        for _ in range(rng.randint(3, 9)):
            live.go_on()
        live.engine.end()
        live.step()
        log = {name: live.engine.facts(name) for name in ("s", "r")}
        stamps = [row[1] for row in log["s"]]
        assert len(stamps) == len({*stamps})
        answers = expected(program, Case(text, log, {}))
        wanted = {name: answers[name] for name in live.answers}
        assert live.answers == wanted, f"seed {seed}:\n{text}\n{log}"
        found += sum(map(len, wanted.values()))
        restarts += live.restarts
    assert found > SHARE and restarts > SHARE / 4
