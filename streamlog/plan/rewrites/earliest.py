"""Of facts that must exist at or before some time, the earliest of each key is enough.

not msg(T0, X), T0 from the beginning to T - 1, in all rows of X by time
    not msg(T0, X), T0 up to T - 1, in the earliest timestamp of X
"""

from __future__ import annotations

from attrs import evolve

from streamlog.plan.conjunction import Conjunction
from streamlog.plan.steps import Exists, Index, Join, Step, Store
from streamlog.syntax.ast import Var


def earliest(step: Step, found: Conjunction) -> Step:
    """Of a predicate whose rows may be replaced by better ones, all must be stored."""
    match step:
        case Exists((Join(atom, Index(pred, key, Store.BY_TIME), None, high) as join,)) if high:
            free = [a for i, a in enumerate(atom.args) if i not in key]
            if all(isinstance(a, Var) for a in free) and pred not in found.program.improving:
                index = Index(pred, key, Store.EARLIEST)
                return evolve(step, steps=(evolve(join, index=index),))
        case _:
            pass
    return step
