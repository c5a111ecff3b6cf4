"""What each rule costs, where someone wants to know: measuring takes time itself."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from streamlog.runtime.executor import Cost


@define
class Tally(Cost):
    """A cost that generated code adds to."""

    def add(self, seconds: float, rows_in: int = 0, rows_out: int = 0, rounds: int = 0) -> None:
        self.seconds += seconds
        self.rows_in += rows_in
        self.rows_out += rows_out
        self.rounds += rounds


class Profile:
    """By rule, and by what is no rule's: storing rows, making paths."""

    def __init__(self, titles: Mapping[int, str]) -> None:
        self._titles = titles
        self._rules = {number: Tally() for number in titles}
        self._others: dict[str, Tally] = {}

    def of(self, rule: int) -> Tally:
        return self._rules[rule]

    def other(self, what: str) -> Tally:
        return self._others.setdefault(what, Tally())

    def seconds(self) -> float:
        """All that rules have taken."""
        return sum(cost.seconds for cost in self._rules.values())

    @property
    def costs(self) -> dict[str, Cost]:
        """In words; conjunctions of one rule together."""
        result: dict[str, Cost] = dict(self._others)
        for number, cost in self._rules.items():
            known = result.setdefault(self._titles[number], Tally())
            assert isinstance(known, Tally)
            known.add(cost.seconds, cost.rows_in, cost.rows_out, cost.rounds)
        return result
