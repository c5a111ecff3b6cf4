"""Outside its recursion, a predicate whose rows may be replaced is read when they are settled.

dist(X, Y, min<C>) <- dist(X, Z, C1), road(Z, Y, C2), C = C1 + C2.
near(X, Y) <- dist(X, Y, C), C < 5.
    near through an index of the final distances alone
"""

from __future__ import annotations

from attrs import evolve

from streamlog.plan.conjunction import Conjunction
from streamlog.plan.steps import Join, Step


def settled(step: Step, found: Conjunction) -> Step:
    if not isinstance(step, Join):
        return step
    pred = found.rule.head.pred
    if pred in found.program.improving.get(step.index.pred, {pred}):
        return step
    return evolve(step, index=evolve(step.index, settled=True))
