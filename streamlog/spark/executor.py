"""An executor whose batches run on Spark: for rule tests and the REPL, where rows are few.

One job a step: the new rows and what is kept go in as local relations, and all that comes out is
collected at once. `streaming` is for rows that are many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamlog.analysis.builtins import TICK
from streamlog.compiler import Planned
from streamlog.kernel.stores import Chosen
from streamlog.plan.parts import Strategy, stages
from streamlog.plan.strategies import choose
from streamlog.runtime.columns import column_types, types_of_rows
from streamlog.runtime.evaluation import Moment, context
from streamlog.runtime.executor import BEGIN, END, Limits, Row
from streamlog.runtime.frontier import Frontiers
from streamlog.runtime.keeping import Keeping, Kept
from streamlog.spark import wire
from streamlog.spark.evaluation import Batch, Evaluation, release
from streamlog.spark.failures import explained
from streamlog.spark.session import Jobs, session

ROWS = "rows "


class SparkExecutor:
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
        self.spark = session()
        self.strategy = strategy
        self._tables = {n: list(rows) for n, rows in tables.items() if n in self.plan.arity}
        self._given = dict(types_of_rows(self._tables))
        self._kept: dict[str, list[Row]] = {}
        self._states: dict[int, pa.Table] = {}
        self._strategies: Mapping[str, Strategy] | None = None
        self._evaluated: Evaluation | None = None
        self._before: Frontiers | None = None
        self._progress: Mapping[str, int] = {}
        self._last = BEGIN

    def step(
        self, arrived: Mapping[str, Sequence[Row]], progress: Mapping[str, int]
    ) -> Mapping[str, list[Row]]:
        inputs = {n: list(rows) for n, rows in arrived.items() if rows and n in self.plan.arity}
        if self._before is None:
            inputs |= self._tables
        elif progress == self._progress and not any(arrived.values()):
            return {}
        self._progress = dict(progress)
        self._given |= types_of_rows(inputs)
        moment = self._moment(arrived, progress)
        evaluation = self._evaluation()
        frame = evaluation.frame
        with explained(), Jobs(self.spark, "streamlog: step", self.limits.seconds):
            states = {n: self._stored(state, evaluation) for n, state in self._states.items()}
            batch = Batch(states=states)
            evaluation.evaluate(
                batch,
                {n: frame(n, rows) for n, rows in inputs.items()},
                {n: frame(n, rows) for n, rows in self._kept.items() if rows},
                moment,
            )
            derived = {p for s in evaluation.stages for p in s.preds} | {TICK}
            out = [
                wire.packed(r.new, ROWS + pred, evaluation.types[pred], evaluation.width)
                for pred, r in batch.relations.items()
                if r.new is not None and pred in derived
            ]
            out += (
                state.withColumn(wire.TABLE, F.concat(F.lit(f"{number} "), wire.TABLE))
                for number, state in batch.states.items()
            )
            found = reduce(DataFrame.unionAll, out).toArrow() if out else None
            release(batch)
        tables = {} if found is None else wire.decode(found)
        for number in batch.states:
            assert found is not None
            mine = pc.starts_with(found.column(wire.TABLE), f"{number} ")
            self._states[number] = found.filter(mine)
        rows = {p: tables.get(ROWS + p, []) for p in derived}
        self._keep({**inputs, **rows}, moment.now)
        self._before = moment.now
        return {p: found for p, found in rows.items() if found and p != TICK}

    def _moment(self, arrived: Mapping[str, Sequence[Row]], progress: Mapping[str, int]) -> Moment:
        now = Frontiers(self.program.contract, self.schema)
        now.move(progress)
        times = [int(rows[-1][0]) for rows in arrived.values() if rows]
        times += (at for at in progress.values() if at < END)
        self._last = max([self._last, *times])
        return Moment(self._before, now, progress, self._last)

    def _evaluation(self) -> Evaluation:
        """Columns whose types nothing tells get them with their first rows."""
        types = column_types(self.program, self._given)
        if self._evaluated is not None and self._evaluated.types == types:
            return self._evaluated
        if self._strategies is None:
            chosen = choose(context(self.program, types), self.strategy)
            self._strategies = {pred: choice.strategy for pred, choice in chosen.items()}
            self._keeping = Keeping(self.program, self._strategies)
        order = stages(self.plan, self._strategies)
        made = Evaluation(self.spark, self.program, types, order, limits=self.limits)
        self._evaluated = made
        return made

    def _stored(self, state: pa.Table, evaluation: Evaluation) -> DataFrame:
        table = state.column(wire.TABLE)
        names = pc.replace_substring_regex(table, r"^\d+ ", "")
        place = state.column_names.index(wire.TABLE)
        renamed = state.set_column(place, wire.TABLE, names)
        return self.spark.createDataFrame(renamed, schema=wire.schema(evaluation.width))

    def _keep(self, new: Mapping[str, list[Row]], now: Frontiers) -> None:
        for pred in {*self._kept, *new}:
            kept = self._keeping.kept(pred, now)
            rows = self._kept.get(pred, []) + new.get(pred, [])
            self._kept[pred] = list(_needed(kept, rows, now))

    # ---------------------------------------------------------------------------- state

    def holding(self) -> Mapping[str, list[Row]]:
        return {p: sorted(rows) for p, rows in sorted(self._kept.items()) if rows}


def _needed(kept: Kept, rows: Sequence[Row], now: Frontiers) -> dict[Row, None]:
    result = dict.fromkeys(r for r in rows if kept.since <= BEGIN or r >= (kept.since,))
    for few in kept.few:
        mine = [r for r in rows if all(r[p] == const.value for p, const in few.where)]
        old = sorted(r for r in mine if r < (few.until(now),))
        if old:
            chosen = Chosen(few.rows, {column: column for column in range(len(old[0]))})
            result |= dict.fromkeys(old[number] for number in chosen.pick(old, set()))
    return result
