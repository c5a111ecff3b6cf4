"""Rules whose steps lie deeper inside each other than Python nests blocks."""

from __future__ import annotations

from random import Random

import pytest
from oracle.executor import NaiveExecutor
from streaming import compiled

from streamlog.compiler import Mode
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine


def path(letter: str, edges: int) -> str:
    steps = (f"e({letter}{i}, {letter}{i + 1})" for i in range(edges))
    return ", ".join((*steps, f"{letter}0 != {letter}{edges}"))


def within(depth: int) -> str:
    """Negations one inside the other."""
    inner = f", {within(depth - 1)}" if depth else ""
    return f"not (e(X{depth + 1}, X{depth}), X{depth} != a{inner})"


LONG = f"""
table e(a: string, b: string).
p(T, A0, A11) <- q(T, A0), {path("A", 11)},
    not ({path("B", 13)}, B0 = A0, B13 = A11,
         not (e(B5, C), {path("D", 10)}, D0 = C, C != A3)).
"""
DEEP = f"table e(a: string, b: string).\np(T, X9) <- q(T, X9), {within(8)}.\n"


@pytest.mark.parametrize("text", [LONG, DEEP], ids=["long", "deep"])
@pytest.mark.parametrize("seed", [0, 3, 5])
def test_long_and_deep_rules(text: str, seed: int) -> None:
    random, nodes = Random(seed), "abcde"
    edges = {(random.choice(nodes), random.choice(nodes)) for _ in range(7)}
    answers = []
    for executor in (Kernel, NaiveExecutor):
        engine = Engine(compiled(text, Mode.STREAM), executor, {"e": sorted(edges)})
        engine.push("q", [(1, node) for node in nodes])
        engine.end()
        answers.append(engine.step()["p"])
    assert answers[0] == answers[1]
