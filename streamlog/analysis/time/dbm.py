"""Difference-bound matrices over the integers.

A matrix holds the strongest known `x - y <= c` for each pair of names. On the integers `x < y`
is `x <= y - 1`, so closing the matrix under addition (Floyd-Warshall) gives bounds that are
attained: for each pair there is an assignment with exactly that difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

ZERO = "0"  # the name whose value is 0, so that constants are differences too


class Difference(NamedTuple):
    """`left - right <= most`."""

    left: str
    right: str
    most: int


class Dbm:
    """A closed, consistent conjunction of differences. Made by `Dbm.of`, never changed."""

    __slots__ = ("_bounds", "_index")

    def __init__(self, index: dict[str, int], bounds: list[list[int | None]]) -> None:
        self._index = index
        self._bounds = bounds

    @staticmethod
    def of(names: Iterable[str], differences: Iterable[Difference]) -> Dbm | None:
        """The closed matrix, or None when the differences contradict each other."""
        differences = tuple(differences)
        used = {n for d in differences for n in d[:2]}
        index = {name: i for i, name in enumerate(dict.fromkeys((ZERO, *names, *sorted(used))))}
        size = len(index)
        bounds: list[list[int | None]] = [[None] * size for _ in range(size)]
        for i in range(size):
            bounds[i][i] = 0
        for left, right, most in differences:
            i, j = index[left], index[right]
            old = bounds[i][j]
            if old is None or most < old:
                bounds[i][j] = most
        return _closed(index, bounds)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._index)

    def most(self, left: str, right: str) -> int | None:
        """The largest `left - right`; None when there is none."""
        if left == right:
            return 0
        if left not in self._index or right not in self._index:
            return None
        return self._bounds[self._index[left]][self._index[right]]

    def least(self, left: str, right: str) -> int | None:
        """The smallest `left - right`; None when there is none."""
        most = self.most(right, left)
        return None if most is None else -most

    def entails(self, difference: Difference) -> bool:
        most = self.most(difference.left, difference.right)
        return most is not None and most <= difference.most

    def and_also(self, differences: Iterable[Difference]) -> Dbm | None:
        """This matrix with further differences, or None when they contradict it.

        A closed matrix is closed again by going once through each new difference.
        """
        index, bounds = self._index, [list(row) for row in self._bounds]
        for left, right, most in differences:
            for name in (left, right):
                if name not in index:
                    index = {**index, name: len(index)}
                    for row in bounds:
                        row.append(None)
                    bounds.append([None] * (len(index) - 1) + [0])
            i, j = index[left], index[right]
            old, back = bounds[i][j], bounds[j][i]
            if old is not None and old <= most:
                continue
            if back is not None and back + most < 0:
                return None
            _shorten(bounds, i, j, most)
        return Dbm(index, bounds)


def _shorten(bounds: list[list[int | None]], i: int, j: int, most: int) -> None:
    onward = list(bounds[j])
    for row in bounds:
        to_i = row[i]
        if to_i is None:
            continue
        for k, from_j in enumerate(onward):
            if from_j is not None:
                through, old = to_i + most + from_j, row[k]
                if old is None or through < old:
                    row[k] = through


def _closed(index: dict[str, int], bounds: list[list[int | None]]) -> Dbm | None:
    size = len(bounds)
    for k in range(size):
        row_k = bounds[k]
        for i in range(size):
            row = bounds[i]
            to_k = row[k]
            if to_k is None:
                continue
            for j in range(size):
                from_k = row_k[j]
                if from_k is None:
                    continue
                through = to_k + from_k
                old = row[j]
                if old is None or through < old:
                    row[j] = through
    if any(bounds[i][i] != 0 for i in range(size)):
        return None
    return Dbm(index, bounds)
