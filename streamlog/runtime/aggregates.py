"""Groups of solutions to values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from math import ceil, floor, sqrt
from typing import Any

from streamlog.plan.steps import Grouping
from streamlog.runtime.functions import EvaluationError, exact_sum, finite, whole
from streamlog.syntax.ast import Limit, Type

# (group, values to aggregate, timestamps of the goals, what tells it from other solutions)
Solution = tuple[tuple[Any, ...], tuple[Any, ...], tuple[int, ...], Any]
Function = Callable[[list[Any], list[tuple[int, ...]]], Any]  # of values and timestamps


def _sum(values: list[Any], orders: list[tuple[int, ...]]) -> Any:
    total = _total(values)
    return whole(total) if isinstance(total, int) else total


def _average(values: list[Any], orders: list[tuple[int, ...]]) -> Any:
    return float(_total(values)) / len(values)


def _total(values: list[Any]) -> Any:
    return exact_sum(values) if isinstance(values[0], float) else sum(values)


def _at(end: Callable[[list[tuple[int, ...]]], tuple[int, ...]]) -> Function:
    """The value at the earliest or the latest timestamps; among several the smallest."""

    def value(values: list[Any], orders: list[tuple[int, ...]]) -> Any:
        wanted = end(orders)
        return min(v for v, at in zip(values, orders, strict=True) if at == wanted)

    return value


def _variance(values: list[Any], orders: list[tuple[int, ...]]) -> float:
    """Of a sample: exact, rounded once. A single value does not vary."""
    count = len(values)
    if count == 1:
        return 0.0
    exact = values if isinstance(values[0], int) else list(map(Fraction, values))
    spread = count * sum(v * v for v in exact) - sum(exact) ** 2
    return finite(float(Fraction(spread, count * (count - 1))))


def _middle(values: list[Any]) -> tuple[Any, Any]:
    """The value in the middle, twice, or the two that are next to it."""
    ranked, half = sorted(values), len(values) // 2
    return ranked[half - 1 + len(values) % 2], ranked[half]


def _median(values: list[Any], orders: list[tuple[int, ...]]) -> float:
    low, high = _middle(values)
    return float((Fraction(low) + Fraction(high)) / 2)


def _percentile(values: list[tuple[Any, float]], orders: list[tuple[int, ...]]) -> float:
    """Between the two values next to the rank, in proportion; exact, rounded once."""
    low, high, part = _around(values)
    return float(Fraction(low) + (Fraction(high) - Fraction(low)) * part)


def _percentile_of_durations(values: list[tuple[int, float]], orders: list[tuple[int, ...]]) -> int:
    low, high, part = _around(values)
    between: Fraction = low + (high - low) * part
    return floor(between)


def _around(values: list[tuple[Any, float]]) -> tuple[Any, Any, Fraction]:
    """The values on either side of the rank, and how far it lies between them."""
    ranked = sorted(value for value, _ in values)
    rank = Fraction(repr(values[0][1])) * (len(ranked) - 1)  # 0.95 as it is written
    below = floor(rank)
    return ranked[below], ranked[ceil(rank)], rank - below


def _at_best(end: Callable[[Iterable[Any]], Any]) -> Function:
    """The value for which the other is lowest or highest; among several the smallest."""

    def value(values: list[Any], orders: list[tuple[int, ...]]) -> Any:
        wanted = end(by for _, by in values)
        return min(v for v, by in values if by == wanted)

    return value


_FUNCTIONS: dict[str, Function] = {
    "count": lambda values, orders: len(values),
    "count_distinct": lambda values, orders: len(set(values)),
    "sum": _sum,
    "avg": _average,
    "min": lambda values, orders: min(values),
    "max": lambda values, orders: max(values),
    "first": _at(min),
    "last": _at(max),
    "count_if": lambda values, orders: sum(values),
    "var": _variance,
    "stddev": lambda values, orders: sqrt(_variance(values, orders)),
    "median": _median,
    "percentile": _percentile,
    "arg_min": _at_best(min),
    "arg_max": _at_best(max),
    "collect": lambda values, orders: json.dumps(sorted(values), ensure_ascii=False),
}


def function(name: str, result: Type | None) -> Function:
    """What an aggregate does to the values and timestamps of its solutions."""
    if name == "avg" and result is Type.DURATION:
        return lambda values, orders: sum(values) // len(values)
    if name == "median" and result is Type.DURATION:
        return lambda values, orders: sum(_middle(values)) // 2
    if name == "percentile" and result is Type.DURATION:
        return _percentile_of_durations
    return _FUNCTIONS[name]


def aggregate(
    grouping: Grouping, functions: Sequence[Function], solutions: Iterable[Solution]
) -> Iterator[tuple[Any, ...]]:
    """A row for each group."""
    if grouping.distinct:
        solutions = _once(solutions)
    groups: dict[tuple[Any, ...], list[Solution]] = {}
    for solution in solutions:
        group = groups.get(solution[0])
        if group is None:
            groups[solution[0]] = [solution]
        else:
            group.append(solution)
    if grouping.limit is not None:
        for members in groups.values():
            yield from (row for _, row in ranked(grouping.limit, [m[1] for m in members]))
        return
    for key, members in groups.items():
        orders = [m[2] for m in members]
        results = (f([m[1][i] for m in members], orders) for i, f in enumerate(functions))
        try:
            yield row_of(grouping, key, results)
        except OverflowError as error:
            raise EvaluationError(str(error)) from None


def ranked(
    limit: Limit, rows: Iterable[tuple[tuple[Any, ...], tuple[Any, ...]]]
) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Of the rows of a group, each with what it is ranked by, those that the limit leaves. Rows
    that rank alike are in their own order."""
    ranking = sorted(rows, key=lambda r: r[1])
    for at, order in reversed([*enumerate(limit.by)]):
        ranking.sort(key=lambda r, at=at: r[0][at], reverse=order.descending)  # type: ignore[misc]
    return ranking[limit.offset : limit.offset + limit.count]


def _once(solutions: Iterable[Solution]) -> Iterable[Solution]:
    """Branches may find one solution at different timestamps: the earliest count."""
    found: dict[tuple[Any, ...], Solution] = {}
    for solution in solutions:
        group, values, order, which = solution
        known = found.get((group, values, which))
        if known is None or order < known[2]:
            found[group, values, which] = solution
    return found.values()


def row_of(grouping: Grouping, key: tuple[Any, ...], values: Iterable[Any]) -> tuple[Any, ...]:
    """The head's row: the aggregates at their positions, the group's terms at the others."""
    row = key
    for (position, _), value in zip(grouping.aggregates, values, strict=True):
        row = (*row[:position], value, *row[position:])
    return row
