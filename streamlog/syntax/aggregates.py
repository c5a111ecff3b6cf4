"""The aggregates, and what is true of each: whoever treats some of them alike asks here."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen


@frozen(kw_only=True)
class Aggregate:
    takes: int = 1  # arguments
    usage: str = ""  # for those that take two
    by_value: bool = False  # of the different values alone: how often each occurs changes nothing
    by_order: bool = False  # the value of one solution, by its timestamps
    best: int = 0  # 1: the highest value, -1: the lowest
    is_total: bool = False  # made of sums: of whole numbers, running totals will do
    is_folded: bool = False  # over rows in the order of time without making solutions

    @property
    def counts(self) -> bool:
        """Whether it matters how often a solution is found."""
        return not (self.by_value or self.by_order)


AGGREGATES: Mapping[str, Aggregate] = {
    "count": Aggregate(is_folded=True),
    "sum": Aggregate(is_total=True, is_folded=True),
    "min": Aggregate(by_value=True, best=-1, is_folded=True),
    "max": Aggregate(by_value=True, best=1, is_folded=True),
    "avg": Aggregate(is_total=True, is_folded=True),
    "count_distinct": Aggregate(by_value=True),
    "first": Aggregate(by_order=True),
    "last": Aggregate(by_order=True),
    "count_if": Aggregate(),
    "var": Aggregate(),
    "stddev": Aggregate(),
    "median": Aggregate(),
    "percentile": Aggregate(
        takes=2, usage="the value that 95 % do not exceed is `percentile(X, 0.95)`"
    ),
    "arg_min": Aggregate(
        takes=2, usage="`arg_min(X, Y)` is the X for which Y is lowest", by_value=True
    ),
    "arg_max": Aggregate(
        takes=2, usage="`arg_max(X, Y)` is the X for which Y is highest", by_value=True
    ),
    "collect": Aggregate(),
}
