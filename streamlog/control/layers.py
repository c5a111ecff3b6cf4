"""An executor that survives changes of its program: each version computes what it brought.

    version 1    computes `q` and `alarm`
    version 2    has another rule for `alarm`, and the same for `q`:
                     a kernel of version 1 goes on with `q`, in the state it has, and
                     a kernel of version 2 computes `alarm`, and is given the rows of `q`

So nothing that a change leaves alone notices it: the same code goes on with the same state. A layer
computes whatever of it later versions still rest on, and nothing else; one that has nothing left to
compute is gone. Predicates are known across versions by what they mean (`analysis.meaning`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from operator import itemgetter
from typing import Any

from attrs import evolve, field, frozen

from streamlog.analysis.meaning import meanings
from streamlog.compiler import Planned
from streamlog.kernel import Kernel
from streamlog.plan.parts import part, reads, rules_of
from streamlog.plan.steps import Plan
from streamlog.runtime.executor import BEGIN, END, Cost, Limits, Row
from streamlog.runtime.query import in_order

time_of: Any = itemgetter(0)
NEVER = END  # complete from then on: at no time


@frozen(eq=False)
class Layer:
    """The predicates that one version of a program computes. `preds` are those with timestamps;
    what it needs of those without, each layer works out for itself. None: all of them."""

    program: Planned = field(repr=False)
    preds: frozenset[str] | None = None
    warm: Mapping[str, int] = field(factory=dict)  # by predicate, from when on all of it is known
    text: Mapping[str, object] | None = field(default=None, repr=False)  # what to compile it from
    errors: tuple[str, ...] = ()  # the predicates of what could not be computed, if it skips that

    @cached_property
    def names(self) -> Mapping[str, str]:
        """What every predicate of the program means."""
        program = self.program
        found = meanings(program.schema, program.types)
        return {name: meaning.fingerprint for name, meaning in found.items()}

    @property
    def outputs(self) -> tuple[str, ...]:
        return (*self.program.contract.outputs, *self.errors)

    @cached_property
    def owned(self) -> frozenset[str]:
        """The derived predicates with timestamps that it computes."""
        temporal = (n for n in heads(self.program.plan) if self.program.schema.is_temporal(n))
        return frozenset(temporal if self.preds is None else self.preds)

    @cached_property
    def given(self) -> Mapping[str, str]:
        """The derived predicates that it reads and earlier layers compute: what they mean."""
        defined = heads(self.program.plan)
        read = read_by(self.program.plan, self.owned) & defined - self.owned
        return {n: self.names[n] for n in read if self.program.schema.is_temporal(n)}

    @property
    def computed(self) -> Planned:
        if self.preds is None:
            return self.program
        return evolve(self.program, plan=narrowed(self.program, self.preds))


def heads(plan: Plan) -> set[str]:
    return {rule.rule.head.pred for rule in plan.rules}


def read_by(plan: Plan, preds: Iterator[str] | frozenset[str] | set[str]) -> set[str]:
    return set().union(*(reads(rule) for rule in rules_of(plan, preds)))


def narrowed(program: Planned, preds: frozenset[str]) -> Plan:
    """The plan for these predicates, and for those without timestamps that they rest on."""
    plan, schema = program.plan, program.schema
    wanted, waiting = set(preds), read_by(plan, preds)
    defined = heads(plan)
    while waiting:
        name = waiting.pop()
        if name in defined and name not in wanted and not schema.is_temporal(name):
            wanted.add(name)
            waiting |= read_by(plan, {name})
    return part(plan, [c for c in plan.components if defined & wanted & {*c.preds}])


@frozen
class Known:
    """The rows of a predicate so far, all those from `since` on."""

    since: int
    rows: Sequence[Row] = ()


class Layers:
    """An executor (`runtime.executor`) for the newest version of a program."""

    def __init__(
        self,
        layers: Sequence[Layer],
        tables: Mapping[str, Sequence[Row]],
        limits: Limits | None = None,
        *,
        current: Layer | None = None,
        profiled: bool = False,
    ) -> None:
        """`current` is the newest version, which may have nothing to compute itself."""
        self.layers = tuple(layers)
        self.current = current or self.layers[-1]
        self.kernels = [
            Kernel(layer.computed, tables, limits, profiled=profiled) for layer in self.layers
        ]
        self.before: dict[str, int] = {}  # by output, answers earlier than this are withheld
        self.withheld: list[tuple[str, Row]] = []
        self.due: dict[str, list[Row]] = {}  # what an upgrade has found out
        self.stepped: dict[str, int] = {}  # the progress of the last step
        # By timeline, and by what derived predicates mean: the latest time of any row. None: this
        # is the state of a version that did not record it.
        self.latest: dict[str, int] | None = {}
        self.static: dict[str, list[Row]] = {}  # rows of outputs without timestamps
        self._edge: dict[str, list[Row]] = {}  # rows at the instant of progress

    # ----------------------------------------------------------------------------- step

    def step(
        self, arrived: Mapping[str, Sequence[Row]], progress: Mapping[str, int]
    ) -> Mapping[str, list[Row]]:
        self._arrived(arrived, progress)
        made: dict[str, list[Row]] = {}
        spoken_of = self._spoken_of(arrived, progress)
        for layer, kernel in zip(self.layers, self.kernels, strict=True):
            given = {name: made[m] for name, m in layer.given.items() if m in made}
            found = kernel.step({**arrived, **given}, progress, spoken_of)
            for name, rows in found.items():
                is_static = not layer.program.schema.is_temporal(name)
                if rows and (name in layer.owned or is_static):
                    made.setdefault(layer.names[name], rows)
        self.released(made)
        return {
            name: rows
            for name, meaning in self.current.names.items()
            if (rows := self._to_release(name, made.get(meaning, ())))
        }

    def _spoken_of(self, arrived: Mapping[str, Sequence[Row]], progress: Mapping[str, int]) -> int:
        """The latest time that anything has spoken of, as all kernels are to see it."""
        found = [kernel.last for kernel in self.kernels]
        found += (at for at in progress.values() if at < END)
        found += (int(rows[-1][0]) for n in progress if (rows := arrived.get(n)))
        return max(found, default=BEGIN)

    def _to_release(self, name: str, rows: Sequence[Row]) -> list[Row]:
        found = [*self.due.pop(name, ()), *rows]
        if not found:
            return found
        if not self.current.program.schema.is_temporal(name):
            known = {*self.static.get(name, ())}
            found = [row for row in found if row not in known]
            if found:
                self.static.setdefault(name, []).extend(found)
        elif (before := self.before.get(name)) is not None:
            self.withheld += ((name, row) for row in found if row[0] < before)
            found = [row for row in found if row[0] >= before]
        return found

    def _arrived(self, arrived: Mapping[str, Sequence[Row]], progress: Mapping[str, int]) -> None:
        self.stepped = dict(progress)
        for name, at in progress.items():
            rows = arrived.get(name, ())
            if rows and self.latest is not None:
                latest = max(map(time_of, rows))
                self.latest[name] = max(latest, self.latest.get(name, BEGIN))
            last = takewhile(lambda row, at=at: row[0] == at, reversed(rows))  # type: ignore[misc]
            kept = self._edge.get(name, [])
            self._edge[name] = [*(kept if kept and kept[0][0] == at else ()), *last]

    def released(self, made: Mapping[str, Sequence[Row]]) -> None:
        """Take note of how far rows have come, by what their predicates mean."""
        if self.latest is None:
            return
        temporal = {layer.names[name] for layer in self.layers for name in layer.owned}
        for meaning in (m for m in temporal & made.keys() if made[m]):
            latest = max(map(time_of, made[meaning]))
            self.latest[meaning] = max(latest, self.latest.get(meaning, BEGIN))

    # -------------------------------------------------------------------------- history

    def known(self) -> Mapping[str, Known]:
        """What is known of the past of streams, by name, and of derived predicates, by meaning."""
        schema = self.current.program.schema
        last = max((kernel.last for kernel in self.kernels), default=BEGIN)
        found: dict[str, Known] = {}
        several = {*schema.views, *(n for some in schema.views.values() for n in some)}
        for name, progress in self.stepped.items():
            since = self._after(name, last, 0)
            if name not in several and progress < since:
                found[name] = Known(progress, self._edge.get(name, ()))
            else:
                found[name] = Known(since)
        for layer, kernel in zip(self.layers, self.kernels, strict=True):
            histories = kernel.past(self.stepped).history()
            for name in layer.owned:
                ahead = max(0, kernel.past(self.stepped).foresight(name))
                found.setdefault(
                    layer.names[name], Known(self._after(layer.names[name], last, ahead))
                )
            for name, (since, rows) in histories.items():
                key = name if name in found else layer.names.get(name, "")
                if name in several or key not in found or since >= found[key].since:
                    continue
                since = max(since, layer.warm.get(name, BEGIN))
                if since < found[key].since:
                    found[key] = Known(since, [row for row in rows if time_of(row) >= since])
        for layer in self.layers:
            for name in layer.warm.keys() & layer.owned:
                key, warm = layer.names[name], layer.warm[name]
                found[key] = Known(max(found[key].since, warm), found[key].rows)
        return found

    def after(self, timeline: str) -> int:
        """Later than all rows of a stream so far."""
        last = max((kernel.last for kernel in self.kernels), default=BEGIN)
        return max(self._after(timeline, last, 0), self.stepped.get(timeline, BEGIN))

    def answered(self, meaning: str) -> int:
        """Before when a predicate has been answered, so that nothing can be added."""
        for layer, kernel in zip(self.layers, self.kernels, strict=True):
            for name in layer.owned:
                if layer.names[name] == meaning:
                    complete = kernel.past(self.stepped).complete(name)
                    ahead = max(0, kernel.past(self.stepped).foresight(name))
                    return max(complete, self._after(meaning, kernel.last, ahead))
        return BEGIN

    def carry(self, old: Layers, stepped: Mapping[str, int]) -> None:
        """What does not depend on the version."""
        self.stepped = dict(stepped)
        self.latest = None if old.latest is None else dict(old.latest)
        self._edge = {name: old._edge.get(name, []) for name in stepped}

    def _after(self, key: str, last: int, ahead: int) -> int:
        """Later than every row so far; where there was none, all are known."""
        if self.latest is None:
            return BEGIN if last == BEGIN else last + ahead + 1
        return self.latest[key] + 1 if key in self.latest else BEGIN

    # ---------------------------------------------------------------------------- state

    def holding(self) -> Mapping[str, list[Row]]:
        names = {meaning: name for name, meaning in self.current.names.items()}
        found: dict[str, dict[Row, None]] = {}
        for layer, kernel in zip(self.layers, self.kernels, strict=True):
            for name, rows in kernel.holding().items():
                now = names.get(layer.names.get(name, ""), name)
                found.setdefault(now, {}).update(dict.fromkeys(rows))
        if len(self.layers) == 1:
            return {name: list(rows) for name, rows in found.items()}
        return {name: in_order(rows) for name, rows in found.items()}

    def size(self) -> int:
        return sum(kernel.size() for kernel in self.kernels)

    @property
    def seconds(self) -> Mapping[str, float]:
        found: dict[str, float] = {}
        for kernel in self.kernels:
            for what, took in kernel.seconds.items():
                found[what] = found.get(what, 0.0) + took
        return found

    @property
    def costs(self) -> Mapping[str, Cost]:
        return {what: cost for kernel in self.kernels for what, cost in kernel.costs.items()}

    def save(self) -> Mapping[str, list[Row]]:
        saved: dict[str, list[Row]] = {
            "before": list(self.before.items()),
            "stepped": list(self.stepped.items()),
            "latest": list(self._latest_by_name()),
            "recorded": [(self.latest is not None,)],
        }
        for what, tables in self._tables():
            saved |= {f"{what} {name}": list(rows) for name, rows in tables.items()}
        for number, kernel in enumerate(self.kernels):
            saved |= {f"{number} {name}": rows for name, rows in kernel.save().items()}
        return saved

    def load(self, saved: Mapping[str, list[Row]]) -> None:
        if "stepped" not in saved:  # of a version without layers
            self.kernels[0].load(saved)
            self.latest = None
            return
        pairs: Any = {what: {r[0]: r[1] for r in saved[what]} for what in ("before", "stepped")}
        self.before, self.stepped = pairs["before"], pairs["stepped"]
        self.latest = None
        if saved["recorded"][0][0]:
            found: Any = saved["latest"]
            self.latest = {self._key(number, name): latest for number, name, latest in found}
        for what, tables in self._tables():
            start = f"{what} "
            tables.clear()
            tables.update(
                {k.removeprefix(start): list(v) for k, v in saved.items() if k.startswith(start)}
            )
        for number, kernel in enumerate(self.kernels):
            start = f"{number} "
            kernel.load({k.removeprefix(start): v for k, v in saved.items() if k.startswith(start)})

    def _latest_by_name(self) -> Iterator[Row]:
        """With predicates by layer and name: what they mean may be written in another way by a
        later version of streamlog."""
        latest = self.latest or {}
        yield from ((-1, name, latest[name]) for name in self.stepped if name in latest)
        for number, layer in enumerate(self.layers):
            for name in sorted(layer.owned):
                if layer.names[name] in latest:
                    yield number, name, latest[layer.names[name]]

    def _key(self, number: int, name: str) -> str:
        return name if number < 0 else self.layers[number].names[name]

    def _tables(self) -> Iterator[tuple[str, dict[str, list[Row]]]]:
        yield "due", self.due
        yield "static", self.static
        yield "edge", self._edge
