"""Timers without a bound: they go on as far as time does, whatever the cuts.

What they give is what they would give with the bound that the end of the data is to them:

    STREAMLOG_PAIRS=20000 STREAMLOG_SEED=1000000 pytest tests/properties/test_random_timers.py
"""

from __future__ import annotations

import os
from random import Random

import pytest
from kernel_checks import at_once, compiled, expected, in_steps
from oracle.programs import LAST_TIME, Case

PAIRS = int(os.environ.get("STREAMLOG_PAIRS", "300"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))
SHARD = 30


class Maker:
    """`start` begins it, `next` goes on, and something reads it, perhaps ahead of it."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.ahead = rng.choice([0, 0, 0, 1, 2, 5])
        self.rules = self.make()
        streams = {"s": 6, "r": rng.choice([0, 4])}
        self.facts = {
            name: sorted({(rng.randrange(LAST_TIME),) for _ in range(rng.randint(0, most))})
            for name, most in streams.items()
        }

    def make(self) -> list[str]:
        rng = self.rng
        head = f"T + {self.ahead}" if self.ahead else "T"
        blocked = rng.choice(["", ", not (b(T1), T1 < T)", ", not r(T)"])
        step = rng.choice([1, 2, 3])
        stop = rng.choice(
            ["", f", not r(T + {step})", ", not (r(E), T <= E, E <= T + 1)", ", not (r(E), E < T)"]
        )
        more = rng.choice(["", "", ", r(T9), T9 <= T", ", on"])
        lines = [
            f"b({head}) <- s(T){blocked}.",
            f"b(T + {step}) <- b(T){stop}{more}{{bound}}.",
        ]
        if rng.random() < 0.3:  # through another predicate
            lines[1] = f"c(T) <- b(T){stop}{more}."
            lines.append(f"b(T + {step}) <- c(T){{bound}}.")
        later = rng.choice([0, 0, 1, self.ahead])
        at = f"T + {later}" if later else "T"
        lines.append(rng.choice([f"p({at}) <- s(T), not b({at}).", f"p({at}) <- s(T), b({at})."]))
        lines.append("q(T, count()) <- s(T), b(T1), T1 <= T, T1 > T - 4.")
        return [*lines, "on <- t(1).", "t(1)." if rng.random() < 0.7 else "t(2)."]

    def case(self, last: int | None) -> Case:
        """With `last`, bounded there."""
        declared = "stream s(T: int).\nstream r(T: int).\ntable t(n: int).\n"
        step = next(line for line in self.rules if "{bound}" in line).split("T + ")[1][0]
        bound = "" if last is None else f", T + {step} <= {last}"
        rules = "\n".join(self.rules).replace("{bound}", bound)
        return Case(f"{declared}{rules}\n", self.facts, {})


def foresight(case: Case) -> int:
    """How far beyond its streams `b` is certain, by the contract."""
    delays = [d.by for d in compiled(case).contract["b"].delays]
    assert None not in delays
    return max(0, -max(delays))  # type: ignore[type-var, operator]


@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS, SHARD))
def test_timers_go_on_as_far_as_time_does(first: int) -> None:
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        maker = Maker(rng)
        times = [row[0] for rows in maker.facts.values() for row in rows]
        case = maker.case(None)
        program = compiled(case)
        assert any(rule.is_timer for rule in program.closed.plan.rules), case.text
        last = max(times, default=0) + foresight(case)
        bounded = maker.case(last)
        wanted = expected(compiled(bounded), bounded)
        try:
            assert at_once(program, case) == wanted, "at once"
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{case.text}\n{case.facts}\n{bounded.text}")
        # Progress speaks of time too, so cut into steps they may go on further.
        for restart in (False, True):
            found = in_steps(program, case, rng, restart=restart, tidy=restart)
            for name in ("b", "p", "q"):
                rows = wanted[name]
                early = {r for r in found[name] if r[0] <= max(times, default=0)}
                assert early == {r for r in rows if r[0] <= max(times, default=0)}, (
                    f"seed {seed}, {name}\n{case.text}\n{case.facts}"
                )
