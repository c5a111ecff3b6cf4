"""An executor by brute force: all rows are kept, every step computes the whole model anew.

It follows the contract's definition and nothing else. A fact of the model over the rows so far is
certain when no row that may still come can change its truth: `p(T)` depends through negation or an
aggregate on rows of the stream `s` up to `T + m(p, s)`, where m is the longest path from p to s
with at least one marked edge; so it is certain once every such stream has passed that time. Without
such a path it is certain at once.

What was returned must stay in the model forever: `step` asserts it, which puts the contract itself
to the test.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from oracle.naive import model
from streamlog.analysis.dependency import Edge
from streamlog.analysis.schema import Kind
from streamlog.compiler import Program
from streamlog.runtime.executor import BEGIN, END, Limits, Row

PROGRESS, RETURNED = "progress", "returned "

# How far ahead a predicate looks through a mark, by stream, with how much further other timelines
# of the stream that do as well must have come; None: without bound.
Reach = dict[tuple[str, tuple[tuple[str, int], ...]], int | None]


class NaiveExecutor:
    """Implements `streamlog.runtime.executor.Executor`."""

    def __init__(
        self,
        compilation: Program,
        tables: Mapping[str, Sequence[Row]],
        limits: Limits | None = None,
    ) -> None:
        self._compilation = compilation
        self._schema = compilation.schema
        self._tables = {name: list(rows) for name, rows in tables.items()}
        self._rows: dict[str, set[Row]] = {name: set() for name in self._schema.timelines}
        self._progress = dict.fromkeys(self._schema.timelines, BEGIN)
        self._returned: dict[str, set[Row]] = {}
        self._reach = marked_reach(self._schema.timelines, compilation.graph.edges)
        self._model: dict[str, set[Row]] | None = None

    def step(
        self, arrived: Mapping[str, Sequence[Row]], progress: Mapping[str, int]
    ) -> Mapping[str, list[Row]]:
        for name, rows in arrived.items():
            for row in map(tuple, rows):
                assert row[0] >= self._progress[name], f"late: {name}{row}"
                assert row not in self._rows[name], f"twice: {name}{row}"
                self._rows[name].add(row)
                self._model = None
        for name, time in progress.items():
            assert time >= self._progress[name], f"{name} goes back to {time}"
            self._progress[name] = time
        if self._model is None:
            self._model = model(self._compilation, {**self._tables, **self._rows})
        result: dict[str, list[Row]] = {}
        for name, rows in self._model.items():
            if self._schema[name].kind is not Kind.DERIVED:
                continue
            returned = self._returned.setdefault(name, set())
            gone = returned - rows
            assert not gone, f"`{name}` takes back {sorted(gone)}"
            new = sorted(row for row in rows - returned if self._is_certain(name, row))
            if new:
                returned |= set(new)
                result[name] = new
        return result

    def _is_certain(self, name: str, row: Row) -> bool:
        for (stream, others), ahead in self._reach.get(name, {}).items():
            ways = [(stream, 0), *others]
            passed = [(self._progress[timeline], more) for timeline, more in ways]
            if not any(
                progress == END or (ahead is not None and progress > row[0] + ahead + more)
                for progress, more in passed
            ):
                return False
        return True

    def holding(self) -> Mapping[str, list[Row]]:
        return {name: sorted(rows) for name, rows in self._rows.items() if rows}

    def save(self) -> Mapping[str, list[Row]]:
        returned = {RETURNED + n: sorted(rows) for n, rows in self._returned.items() if rows}
        # As text: END is no 64-bit integer.
        progress = sorted((name, str(time)) for name, time in self._progress.items())
        return {**self.holding(), **returned, PROGRESS: progress}

    def load(self, saved: Mapping[str, list[Row]]) -> None:
        self._model = None
        self._rows = {name: set(map(tuple, saved.get(name, ()))) for name in self._schema.timelines}
        self._progress.update((str(name), int(time)) for name, time in saved[PROGRESS])
        self._returned = {
            name.removeprefix(RETURNED): set(map(tuple, rows))
            for name, rows in saved.items()
            if name.startswith(RETURNED)
        }


def marked_reach(streams: Iterable[str], edges: Iterable[Edge]) -> dict[str, Reach]:
    """The longest path from each predicate to each stream through at least one marked edge.

    Bellman-Ford over (predicate, whether a mark lies behind); a path that still grows after as many
    rounds as there are such pairs has no longest.
    """
    edges = tuple(edges)
    longest: dict[tuple[str, bool], Reach] = {(s, False): {(s, ()): 0} for s in streams}
    rounds = 2 * len({n for e in edges for n in (e.head, e.goal)}) + 2
    for number in range(2 * rounds):
        changed = False
        for edge in edges:
            for marked in (False, True):
                into = longest.setdefault((edge.head, marked or edge.mark is not None), {})
                for aim, by in tuple(longest.get((edge.goal, marked), {}).items()):
                    stream = aim
                    if edge.instead and edge.ahead is not None:
                        more = tuple((other, a - edge.ahead) for other, a in edge.instead)
                        stream = (aim[0], more)
                    far = None if by is None or edge.ahead is None else by + edge.ahead
                    old = into.get(stream, far)
                    if stream in into and (old is None or (far is not None and far <= old)):
                        continue
                    into[stream] = None if number >= rounds else far
                    changed = True
        if not changed:
            break
    return {name: reach for (name, marked), reach in longest.items() if marked}
