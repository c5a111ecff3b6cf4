"""What the kernel knows: relations, candidates and groups.

Generated code has hold of the lists, sets and dicts in here (`kernel.codegen`), so they are changed
in place and never replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from attrs import field, frozen

from streamlog.kernel import stores
from streamlog.plan.steps import Grouping, Index, Plan, RulePlan
from streamlog.runtime.executor import Row

T = TypeVar("T")


@frozen(eq=False)
class Relation:
    """The rows of a predicate."""

    indexes: Mapping[Index, stores.Stored]
    new: list[Row] = field(factory=list)  # found, and given to no rule yet
    seen: set[Row] = field(factory=set)  # found, if they may be found again

    def add(self, row: Row) -> None:
        if row not in self.seen:
            self.seen.add(row)
            self.new.append(row)

    def withdraw(self, row: Row) -> None:
        """A row that a better one replaces, and so is not settled."""
        for index, held in self.indexes.items():
            if not index.settled and all(row[p] == const.value for p, const in index.where):
                stores.remove(index, held, row)


@frozen(eq=False)
class RuleState:
    """A conjunction, and its candidates: solutions that are yet to be decided."""

    rule: RulePlan
    pending: list[Row] = field(factory=list)


@frozen(eq=False)
class GroupState:
    """Solutions that are yet to be aggregated; and the best value of each group, for a min or max
    within its own recursion."""

    grouping: Grouping
    solutions: list[Any] = field(factory=list)
    best: dict[tuple[Any, ...], Any] = field(factory=dict)


class Remembered(Protocol):
    """What is remembered of the rows in an index, by key."""

    def forget(self, stored: stores.Stored) -> None:
        """Drop keys that the index no longer has."""


@frozen(eq=False)
class State:
    relations: Mapping[str, Relation]
    rules: Mapping[int, RuleState]
    groups: Mapping[int, GroupState]
    derived: dict[Index, list[Remembered]] = field(factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> State:
        indexes: dict[str, dict[Index, stores.Stored]] = {pred: {} for pred in plan.arity}
        for index in plan.indexes:
            indexes[index.pred][index] = {}
        return cls(
            {pred: Relation(mine) for pred, mine in indexes.items()},
            {rule.number: RuleState(rule) for rule in plan.rules},
            {grouping.number: GroupState(grouping) for grouping in plan.groupings},
        )

    def stored(self, index: Index) -> stores.Stored:
        return self.relations[index.pred].indexes[index]


def taken(gathered: list[T]) -> list[T]:
    """What a list has, which is empty afterwards."""
    rows = gathered[:]
    gathered.clear()
    return rows
