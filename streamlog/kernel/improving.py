"""Min and max within their own recursion: better values replace worse ones.

That is safe because premappable recursions only use a worse row to make rows that are worse too,
and because an instant's rows become answers when the instant is over: a better value can come
from the same instant only.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamlog.kernel.state import GroupState, State, taken
from streamlog.runtime.executor import Row


class Improving:
    """The rows of the instant at hand, as far as nothing better has come."""

    def __init__(self, state: State) -> None:
        self._relations = state.relations
        groupings = [group.grouping for group in state.groups.values()]
        preds = [g.pred for g in groupings if g.improving]
        self._spread: dict[str, dict[Row, None]] = {p: {} for p in preds}
        self._replaced: dict[str, set[Row]] = {p: set() for p in preds}  # before they were spread

    def __contains__(self, pred: str) -> bool:
        return pred in self._spread

    def best_of(self, pred: str, rows: list[Row]) -> list[Row]:
        """New rows without those that were replaced at once. They are about to be spread."""
        if replaced := self._replaced[pred]:
            rows = [row for row in rows if row not in replaced]
            replaced.clear()
        self._spread[pred].update(dict.fromkeys(rows))
        return rows

    def improve(self, group: GroupState) -> None:
        """Solutions are groups with values. A worse row that was already spread is taken back."""
        best, grouping = group.best, group.grouping
        new = self._relations[grouping.pred].new
        ((at, function),) = grouping.aggregates
        smallest = function == "min"
        for key, value in taken(group.solutions):
            old = best.get(key)
            if old is not None:
                if value >= old if smallest else value <= old:
                    continue
                self._withdraw(grouping.pred, (*key[:at], old, *key[at:]))
            best[key] = value
            new.append((*key[:at], value, *key[at:]))

    def _withdraw(self, pred: str, row: Row) -> None:
        spread = self._spread[pred]
        if row in spread:
            del spread[row]
            self._relations[pred].withdraw(row)
        else:
            self._replaced[pred].add(row)

    def finish(self) -> Iterator[tuple[str, list[Row]]]:
        """The instant is over: the best rows in it are answers."""
        for pred, rows in self._spread.items():
            if rows:
                self._spread[pred] = {}
                yield pred, list(rows)
