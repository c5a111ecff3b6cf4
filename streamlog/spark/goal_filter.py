"""The rows of a relation that goals want."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamlog.syntax.ast import Atom, Const, Var


def selected(rows: DataFrame, goals: Sequence[Atom]) -> DataFrame:
    """Those that fit one of the goals: its constants, and equal values for a variable that it
    has twice."""
    return rows.where(reduce(or_, map(_fits, goals)))


def _fits(goal: Atom) -> Column:
    conditions = [F.lit(True)]
    place: dict[str, int] = {}
    for position, arg in enumerate(goal.args):
        if isinstance(arg, Const):
            conditions.append(F.col(f"c{position}") == F.lit(arg.value))
        elif isinstance(arg, Var):
            first = place.setdefault(arg.name, position)
            if first != position:
                conditions.append(F.col(f"c{position}") == F.col(f"c{first}"))
    return reduce(and_, conditions)
