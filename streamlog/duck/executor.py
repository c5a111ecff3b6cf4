"""An executor in one process: what queries can do for all timestamps of a batch at once is done in
DuckDB, the rest in kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamlog.compiler import Planned
from streamlog.duck.database import Database, Rows
from streamlog.duck.evaluation import Batch, Evaluation
from streamlog.duck.state import Retained
from streamlog.plan.parts import Stage, Strategy, reads, rules_of, stages
from streamlog.plan.strategies import in_process
from streamlog.runtime.columns import column_types
from streamlog.runtime.evaluation import Moment, context
from streamlog.runtime.executor import BEGIN, END, Limits, Row
from streamlog.runtime.frontier import Frontiers
from streamlog.runtime.keeping import Keeping

# What `save` returns.
_ROWS, _KERNEL, _PROGRESS, _LAST, _STRATEGIES = (
    "rows ",
    "kernel ",
    "progress",
    "last",
    "strategies",
)


class DuckExecutor:
    """An executor (`runtime.executor`) of a program whose plan is made."""

    def __init__(
        self,
        program: Planned,
        tables: Mapping[str, Sequence[Row]],
        limits: Limits | None = None,
        strategy: Strategy | None = None,
    ) -> None:
        self.program, self.limits = program, limits or Limits()
        self.plan, self.schema = program.plan, program.schema
        known = [n for n in tables if n in self.plan.arity and not self.schema.is_temporal(n)]
        self._tables = {name: list(tables[name]) for name in known}
        self.db = Database(self.limits, bool(program.types.optional))
        chosen = in_process(context(program, {}), strategy)
        self._arrange({pred: choice.strategy for pred, choice in chosen.items()})
        self._before: Frontiers | None = None
        self._progress: Mapping[str, int] = {}
        self._last = BEGIN

    def _arrange(self, strategies: Mapping[str, Strategy]) -> None:
        self._strategies = dict(strategies)
        types = column_types(self.program, {})
        order = stages(self.plan, strategies)
        self._evaluation = Evaluation(self.db, self.program, types, order, self.limits)
        queried = [p for p, s in strategies.items() if s is not Strategy.KERNEL]
        rules = rules_of(self.plan, queried)
        preds = set(queried).union(*(reads(r) for r in rules))
        keeping = Keeping(self.program, strategies)
        self._retained = Retained(self.db, keeping, types, preds)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Who does what, in order."""
        return self._evaluation.stages

    @property
    def seconds(self) -> Mapping[str, float]:
        return self._evaluation.seconds

    # -------------------------------------------------------------------------------- step

    def step(
        self, arrived: Mapping[str, Sequence[Row]], progress: Mapping[str, int]
    ) -> Mapping[str, list[Row]]:
        inputs = {n: list(rows) for n, rows in arrived.items() if rows and n in self.plan.arity}
        if self._before is None:
            inputs |= self._tables
        elif progress == self._progress and not any(arrived.values()):
            return {}
        times = [int(rows[-1][0]) for rows in arrived.values() if rows]
        given = {n: self._evaluation.frame(n, rows) for n, rows in inputs.items()}
        batch = self._evaluated(given, progress, times)
        assert self._before is not None
        self._retained.take({p: r.new for p, r in batch.relations.items()}, self._before)
        answers = {
            pred: rows
            for stage in self._evaluation.stages
            for pred in stage.preds
            if (new := batch.relations[pred].new) is not None and (rows := new.fetch())
        }
        self.db.tidy()
        return answers

    def at_once(self, given: Mapping[str, Rows], times: Sequence[int]) -> Mapping[str, Rows | None]:
        """All rows of each predicate with rules, over the complete rows of all streams, none
        twice. Nothing is kept for another step. `times` are the latest of the streams' rows."""
        tables = {n: self._evaluation.frame(n, rows) for n, rows in self._tables.items()}
        read = {n: rows for n, rows in given.items() if n in self.plan.arity}
        ended = dict.fromkeys(self.schema.timelines, END)
        batch = self._evaluated({**tables, **read}, ended, times)
        return {p: batch.relations[p].new for stage in self.stages for p in stage.preds}

    def _evaluated(
        self, given: Mapping[str, Rows], progress: Mapping[str, int], times: Sequence[int]
    ) -> Batch:
        now = Frontiers(self.program.contract, self.schema)
        now.move(progress)
        self._last = max([self._last, *times, *(at for at in progress.values() if at < END)])
        moment = Moment(self._before, now, progress, self._last)
        batch = Batch()
        with self.db.at_most_seconds():
            self._evaluation.evaluate(batch, given, self._retained.rows(), moment)
        self._before, self._progress = now, dict(progress)
        return batch

    # ------------------------------------------------------------------------------- state

    def holding(self) -> Mapping[str, list[Row]]:
        held: dict[str, set[Row]] = {}
        if self._before is not None:
            self._retained.forget(self._before)
        parts = [k.holding() for k in self._evaluation.kernels.values()]
        for part in (self._retained.holding(), *parts):
            for pred, rows in part.items():
                held.setdefault(pred, set()).update(rows)
        return {pred: sorted(rows, key=_in_order) for pred, rows in sorted(held.items()) if rows}

    def size(self) -> int:
        return self._retained.size() + sum(k.size() for k in self._evaluation.kernels.values())

    def save(self) -> Mapping[str, list[Row]]:
        if self._before is not None:
            self._retained.forget(self._before)
        saved: dict[str, list[Row]] = {
            _ROWS + pred: rows for pred, rows in self._retained.holding().items()
        }
        for number, kernel in self._evaluation.kernels.items():
            for name, rows in kernel.save().items():
                saved[f"{_KERNEL}{number} {name}"] = rows
        # As texts: the end of time does not fit into 64 bits.
        saved[_PROGRESS] = sorted((name, str(at)) for name, at in self._progress.items())
        saved[_LAST] = [(str(self._last), self._before is not None)]
        saved[_STRATEGIES] = sorted((pred, s.value) for pred, s in self._strategies.items())
        return saved

    def load(self, saved: Mapping[str, list[Row]]) -> None:
        self._arrange({str(pred): Strategy(value) for pred, value in saved[_STRATEGIES]})
        ((last, has_begun),) = saved[_LAST]
        self._last = int(last)
        self._progress = {str(name): int(at) for name, at in saved[_PROGRESS]}
        if not has_begun:
            return
        self._before = Frontiers(self.program.contract, self.schema)
        self._before.move(self._progress)
        starts = (name for name in saved if name.startswith(_ROWS))
        self._retained.load({name.removeprefix(_ROWS): saved[name] for name in starts})
        self.db.tidy()
        for number, plan in self._evaluation.parts.items():
            start = f"{_KERNEL}{number} "
            state = {n.removeprefix(start): r for n, r in saved.items() if n.startswith(start)}
            self._evaluation.resume(number, plan, state)


def _in_order(row: Row) -> tuple[object, ...]:
    """Rows by value, what is not known first."""
    return tuple((value is not None, value) for value in row)
