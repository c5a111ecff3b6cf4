"""What the kernel remembers of the rows in its indexes goes with them."""

from __future__ import annotations

import streamlog
from streamlog.compiler import focused
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine

LATEST_THREE = """
stream trade(T: int, id: int, option: string).
output book.
traded(T, O) <- trade(T, _, O).
newer(T, O, N, count(M)) <-
    traded(T, O), trade(U, N, O), trade(V, M, O), T - 10 <= U, U <= V, V < T, N < M.
book(T, O, N) <- traded(T, O), trade(U, N, O), T - 10 <= U, U < T, newer(T, O, N, K), K < 2.
book(T, O, N) <- traded(T, O), trade(U, N, O), T - 10 <= U, U < T, not newer(T, O, N, _).
"""


def test_keys_that_are_gone_are_forgotten() -> None:
    engine = Engine(focused(streamlog.compile(LATEST_THREE)), Kernel, remember=False)
    kernel = engine.executor
    assert isinstance(kernel, Kernel)
    made = [ranks for some in kernel._state.derived.values() for ranks in some]
    assert made, "the rules are not recognised"
    for at in range(0, 6000, 2):
        engine.push("trade", [(at, at, f"o{at // 20}"), (at + 1, at + 1, f"o{at // 20}")])
        engine.step()
    engine.advance(6000)
    engine.step()
    kernel.holding()
    assert max(len(ranks._keys) for ranks in made) <= 3
