"""The kernel: evaluates a plan in this process, step by step, at a cost that follows what is new.

At each step the new rows go through the components in order. A conjunction's candidates wait in
`pending` until the progress of the streams makes them decidable; a component that negates or
aggregates within itself decides its candidates by clock and stratum.
"""

from __future__ import annotations

import heapq
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from streamlog.analysis.builtins import TICK
from streamlog.kernel.aggregates import aggregate, row_of
from streamlog.kernel.codegen import Generated, generate, identifier
from streamlog.kernel.frontier import Frontiers
from streamlog.kernel.terms import FUNCTIONS, EvaluationError
from streamlog.plan.steps import Component, Grouping, Index, Plan, RulePlan, Store
from streamlog.runtime.executor import BEGIN, END, LimitError, Limits, Row
from streamlog.syntax.ast import Agg, Rule, Type
from streamlog.syntax.pretty import pretty

if TYPE_CHECKING:
    from streamlog.compiler import Compilation

_SOURCE = "<streamlog kernel>"


def between(rows: Sequence[Row], low: int, high: int) -> Sequence[Row]:
    return rows[bisect_left(rows, (low,)) : bisect_left(rows, (high + 1,))]


def any_between(rows: Sequence[Row] | None, low: int, high: int) -> bool:
    if rows is None:
        return False
    at = bisect_left(rows, (low,))
    return at < len(rows) and rows[at][0] <= high  # type: ignore[operator]


class Kernel:
    """An executor (`runtime.executor`) for a program whose plan is made."""

    def __init__(
        self,
        program: Compilation,
        tables: Mapping[str, Sequence[Row]],
        limits: Limits | None = None,
    ) -> None:
        assert program.plan is not None and program.closed is not None
        closed = program.closed
        assert closed.schema and closed.types and closed.strata and closed.contract
        self.plan: Plan = program.plan
        self.limits = limits or Limits()
        self._streams = closed.schema.streams
        self._temporal = {n for n in self.plan.arity if closed.schema.is_temporal(n)}
        self._uses_tick = any(TICK in c.preds for c in self.plan.components)
        self._frontiers = Frontiers(closed.contract, self._streams, self._uses_tick)
        self._potential = closed.strata.potential
        self._stratum = closed.strata.stratum
        # Tables first: nothing in them depends on a stream, and joins expect them to be there.
        self._components = sorted(self.plan.components, key=lambda c: c.preds[0] in self._temporal)
        self._rules_of: dict[str, list[RulePlan]] = {}
        for rule in self.plan.rules:
            self._rules_of.setdefault(rule.rule.head.pred, []).append(rule)
        self._groupings = {g.number: g for g in self.plan.groupings}
        self._functions = {g.number: _settled(g, closed) for g in self.plan.groupings}
        self._generated: Generated = generate(self.plan, closed.types)
        self._globals = self._namespace()
        exec(compile(self._generated.text, _SOURCE, "exec"), self._globals)
        self._best: dict[int, dict[tuple[Any, ...], Any]] = {
            g.number: {} for g in self.plan.groupings if g.improving
        }
        self._fresh: dict[str, list[Row]] = {g.pred: [] for g in self.plan.groupings if g.improving}
        self._sizes: dict[Index, int] = {}
        self._seen_sizes: dict[str, int] = {}
        self._deadline = 0.0
        self._derived = 0
        self._started = False
        self._tables = {name: list(rows) for name, rows in tables.items()}

    def _namespace(self) -> dict[str, Any]:
        names: dict[str, Any] = {
            **FUNCTIONS,
            "bisect_left": bisect_left,
            "insort": insort,
            "first": itemgetter(0),
            "between": between,
            "any_between": any_between,
            "never": END,
            "ever": BEGIN,
        }
        names |= {f"index_{i.name}": {} for i in self.plan.indexes}
        names |= {f"pending_{r.number}": [] for r in self.plan.rules}
        names |= {f"solutions_{g.number}": [] for g in self.plan.groupings}
        for pred in self.plan.arity:
            names[f"new_{identifier(pred)}"] = []
            names[f"seen_{identifier(pred)}"] = set()
        return names

    @property
    def source(self) -> str:
        """The generated code."""
        return self._generated.text

    # -------------------------------------------------------------------- step

    def step(
        self, arrived: Mapping[str, Sequence[Row]], progress: Mapping[str, int]
    ) -> Mapping[str, list[Row]]:
        self._deadline = time.monotonic() + self.limits.seconds
        self._derived = 0
        self._frontiers.move(progress)
        answers: dict[str, list[Row]] = {}
        try:
            starting = not self._started
            if starting:
                self._begin()
            for component in self._components:
                for pred in component.preds:
                    if pred in self._rules_of:
                        continue
                    rows = self._given(pred, arrived, starting)
                    if rows:
                        self._feed(pred, rows)
                if component.preds[0] in self._rules_of:
                    self._run(component, answers)
        except (EvaluationError, ZeroDivisionError, OverflowError) as error:
            raise self._explained(error) from error
        self._forget()
        return answers

    def _begin(self) -> None:
        self._started = True
        for rule in self.plan.rules:
            for pipeline in rule.pipelines:
                if pipeline.start is None:
                    self._globals[f"start_{rule.number}"]()

    def _given(
        self, pred: str, arrived: Mapping[str, Sequence[Row]], starting: bool
    ) -> Sequence[Row]:
        if pred == TICK:
            seen: set[Row] = self._globals[f"seen_{identifier(TICK)}"]
            times = {(r[0],) for s in self._streams for r in arrived.get(s, ())} - seen
            seen |= times
            return sorted(times)
        if pred in self._temporal:
            return arrived.get(pred, ())
        return self._tables.get(pred, ()) if starting else ()

    def _feed(self, pred: str, rows: Sequence[Row]) -> None:
        self._globals[f"on_{identifier(pred)}"](rows)

    def _take(self, name: str) -> list[Any]:
        """What has gathered under a name, which is empty afterwards."""
        gathered: list[Any] = self._globals[name]
        taken = gathered[:]
        gathered.clear()
        return taken

    # -------------------------------------------------------------- components

    def _run(self, component: Component, answers: dict[str, list[Row]]) -> None:
        if component.is_ordered:
            self._run_in_order(component, answers)
            return
        rounds = 0
        while True:
            for pred in component.preds:
                self._decide(pred)
            if not self._spread(component, answers) or not component.is_recursive:
                return
            rounds += 1
            self._watch(component, rounds)

    def _spread(self, component: Component, answers: dict[str, list[Row]]) -> bool:
        """Hand the component's new rows to whoever starts from them."""
        moved = False
        for pred in component.preds:
            rows = self._take(f"new_{identifier(pred)}")
            if rows:
                moved = True
                self._derived += len(rows)
                if pred in self._fresh:
                    self._fresh[pred] += rows
                else:
                    answers.setdefault(pred, []).extend(rows)
                self._feed(pred, rows)
        return moved

    def _finish(self, answers: dict[str, list[Row]]) -> None:
        """An instant is over: the best values in it are answers."""
        for pred, rows in self._fresh.items():
            if rows:
                answers.setdefault(pred, []).extend(rows)
                self._globals[f"after_{identifier(pred)}"](rows)
                self._fresh[pred] = []

    def _decide(self, pred: str) -> None:
        """The candidates of a predicate that the progress makes decidable."""
        groups: dict[int, int] = {}
        for rule in self._rules_of[pred]:
            if rule.group is not None:
                limit = self._frontiers.limit(rule)
                groups[rule.group] = min(groups.get(rule.group, END), limit)
        for rule in self._rules_of[pred]:
            if rule.is_immediate:
                continue
            limit = self._frontiers.limit(rule) if rule.group is None else groups[rule.group]
            rows = self._decidable(rule, limit)
            if rows:
                self._globals[f"check_{rule.number}"](rows)
        for number in groups:
            solutions = self._take(f"solutions_{number}")
            if solutions:
                self._aggregate(self._groupings[number], solutions)

    def _decidable(self, rule: RulePlan, limit: int) -> list[Row]:
        pending: list[Row] = self._globals[f"pending_{rule.number}"]
        if not pending:
            return pending
        if limit >= END or rule.rule.head.pred not in self._temporal:
            return self._take(f"pending_{rule.number}")
        # Nearly in order already, which sorting makes use of.
        pending.sort(key=itemgetter(0))
        cut = bisect_left(pending, (limit,))
        rows = pending[:cut]
        del pending[:cut]
        return rows

    def _aggregate(self, grouping: Grouping, solutions: list[Any]) -> None:
        rows = aggregate(grouping, self._functions[grouping.number], solutions)
        pred = identifier(grouping.pred)
        seen, new = self._globals[f"seen_{pred}"], self._globals[f"new_{pred}"]
        sole = len({r.group for r in self._rules_of[grouping.pred]}) == 1
        for row in rows:
            if sole:
                new.append(row)
            elif row not in seen:
                seen.add(row)
                new.append(row)

    # ------------------------------------------------- components by the clock

    def _run_in_order(self, component: Component, answers: dict[str, list[Row]]) -> None:
        """Candidates by (clock, stratum): all that an earlier pair decides is known by then."""
        rules = [r for p in component.preds for r in self._rules_of[p]]
        limits = {r.number: self._frontiers.limit(r) for r in rules}
        queue: list[tuple[int, int]] = []
        waiting: dict[tuple[int, int], dict[int, list[Row]]] = {}
        kept: list[tuple[int, Row]] = []
        current: tuple[int, int] | None = None
        rounds = 0
        while True:
            while self._spread(component, answers):
                rounds += 1
                self._watch(component, rounds)
            for rule in rules:
                if rule.is_immediate:
                    continue
                for row in self._take(f"pending_{rule.number}"):
                    if self._at(rule, row) >= limits[rule.number]:
                        kept.append((rule.number, row))
                        continue
                    key = self._instant(rule, row)
                    if key not in waiting:
                        waiting[key] = {}
                        heapq.heappush(queue, key)
                    waiting[key].setdefault(rule.number, []).append(row)
            if self._is_over(current, queue):
                self._finish(answers)
                current = None
                continue
            if not queue:
                break
            rounds += 1
            self._watch(component, rounds)
            current = heapq.heappop(queue)
            self._settle(waiting.pop(current))
        for number, row in kept:
            self._globals[f"pending_{number}"].append(row)

    def _is_over(self, current: tuple[int, int] | None, queue: list[tuple[int, int]]) -> bool:
        return current is not None and (not queue or queue[0] != current)

    def _at(self, rule: RulePlan, row: Row) -> int:
        return int(row[0]) if rule.rule.head.pred in self._temporal else BEGIN

    def _instant(self, rule: RulePlan, row: Row) -> tuple[int, int]:
        pred = rule.rule.head.pred
        at = self._at(rule, row)
        return at + self._potential.get(pred, 0), self._stratum.get(pred, 0)

    def _settle(self, candidates: dict[int, list[Row]]) -> None:
        """Decide the candidates of one instant and stratum."""
        groups: dict[int, None] = {}
        for number, rows in candidates.items():
            self._globals[f"check_{number}"](rows)
            group = self.plan.rules[number].group
            if group is not None:
                groups[group] = None
        for number in groups:
            grouping = self._groupings[number]
            solutions = self._take(f"solutions_{number}")
            if grouping.improving:
                self._improve(grouping, solutions)
            else:
                self._aggregate(grouping, solutions)

    def _improve(self, grouping: Grouping, solutions: list[Any]) -> None:
        """Keep the better values; a worse row that was already spread is taken back.

        That is safe because premappable recursions only use it to make rows that are worse too,
        and because an instant's rows become answers when the instant is over: a better value can
        come from the same instant only.
        """
        best = self._best[grouping.number]
        better = _BETTER[grouping.aggregates[0][1]]
        new = self._globals[f"new_{identifier(grouping.pred)}"]
        for key, (value,), _, _ in solutions:
            old = best.get(key)
            if old is not None and not better(value, old):
                continue
            best[key] = value
            if old is not None:
                self._withdraw(grouping.pred, row_of(grouping, key, (old,)))
            new.append(row_of(grouping, key, (value,)))

    def _withdraw(self, pred: str, row: Row) -> None:
        new: list[Row] = self._globals[f"new_{identifier(pred)}"]
        if row in new:
            new.remove(row)
            return
        self._fresh[pred].remove(row)
        for index in self.plan.indexes:
            if index.pred == pred:
                stored = self._globals[f"index_{index.name}"]
                key = tuple(row[p] for p in index.key)
                stored[key[0] if len(key) == 1 else key].remove(row)

    # ------------------------------------------------------------------ limits

    def _watch(self, component: Component, rounds: int) -> None:
        if rounds > self.limits.rounds:
            why = f"{self.limits.rounds} rounds"
        elif self._derived > self.limits.rows:
            why = f"{self.limits.rows} rows"
        elif time.monotonic() > self._deadline:
            why = f"{self.limits.seconds:g} seconds"
        else:
            return
        rules = [r for p in component.preds for r in self._rules_of[p]]
        recursive = next(
            (
                r
                for r in rules
                if any(p.start and p.start.pred in component.preds for p in r.pipelines)
            ),
            rules[0],
        )
        raise LimitError(
            f"stopped after {why}: the recursion of {' and '.join(component.preds)} does not "
            f"seem to end (round {rounds}, {self._derived} rows so far); look at the rule at "
            f"{_place(recursive.rule)}: {pretty(recursive.rule)}"
        )

    def _explained(self, error: Exception) -> EvaluationError:
        """The error with the rule whose generated code it came from."""
        rule: Rule | None = None
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == _SOURCE:
                rule = self._generated.rules.get(trace.tb_lineno, rule)
            trace = trace.tb_next
        what = "division by zero" if isinstance(error, ZeroDivisionError) else str(error)
        where = f" in the rule at {_place(rule)}: {pretty(rule)}" if rule else ""
        return EvaluationError(f"{what}{where}")

    # ------------------------------------------------------------------- state

    def _forget(self, exactly: bool = False) -> None:
        """Drop what no future answer needs; unless `exactly`, only when that is worth it.

        A store is gone through when it has doubled since the last time, so each row is touched
        a bounded number of times.
        """
        for index in self.plan.indexes:
            if index.pred not in self._temporal or index.store is Store.EARLIEST:
                continue
            horizon = self._frontiers.horizon(self.plan.readers[index])
            stored: dict[Any, list[Row]] = self._globals[f"index_{index.name}"]
            size = sum(map(len, stored.values())) if exactly else len(stored)
            if horizon > BEGIN and (exactly or self._is_worth_it(index, stored, horizon)):
                _drop(stored, horizon)
                size = sum(map(len, stored.values()))
                self._sizes[index] = size
        for pred in self._temporal:
            seen: set[Row] = self._globals[f"seen_{identifier(pred)}"]
            if seen and (exactly or len(seen) > 2 * self._seen_sizes.get(pred, 500)):
                done = self._frontiers.complete(pred)
                if done > BEGIN:
                    kept = {row for row in seen if row[0] >= done}  # type: ignore[operator]
                    seen.clear()
                    seen |= kept
                    self._seen_sizes[pred] = max(500, len(seen))
        for number, best in self._best.items():
            done = self._frontiers.complete(self._groupings[number].pred)
            for key in [k for k in best if k[0] < done]:
                del best[key]

    def _is_worth_it(self, index: Index, stored: dict[Any, list[Row]], horizon: int) -> bool:
        size = sum(map(len, stored.values())) if len(stored) < 64 else len(stored) * 4
        return size > 2 * self._sizes.get(index, 500)

    def holding(self) -> Mapping[str, list[Row]]:
        self._forget(exactly=True)
        result: dict[str, set[Row]] = {}
        for index in self.plan.indexes:
            if index.pred not in self._temporal:
                continue
            stored = self._globals[f"index_{index.name}"]
            rows = result.setdefault(index.pred, set())
            if index.store is Store.EARLIEST:
                rows |= {(t, *(k if isinstance(k, tuple) else (k,))) for k, t in stored.items()}
            else:
                rows |= {row for group in stored.values() for row in group}
        for rule in self.plan.rules:
            for pred, row in _carried(rule, self._globals[f"pending_{rule.number}"]):
                if pred in self._temporal:
                    result.setdefault(pred, set()).add(row)
        return {pred: sorted(rows) for pred, rows in sorted(result.items())}

    def save(self) -> Mapping[str, list[Row]]:
        self._forget(exactly=True)
        saved: dict[str, list[Row]] = {}
        for index in self.plan.indexes:
            stored = self._globals[f"index_{index.name}"]
            if index.store is Store.EARLIEST:
                rows = [(t, *(k if isinstance(k, tuple) else (k,))) for k, t in stored.items()]
            else:
                rows = [row for group in stored.values() for row in group]
            saved[f"index {index.name}"] = rows
        for rule in self.plan.rules:
            saved[f"pending {rule.number}"] = list(self._globals[f"pending_{rule.number}"])
        for pred in sorted(self.plan.arity):
            saved[f"seen {pred}"] = sorted(self._globals[f"seen_{identifier(pred)}"])
        for number, best in self._best.items():
            saved[f"best {number}"] = [(*key, value) for key, value in best.items()]
        saved["started"] = [(int(self._started),)]
        return saved

    def load(self, saved: Mapping[str, list[Row]]) -> None:
        for index in self.plan.indexes:
            stored: dict[Any, Any] = self._globals[f"index_{index.name}"]
            stored.clear()
            for row in saved[f"index {index.name}"]:
                if index.store is Store.EARLIEST:
                    time_, *key = row
                    stored[key[0] if len(key) == 1 else tuple(key)] = time_
                    continue
                values = tuple(row[p] for p in index.key)
                stored.setdefault(values[0] if len(values) == 1 else values, []).append(row)
        for rule in self.plan.rules:
            self._globals[f"pending_{rule.number}"][:] = saved[f"pending {rule.number}"]
        for pred in self.plan.arity:
            seen = self._globals[f"seen_{identifier(pred)}"]
            seen.clear()
            seen.update(saved[f"seen {pred}"])
        for number in self._best:
            self._best[number] = {row[:-1]: row[-1] for row in saved[f"best {number}"]}
        self._started = bool(saved["started"][0][0])


_BETTER: dict[str, Callable[[Any, Any], bool]] = {
    "min": lambda new, old: new < old,
    "max": lambda new, old: new > old,
}


def _drop(stored: dict[Any, list[Row]], horizon: int) -> None:
    for key in list(stored):
        rows = [row for row in stored[key] if row[0] >= horizon]  # type: ignore[operator]
        if not rows:
            del stored[key]
        elif len(rows) < len(stored[key]):
            stored[key][:] = rows


def _settled(grouping: Grouping, closed: Compilation) -> tuple[str, ...]:
    """The functions of a grouping; the average of durations is a duration."""
    assert closed.types is not None
    types = closed.types
    return tuple(
        "avg duration"
        if func == "avg" and types.column(grouping.pred, position) is Type.DURATION
        else func
        for position, func in grouping.aggregates
    )


def _carried(rule: RulePlan, pending: Iterable[Row]) -> Iterator[tuple[str, Row]]:
    """The rows of goals that a conjunction's candidates hold, as far as they can be told."""
    names = [v.name for v in rule.carries]
    for pipeline in rule.pipelines:
        goal = pipeline.start
        if goal is None or not all(getattr(a, "name", None) in names for a in goal.args):
            continue
        positions = [names.index(a.name) for a in goal.args if not isinstance(a, Agg)]  # type: ignore[union-attr]
        for row in pending:
            yield goal.pred, tuple(row[p] for p in positions)


def _place(rule: Rule) -> str:
    line, _ = rule.span.source.position(rule.span.start)
    return f"{rule.span.source.path}:{line}"
