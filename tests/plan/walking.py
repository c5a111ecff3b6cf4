"""What `plan.paths` says, taken literally: rows that grow until nothing is new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streamlog.plan.paths import Arc, Closure, Paths, Reach
from streamlog.syntax.ast import Const

Row = tuple[Any, ...]
Step = tuple[Row, Row, Any]  # from where, to where, weight

COMBINE: dict[str | None, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "max": max,
    "min": min,
    None: lambda a, _: a,
}


def walked(paths: Paths, base: Iterable[Row], rows: Mapping[str, Iterable[Row]]) -> set[Row]:
    """The rows of the predicate. Slow: every row is tried with every arc in every round."""
    cost = paths.cost
    best: dict[Row, Any] = {}  # the cost by the rest of a row

    def take(key: Row, value: Any) -> bool:
        if key in best and (cost is None or not _is_better(value, best[key], cost.best)):
            return False
        best[key] = value
        return True

    match paths:
        case Closure(source=source, target=target):
            base = list(base)
            if paths.both_ways:
                swap = dict(zip((*source, *target), (*target, *source), strict=True))
                base += [tuple(r[swap.get(i, i)] for i in range(len(r))) for r in base]
            weight = None if cost is None else cost.column
            steps = [step for row in base for step in _steps(source, target, weight, row)]
            end = target
        case Reach(end=end):
            steps = [s for arc in paths.arcs for row in rows[arc.pred] for s in _along(arc, row)]
        case _:
            raise TypeError(paths)
    column = cost.column if cost else None
    end = tuple(c - (column is not None and c > column) for c in end)
    for row in base:
        take(tuple(v for i, v in enumerate(row) if i != column), column is not None and row[column])
    combine = COMBINE[cost.combine if cost else None]
    while [
        None
        for key, value in list(best.items())
        for here, there, weight in steps
        if tuple(key[c] for c in end) == here
        and take(_moved(key, end, there), combine(value, weight))
    ]:
        pass
    if column is None:
        return set(best)
    return {(*key[:column], value, *key[column:]) for key, value in best.items()}


def _is_better(one: Any, other: Any, best: str) -> bool:
    return bool(one < other if best == "min" else one > other)


def _moved(key: Row, end: tuple[int, ...], there: Row) -> Row:
    moved = list(key)
    for column, value in zip(end, there, strict=True):
        moved[column] = value
    return tuple(moved)


def _steps(
    tail: tuple[int, ...], head: tuple[int, ...], weight: int | Const | None, row: Row
) -> list[Step]:
    value = weight.value if isinstance(weight, Const) else weight is not None and row[weight]
    return [(tuple(row[c] for c in tail), tuple(row[c] for c in head), value)]


def _along(arc: Arc, row: Row) -> list[Step]:
    if any(row[c] != const.value for c, const in arc.where):
        return []
    if any(row[a] != row[b] for a, b in arc.same):
        return []
    return _steps(arc.tail, arc.head, arc.weight, row)
