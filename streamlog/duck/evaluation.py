"""One batch of a program in DuckDB (`runtime.evaluation`).

A query whose rows DuckDB cannot compute is not the last word: the kernel evaluates the predicate
from the same rows. So what overflows on the way to a result that fits is that result, and an error
is the kernel's, with the rule that it comes from.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from attrs import evolve

from streamlog.compiler import Planned
from streamlog.duck.database import FAILED, Database, Rows, columns
from streamlog.duck.fixpoint import Total
from streamlog.kernel import Kernel
from streamlog.plan.parts import Stage, part, rules_of
from streamlog.plan.sql import Version
from streamlog.plan.steps import Plan, RulePlan
from streamlog.runtime import evaluation
from streamlog.runtime.columns import ColumnTypes
from streamlog.runtime.evaluation import Moment, Slice
from streamlog.runtime.executor import Limits, Row
from streamlog.runtime.fixpoint import Total as AnyTotal
from streamlog.runtime.functions import EvaluationError
from streamlog.runtime.rounds import rows_of

Batch = evaluation.Batch[Rows]

# The parameters of a slice, outside of texts and quoted names.
_PARAMETER = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(low|high)\b""")


class Evaluation(evaluation.Evaluation[Rows]):
    """Every stage is computed when it is evaluated."""

    dialect = "duckdb"

    def __init__(
        self,
        db: Database,
        program: Planned,
        types: ColumnTypes,
        stages: Iterable[Stage],
        limits: Limits | None = None,
        *,
        sliced: bool = True,
    ) -> None:
        super().__init__(program, types, stages, limits, sliced=sliced)
        self.db = db
        self.kernels: dict[int, Kernel] = {}  # by the number of the stage
        self.seconds: dict[str, float] = {}

    # --------------------------------------------------------------------------- rows

    def frame(self, pred: str, rows: Iterable[Row]) -> Rows:
        return Rows(self.db, self.types[pred], at_hand=list(rows))

    def _query(self, text: str, like: Rows) -> Rows:
        return Rows(self.db, like.types, query=text)

    def register(self, pred: str, version: Version, rows: Rows | None) -> None:
        rows = self.frame(pred, []) if rows is None else rows
        view = self.view(pred, version)
        self.db.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS {rows.query}")

    def query(self, text: str, pred: str, rules: Sequence[RulePlan], slice_: Slice | None) -> Rows:
        if slice_ is not None:
            ends = {"low": str(slice_.low), "high": str(slice_.high)}
            text = _PARAMETER.sub(lambda m: ends[m[1]] if m[1] else m[0], text)
        cast = (f"CAST({name} AS {kind}) AS {name}" for name, kind in columns(self.types[pred]))
        text = f"SELECT {', '.join(cast)} FROM ({text})"
        return Rows(self.db, self.types[pred], query=text)

    def union(self, rows: Sequence[Rows]) -> Rows:
        if len(rows) == 1:
            return rows[0]
        known = [r.at_hand for r in rows if r.at_hand is not None]
        if len(known) == len(rows):
            return Rows(self.db, rows[0].types, at_hand=[row for some in known for row in some])
        return self._query(" UNION ALL ".join(f"({r.query})" for r in rows), rows[0])

    def distinct(self, rows: Rows) -> Rows:
        if rows.at_hand is not None:
            return Rows(self.db, rows.types, at_hand=list(dict.fromkeys(rows.at_hand)))
        return self._query(f"SELECT DISTINCT * FROM ({rows.query})", rows)

    def without(self, rows: Rows, known: Rows) -> Rows:
        return self._query(f"({rows.query}) EXCEPT ({known.query})", rows)

    def since(self, rows: Rows, time: int) -> Rows:
        return self._query(f"SELECT * FROM ({rows.query}) WHERE c0 >= {time}", rows)

    def times_of(self, rows: Rows) -> Rows:
        if rows.at_hand is not None:
            return Rows(self.db, rows.types[:1], at_hand=[row[:1] for row in rows.at_hand])
        return Rows(self.db, rows.types[:1], query=f"SELECT c0 FROM ({rows.query})")

    def store(self, pred: str, rows: Rows, batch: Batch) -> Rows:
        name, _ = self.db.stored(rows.query)
        return self._query(f"SELECT * FROM {name}", rows)

    def total(self, pred: str, before: Rows | None) -> Total:
        return Total(self.db, self.types[pred], before)

    def added(self, total: AnyTotal[Rows], batch: Batch) -> Rows | None:
        assert isinstance(total, Total)
        return total.added

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        with self.db.within_limits(what):
            try:
                yield
            except FAILED as error:
                reason = str(error).split(": ", 1)[-1].splitlines()[0]
                raise EvaluationError(f"{reason}, in {what}") from error

    # ------------------------------------------------------------------------- stages

    def by_queries(self, pred: str, batch: Batch, moment: Moment) -> None:
        rules = rules_of(self.plan, [pred])
        with self._timed(f"queries for {pred}"), self.db.within_limits(rows_of([pred], rules)):
            try:
                super().by_queries(pred, batch, moment)
            except FAILED:
                batch.relations[pred].new = self._by_a_kernel(pred, batch, moment)

    def _by_a_kernel(self, pred: str, batch: Batch, moment: Moment) -> Rows:
        """The new rows of a predicate that is not recursive, by a kernel that forgets."""
        components = [c for c in self.plan.components if pred in c.preds]
        plan = part(self.plan, components)
        kernel = self._kernel(plan, (pred,), lambda p: self._all(p, batch))
        found = self._stepped(kernel, plan, (pred,), lambda p: self._all(p, batch), moment)
        rows = found.get(pred, [])
        if self.schema.is_temporal(pred):
            low, old = moment.low(pred), batch.relations[pred].old
            known = set() if old is None else set(self.since(old, low).fetch())
            rows = [row for row in rows if row[0] >= low and row not in known]  # type: ignore[operator]
        return self.frame(pred, rows)

    def _all(self, pred: str, batch: Batch) -> list[Row]:
        pieces = batch.relations[pred].pieces
        return self.union(pieces).fetch() if pieces else []

    def in_kernels(self, number: int, stage: Stage, batch: Batch, moment: Moment) -> None:
        plan = self.parts[number]

        def new(pred: str) -> list[Row]:
            found = batch.relations[pred].new
            return [] if found is None else found.fetch()

        if number not in self.kernels:
            self.kernels[number] = self._kernel(plan, stage.preds, new)
        found = self._stepped(self.kernels[number], plan, stage.preds, new, moment)
        for pred in stage.preds:
            batch.relations[pred].new = self.frame(pred, found.get(pred, []))

    def resume(self, number: int, plan: Plan, state: dict[str, list[Row]]) -> None:
        """The kernel of a stage as it was when it was saved; it has its tables by then."""
        kernel = Kernel(evolve(self.program, plan=plan), {}, self.limits)
        kernel.load(state)
        self.kernels[number] = kernel

    def _kernel(self, plan: Plan, preds: Sequence[str], rows: Callable[[str], list[Row]]) -> Kernel:
        """For a part of the plan. Of what the part reads, tables are there from the beginning."""
        static = [p for p in _given(plan, preds) if not self.schema.is_temporal(p)]
        return Kernel(evolve(self.program, plan=plan), {p: rows(p) for p in static}, self.limits)

    def _stepped(
        self,
        kernel: Kernel,
        plan: Plan,
        preds: Sequence[str],
        rows: Callable[[str], list[Row]],
        moment: Moment,
    ) -> dict[str, list[Row]]:
        temporal = [p for p in _given(plan, preds) if self.schema.is_temporal(p)]
        arrived = {p: sorted(rows(p), key=_time) for p in temporal}
        before = dict(kernel.seconds)
        answers = kernel.step(arrived, moment.progress, moment.spoken_of)
        for what, seconds in kernel.seconds.items():
            self._took(what, seconds - before.get(what, 0.0))
        return dict(answers)

    # --------------------------------------------------------------------------- time

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._took(what, time.perf_counter() - began)

    def _took(self, what: str, seconds: float) -> None:
        self.seconds[what] = self.seconds.get(what, 0.0) + seconds


def _given(plan: Plan, preds: Sequence[str]) -> list[str]:
    """What a part reads from elsewhere."""
    return [p for c in plan.components for p in c.preds if p not in preds]


def _time(row: Row) -> int:
    return int(row[0])
