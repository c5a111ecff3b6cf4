"""Of facts that must exist at or before some time, the earliest of each key is enough.

not msg(T0, X), T0 from the beginning to T - 1, in all rows of X by time
    not msg(T0, X), T0 up to T - 1, in the earliest timestamp of X
"""

from __future__ import annotations

from attrs import evolve

from streamlog.plan.steps import Exists, Index, Join, Store
from streamlog.syntax.ast import Var


def earliest(test: Exists, replaced: frozenset[str]) -> Exists:
    """`replaced` are predicates whose rows may be taken back, so all of them must be stored."""
    match test.steps:
        case (Join(atom, Index(pred, key, Store.BY_TIME), None, high) as join,) if high:
            free = [a for i, a in enumerate(atom.args) if i not in key]
            if all(isinstance(a, Var) for a in free) and pred not in replaced:
                index = Index(pred, key, Store.EARLIEST)
                return evolve(test, steps=(evolve(join, index=index),))
    return test
