"""Semi-naive recursion by queries: rounds of them until nothing is new.

`Total` and `Delta` are versions of a relation that queries name (`plan.sql.Version`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeAlias, TypeVar

from attrs import frozen

from streamlog.plan.sql import Version
from streamlog.plan.steps import RulePlan
from streamlog.runtime.executor import Limits
from streamlog.runtime.rounds import cut_short, rows_of

R = TypeVar("R")  # what an engine calls rows: a DataFrame, a query


@frozen
class Delta(Generic[R]):
    """The rows that the last round has added."""

    rows: R
    count: int


class Total(Protocol[R]):
    """All rows so far of a predicate: those from before the batch, and what each round has
    added."""

    @property
    def rows(self) -> R | None: ...

    @property
    def count(self) -> int:
        """Of the rows that were added."""

    def beyond(self, found: R) -> Delta[R]:
        """Of rows that a round has found, those that were not known, counted and stored."""

    def add(self, delta: Delta[R]) -> None: ...


Versions: TypeAlias = Sequence[tuple[RulePlan, int | None]]  # from the new rows of which goal


def fixpoint(
    rules: list[RulePlan],
    totals: Mapping[str, Total[R]],
    register: Callable[[str, Version, R | None], None],
    find: Callable[[Versions], Mapping[str, R]],
    limits: Limits,
    doing: Callable[[str], AbstractContextManager[None]],
) -> int:
    """Adds all that the rules of a component give to the totals. Returns the number of rounds.

    `find` makes queries of conjunctions, each over everything or from the new rows of one of its
    goals. `doing` says what went wrong in a round.
    """
    versions: Versions = [(rule, None) for rule in rules]
    rounds, began = 0, time.monotonic()
    while versions:
        for pred, total in totals.items():
            register(pred, Version.TOTAL, total.rows)
        with doing(f"round {rounds + 1:,}: {rows_of(totals, rules)}"):
            deltas = {p: totals[p].beyond(rows) for p, rows in find(versions).items()}
        rounds += 1
        for pred, delta in deltas.items():
            totals[pred].add(delta)
            register(pred, Version.DELTA, delta.rows)
        grown = {pred for pred, delta in deltas.items() if delta.count}
        versions = [
            (rule, number)
            for rule in rules
            for number, pipeline in enumerate(rule.pipelines)
            if pipeline.start is not None and pipeline.start.pred in grown
        ]
        derived = sum(total.count for total in totals.values())
        limit = limits.reached(rounds, derived, time.monotonic() - began)
        if limit and versions:
            raise cut_short(totals, rules, limit, rounds, derived)
    return rounds
