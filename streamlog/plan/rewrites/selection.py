"""Only rows that some rule can ask for are stored.

windowed(T2, red) <- msg(T2, red), msg(T1, red), T1 < T2, …
    an index of the red messages alone, not of all messages by their colour
"""

from __future__ import annotations

from attrs import evolve

from streamlog.plan.conjunction import Conjunction
from streamlog.plan.steps import Join, Step
from streamlog.syntax.ast import Const


def selection(join: Step, _: Conjunction) -> Step:
    """A join through an index of the rows that have its constants."""
    if not isinstance(join, Join):
        return join
    where = tuple(
        (position, arg)
        for position in join.index.key
        if isinstance(arg := join.atom.args[position], Const)
    )
    if not where:
        return join
    key = tuple(p for p in join.index.key if not isinstance(join.atom.args[p], Const))
    return evolve(join, index=evolve(join.index, key=key, where=where))
