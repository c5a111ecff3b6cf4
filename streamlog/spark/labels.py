"""What a node of a graph knows while labels travel along the arcs: see `spark.graph`.

All are expressions of Spark's, so nothing leaves the JVM.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from streamlog.plan.paths import Cost


class State(ABC):
    """What a node knows, and what of it is fresh: both of one type, `empty` when there is none."""

    def __init__(self, cost: Cost | None) -> None:
        self.cost = cost
        self.best_of = F.min if self.cost is None or self.cost.best == "min" else F.max
        self.best = F.least if self.cost is None or self.cost.best == "min" else F.greatest

    def further(self, cost: Column, weight: Column) -> Column:
        """The cost with one more arc."""
        match self.cost.combine if self.cost else None:
            case "+":
                return cost + weight
            case "max":
                return F.greatest(cost, weight)
            case "min":
                return F.least(cost, weight)
            case _:
                return cost

    def is_better(self, new: Column, old: Column) -> Column:
        better = new < old if self.cost is None or self.cost.best == "min" else new > old
        return old.isNull() | better

    @abstractmethod
    def start(self, base: DataFrame) -> DataFrame:
        """By node (`id`), what the base says (`start`)."""

    @abstractmethod
    def message(self, fresh: Column, weight: Column) -> Column: ...

    @abstractmethod
    def gathered(self, messages: Column) -> Column: ...

    @abstractmethod
    def known(self, known: Column, message: Column) -> Column: ...

    @abstractmethod
    def fresh(self, known: Column, message: Column) -> Column: ...

    @abstractmethod
    def is_empty(self, state: Column) -> Column: ...

    @abstractmethod
    def rows(self, nodes: DataFrame) -> DataFrame:
        """`node`, `label` and `cost` of what is known in the end, as far as there are such."""


class One(State):
    """Nothing is carried: a node is reached, or has a cost."""

    def start(self, base: DataFrame) -> DataFrame:
        return base.groupBy(F.col("node").alias("id")).agg(self.best_of("cost").alias("start"))

    def message(self, fresh: Column, weight: Column) -> Column:
        # The larger of nothing and a weight would be the weight.
        return F.when(fresh.isNotNull(), self.further(fresh, weight))

    def gathered(self, messages: Column) -> Column:
        return self.best_of(messages)

    def known(self, known: Column, message: Column) -> Column:
        return self.best(known, message)

    def fresh(self, known: Column, message: Column) -> Column:
        return F.when(message.isNotNull() & self.is_better(message, known), message)

    def is_empty(self, state: Column) -> Column:
        return state.isNull()

    def rows(self, nodes: DataFrame) -> DataFrame:
        return nodes.filter(F.col("known").isNotNull()).select("id", F.col("known").alias("cost"))


class Labels(State):
    """The labels that have come."""

    def start(self, base: DataFrame) -> DataFrame:
        return base.groupBy(F.col("node").alias("id")).agg(F.collect_set("label").alias("start"))

    def message(self, fresh: Column, weight: Column) -> Column:
        return F.when(F.size(fresh) > 0, fresh)

    def gathered(self, messages: Column) -> Column:
        return F.array_distinct(F.flatten(F.collect_list(messages)))

    def known(self, known: Column, message: Column) -> Column:
        return F.coalesce(F.array_union(known, message), known, message)

    def fresh(self, known: Column, message: Column) -> Column:
        return F.coalesce(F.array_except(message, known), message)

    def is_empty(self, state: Column) -> Column:
        return state.isNull() | (F.size(state) == 0)

    def rows(self, nodes: DataFrame) -> DataFrame:
        return nodes.select("id", F.explode("known").alias("label"))


class Costs(State):
    """The labels that have come, and the best cost of each."""

    def start(self, base: DataFrame) -> DataFrame:
        best = base.groupBy("node", "label").agg(self.best_of("cost").alias("cost"))
        entries = F.map_from_entries(F.collect_list(F.struct("label", "cost")))
        return best.groupBy(F.col("node").alias("id")).agg(entries.alias("start"))

    def message(self, fresh: Column, weight: Column) -> Column:
        further = F.transform_values(fresh, lambda _, cost: self.further(cost, weight))
        return F.when(F.size(fresh) > 0, further)

    def gathered(self, messages: Column) -> Column:
        maps = F.collect_list(messages)
        return F.aggregate(F.slice(maps, 2, F.size(maps)), maps[0], self._merged)

    def _merged(self, one: Column, other: Column) -> Column:
        return F.map_zip_with(one, other, lambda _, a, b: self.best(a, b))

    def known(self, known: Column, message: Column) -> Column:
        return F.coalesce(self._merged(known, message), known, message)

    def fresh(self, known: Column, message: Column) -> Column:
        # By zipping and not by looking up: a map of Spark's is searched from its beginning.
        better = F.map_zip_with(
            known, message, lambda _, old, new: F.when(self.is_better(new, old), new)
        )
        return F.coalesce(F.map_filter(better, lambda _, cost: cost.isNotNull()), message)

    def is_empty(self, state: Column) -> Column:
        return state.isNull() | (F.size(state) == 0)

    def rows(self, nodes: DataFrame) -> DataFrame:
        return nodes.select("id", F.explode("known").alias("label", "cost"))
