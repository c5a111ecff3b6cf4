"""The closing tables of a run: what became of the rows, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.table import Table

from streamlog.app.tables import plain_table
from streamlog.plan.strategies import Choice
from streamlog.runtime.executor import Cost

_DEAREST = 5


def figures_tables(
    columns: Sequence[str],
    rows: Mapping[str, Sequence[int]],
    answers: Mapping[str, int],
    skipped: Mapping[str, int],
) -> Iterator[Table]:
    """What became of the rows of each input, how many answers each output has, and how many
    solutions of rules were skipped."""
    yield _numbers(("input", *columns), rows)
    yield _numbers(("output", "answers"), {name: (count,) for name, count in answers.items()})
    if any(skipped.values()):
        yield _numbers(("rule", "skipped"), {rule: (n,) for rule, n in skipped.items() if n})


def _numbers(columns: Sequence[str], rows: Mapping[str, Sequence[int]]) -> Table:
    table = plain_table(*columns, right=range(1, len(columns)))
    for name, numbers in sorted(rows.items()):
        table.add_row(name, *(f"{n:,}" for n in numbers))
    return table


def times_table(seconds: Mapping[str, float]) -> Table:
    """The rules that took longest."""
    table = plain_table("time went into", "seconds", right=[1])
    for what, spent in sorted(seconds.items(), key=lambda s: -s[1])[:_DEAREST]:
        table.add_row(what, f"{spent:.1f}")
    return table


def profile_table(costs: Mapping[str, Cost]) -> Table:
    """What each rule took, the most expensive first."""
    table = plain_table("rule", "seconds", "rows in", "rows out", "rounds", right=range(1, 5))
    for what, cost in sorted(costs.items(), key=lambda c: (-c[1].seconds, c[0])):
        numbers = (cost.rows_in, cost.rows_out, cost.rounds)
        table.add_row(what, f"{cost.seconds:.3f}", *(f"{n:,}" for n in numbers))
    return table


def strategies_table(used: Mapping[str, Choice]) -> Table:
    """How the rules of each predicate were evaluated, and why. Those that were evaluated in the
    same way for the same reason share a row."""
    predicates: dict[tuple[str, str], list[str]] = {}
    for name, choice in used.items():
        predicates.setdefault((choice.strategy.value, choice.reason), []).append(name)
    table = plain_table("predicate", "strategy", "reason")
    for how, names in predicates.items():
        table.add_row(", ".join(names), *how)
    return table
