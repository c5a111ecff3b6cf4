"""The kernel: evaluates a plan in this process, step by step, at a cost that follows what is new.

At each step the new rows go through the components in order. A conjunction's candidates wait in
`pending` until the progress of the streams makes them decidable; a component that negates or
aggregates within itself decides its candidates by clock and stratum.
"""

from __future__ import annotations

import heapq
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from streamlog.analysis.builtins import TICK
from streamlog.kernel.closing import Closing
from streamlog.kernel.codegen import SOURCE, OnRows, generate
from streamlog.kernel.improving import Improving
from streamlog.kernel.memory import Memory
from streamlog.kernel.past import Past
from streamlog.kernel.profile import Profile
from streamlog.kernel.state import GroupState, State, taken
from streamlog.plan.closures import without_recursion
from streamlog.plan.steps import Component, Plan, RulePlan
from streamlog.runtime.aggregates import aggregate, function
from streamlog.runtime.executor import BEGIN, END, Cost, LimitError, Limits, Row
from streamlog.runtime.facts import known_facts
from streamlog.runtime.frontier import Frontiers
from streamlog.runtime.functions import ERRORS
from streamlog.runtime.memory import at_most, share
from streamlog.runtime.python_functions import callables
from streamlog.runtime.rounds import Rounds, cut_short, explained, out_of_memory, place

if TYPE_CHECKING:
    from streamlog.compiler import Planned

_AT_ONCE = 1000  # rows between two looks at the clock
_time = itemgetter(0)


class Kernel:
    """An executor (`runtime.executor`) for a program whose plan is made."""

    def __init__(
        self,
        program: Planned,
        tables: Mapping[str, Sequence[Row]],
        limits: Limits | None = None,
        *,
        profiled: bool = False,
    ) -> None:
        self.plan: Plan = without_recursion(program.plan)
        self.limits = limits or Limits()
        self._streams, self._timelines = program.schema.streams, program.schema.timelines
        # Of several timelines one may pass a row before the others do.
        in_order = {*self._timelines} - program.schema.elsewhere.keys()
        self._temporal = {n for n in self.plan.arity if program.schema.is_temporal(n)}
        self._frontiers = Frontiers(program.contract, program.schema)
        self._potential = program.strata.potential
        self._stratum = program.strata.stratum
        # Tables first: nothing in them depends on a stream, and joins expect them to be there.
        self._components = sorted(self.plan.components, key=lambda c: c.preds[0] in self._temporal)
        # A stream's rows come in the order of time, so candidates that are such rows do too.
        self._in_order = {
            r.number
            for r in self.plan.rules
            for p in r.pipelines
            if p.start and p.start.pred in in_order and r.passes(p)
        }
        self._rules_of: dict[str, list[RulePlan]] = {}
        for rule in self.plan.rules:
            self._rules_of.setdefault(rule.rule.head.pred, []).append(rule)
        self._known, self._types = known_facts(program), program.types
        self._functions = {
            g.number: [function(f, program.types.column(g.pred, at)) for at, f in g.aggregates]
            for g in self.plan.groupings
        }
        self._state = State.of(self.plan)
        self._titles = {
            r.number: f"{r.rule.head.pred}, rule at {place(r.rule)}" for r in self.plan.rules
        }
        self._profile = Profile(self._titles) if profiled else None
        python = callables(program)
        self._code = generate(
            self.plan, program.types, in_order, self._state, self._profile, python
        )
        self._closures = {
            pred: Closing(closure, self.plan.arity[pred], pred in self._temporal)
            for pred, closure in self.plan.closures.items()
        }
        self._memory = Memory(self.plan, self._temporal, self._state, self._closures)
        self._improving = Improving(self._state)
        self.seconds: dict[str, float] = {}  # what the time went into, in words
        self._began = 0.0
        self._derived = 0
        self._at: Component | None = None  # which one is evaluated
        self._started = False
        self._last = BEGIN  # the latest time that anything has spoken of
        self._tables = {name: list(rows) for name, rows in tables.items()}

    @property
    def source(self) -> str:
        """The generated code."""
        return self._code.text

    @property
    def costs(self) -> Mapping[str, Cost]:
        return self._profile.costs if self._profile else {}

    # -------------------------------------------------------------------- step

    def step(
        self,
        arrived: Mapping[str, Sequence[Row]],
        progress: Mapping[str, int],
        spoken_of: int = BEGIN,
    ) -> Mapping[str, list[Row]]:
        """As an executor does. A kernel of a part of a program (`plan.parts`) is also given the
        new rows of what the part reads, and in `spoken_of` the latest time that the rows of all
        streams have spoken of."""
        self._began = time.monotonic()
        self._frontiers.move(progress)
        times = [int(rows[-1][0]) for s in self._timelines if (rows := arrived.get(s))]
        times += (at for at in progress.values() if at < END)
        self._last = max([self._last, spoken_of, *times])
        answers: dict[str, list[Row]] = {}
        memory = self.limits.memory or share()
        try:
            with at_most(memory):
                self._go(arrived, answers)
        except MemoryError as error:
            preds = self._at.preds if self._at else ()
            rules = [r for p in preds for r in self._rules_of.get(p, ())]
            by_line = self._code.rule_at
            raise out_of_memory(error, SOURCE, by_line, memory, preds, rules) from error
        except ERRORS as error:
            code = self._code
            raise explained(error, SOURCE, code.text, code.rule_at, self._types) from error
        self._memory.forget(self._frontiers)
        return answers

    def _go(self, arrived: Mapping[str, Sequence[Row]], answers: dict[str, list[Row]]) -> None:
        starting = not self._started
        if starting:
            self._begin()
        for component in self._components:
            self._at = component
            for pred in component.preds:
                if pred in self._rules_of:
                    continue
                rows = self._given(pred, arrived, starting)
                if rows:
                    self._feed(pred, rows)
            if component.preds[0] in self._rules_of:
                self._run(component, answers)

    def _begin(self) -> None:
        self._started = True
        for pred, rows in self._known.items():
            for row in rows:
                self._state.relations[pred].add(row)
        for start in self._code.start:
            start()

    def _given(
        self, pred: str, arrived: Mapping[str, Sequence[Row]], starting: bool
    ) -> Sequence[Row]:
        if pred == TICK:
            seen = self._state.relations[TICK].seen
            times: set[Row] = {(r[0],) for s in self._streams for r in arrived.get(s, ())}
            times = (times | set(arrived.get(TICK, ()))) - seen
            seen.update(times)
            return sorted(times)
        if pred in self._temporal:
            return arrived.get(pred, ())
        return self._tables.get(pred, ()) if starting else ()

    def _feed(self, pred: str, rows: Sequence[Row]) -> None:
        self._memory.count(pred, len(rows))
        in_rules = self._profile.seconds() if self._profile else 0.0
        took = self._call(self._code.on[pred], f"joins that start from {pred}", rows)
        if self._profile:
            took -= self._profile.seconds() - in_rules
            self._profile.other(f"storing {pred}").add(took, len(rows), 0, 1)

    def _check(self, number: int, rows: list[Row]) -> None:
        took = self._call(self._code.check[number], self._titles[number], rows)
        if self._profile:
            self._profile.of(number).add(took)

    def _call(self, function: OnRows, what: str, rows: Sequence[Row]) -> float:
        """By the thousand: a join that explodes is stopped, though it is no recursion."""
        started = time.perf_counter()
        if len(rows) <= _AT_ONCE:
            function(rows)
        else:
            for at in range(0, len(rows), _AT_ONCE):
                function(rows[at : at + _AT_ONCE])
                if limit := self.limits.reached(0, 0, time.monotonic() - self._began):
                    raise LimitError(f"stopped after {limit}: in {what}")
        return self._spent(what, started)

    def _spent(self, what: str, started: float) -> float:
        took = time.perf_counter() - started
        self.seconds[what] = self.seconds.get(what, 0.0) + took
        return took

    # -------------------------------------------------------------- components

    def _run(self, component: Component, answers: dict[str, list[Row]]) -> None:
        self._derived = 0
        if component.preds[0] in self._closures:
            self._close(component, answers)
            return
        if component.is_ordered:
            self._run_in_order(component, answers)
            return
        rounds = Rounds()
        while True:
            for pred in component.preds:
                self._decide(pred)
            if not self._spread(component, answers, rounds) or not component.is_recursive:
                return
            self._watch(component, rounds)

    def _close(self, component: Component, answers: dict[str, list[Row]]) -> None:
        """The paths that new rows of the base make."""
        (pred,) = component.preds
        rounds = Rounds()

        made = 0

        def watch(at: Any, new: int) -> None:
            nonlocal made
            made += 1
            rounds.at(at)
            self._derived += new
            self._watch(component, rounds)

        self._decide(pred)
        base = taken(self._state.relations[pred].new)
        started = time.perf_counter()
        rows = self._closures[pred].extend(base, watch)
        took = self._spent(f"paths of {pred}", started)
        if self._profile:
            self._profile.other(f"paths of {pred}").add(took, len(base), len(rows), made)
        if rows:
            answers.setdefault(pred, []).extend(rows)
            self._feed(pred, rows)

    def _spread(self, component: Component, answers: dict[str, list[Row]], rounds: Rounds) -> bool:
        """Hand the component's new rows to whoever starts from them."""
        moved = False
        for pred in component.preds:
            rows = taken(self._state.relations[pred].new)
            if not rows:
                continue
            moved = True
            self._derived += len(rows)
            if component.is_recursive:
                rounds.at(min(map(_time, rows)) if pred in self._temporal else BEGIN)
            if pred in self._improving:
                rows = self._improving.best_of(pred, rows)
            else:
                answers.setdefault(pred, []).extend(rows)
            self._feed(pred, rows)
        return moved

    def _decide(self, pred: str) -> None:
        """The candidates of a predicate that the progress makes decidable."""
        rules = self._rules_of[pred]
        limits = self._limits(rules)
        for rule in rules:
            if not rule.is_immediate and (rows := self._decidable(rule, limits[rule.number])):
                self._check(rule.number, rows)
        for number in {r.group: None for r in rules if r.group is not None}:
            self._aggregate(self._state.groups[number])

    def _limits(self, rules: list[RulePlan]) -> dict[int, int]:
        """By conjunction, the time before which its candidates can be decided; those that
        aggregate together are decided together."""
        limits = {
            r.number: min(self._frontiers.limit(r), self._stop(r))
            if r.is_timer
            else self._frontiers.limit(r)
            for r in rules
        }
        groups: dict[int, int] = {}
        for rule in rules:
            if rule.group is not None:
                groups[rule.group] = min(groups.get(rule.group, END), limits[rule.number])
        return {r.number: limits[r.number] if r.group is None else groups[r.group] for r in rules}

    def _stop(self, rule: RulePlan) -> int:
        """Timers go on as far as time does: as far as a row or the progress has spoken of it, and
        as far as is certain then."""
        return self._last + 1 + self._frontiers.foresight(rule.rule.head.pred)

    def _decidable(self, rule: RulePlan, limit: int) -> list[Row]:
        pending = self._state.rules[rule.number].pending
        if not pending:
            return pending
        if limit >= END or rule.rule.head.pred not in self._temporal:
            return taken(pending)
        if rule.number not in self._in_order:
            pending.sort(key=_time)
        cut = bisect_left(pending, (limit,))
        rows = pending[:cut]
        del pending[:cut]
        return rows

    def _aggregate(self, group: GroupState) -> None:
        grouping, relation = group.grouping, self._state.relations[group.grouping.pred]
        functions = self._functions[grouping.number]
        rows = aggregate(grouping, functions, taken(group.solutions))
        if all(r.once for r in self._rules_of[grouping.pred]):
            relation.new.extend(rows)
        else:
            for row in rows:
                relation.add(row)

    # ------------------------------------------------- components by the clock

    def _run_in_order(self, component: Component, answers: dict[str, list[Row]]) -> None:
        """Candidates by (clock, stratum): all that an earlier pair decides is known by then."""
        rules = [r for p in component.preds for r in self._rules_of[p]]
        deciding = [r for r in rules if not r.is_immediate]
        limits = self._limits(rules)
        queue: list[tuple[int, int]] = []
        waiting: dict[tuple[int, int], dict[int, list[Row]]] = {}
        kept: list[tuple[int, Row]] = []
        current: tuple[int, int] | None = None
        rounds = Rounds()
        while True:
            while self._spread(component, answers, rounds):
                self._watch(component, rounds)
            for rule in deciding:
                for at, rows in self._by_time(rule).items():
                    if at >= limits[rule.number]:
                        kept += ((rule.number, row) for row in rows)
                        continue
                    key = self._instant(rule, at)
                    if key not in waiting:
                        waiting[key] = {}
                        heapq.heappush(queue, key)
                    waiting[key].setdefault(rule.number, []).extend(rows)
            if self._is_over(current, queue):
                for pred, best in self._improving.finish():
                    answers.setdefault(pred, []).extend(best)
                    self._code.after[pred](best)
                current = None
                continue
            if not queue:
                break
            rounds.at(queue[0][0])
            self._watch(component, rounds)
            current = heapq.heappop(queue)
            self._settle(waiting.pop(current))
        for number, row in kept:
            self._state.rules[number].pending.append(row)

    def _is_over(self, current: tuple[int, int] | None, queue: list[tuple[int, int]]) -> bool:
        return current is not None and (not queue or queue[0] != current)

    def _by_time(self, rule: RulePlan) -> dict[int, list[Row]]:
        """A conjunction's new candidates by the head's timestamp."""
        rows = taken(self._state.rules[rule.number].pending)
        if rule.rule.head.pred not in self._temporal:
            return {BEGIN: rows} if rows else {}
        times: dict[Any, None] = dict.fromkeys(map(_time, rows))
        if len(times) < 2:
            return dict.fromkeys(times, rows)
        result: dict[Any, list[Row]] = {}
        for row in rows:
            if (same := result.get(row[0])) is not None:
                same.append(row)
            else:
                result[row[0]] = [row]
        return result

    def _instant(self, rule: RulePlan, at: int) -> tuple[int, int]:
        pred = rule.rule.head.pred
        return at + self._potential.get(pred, 0), self._stratum.get(pred, 0)

    def _settle(self, candidates: dict[int, list[Row]]) -> None:
        """Decide the candidates of one instant and stratum."""
        groups: dict[int, None] = {}
        for number, rows in candidates.items():
            self._check(number, rows)
            group = self._state.rules[number].rule.group
            if group is not None:
                groups[group] = None
        for number in groups:
            state = self._state.groups[number]
            if state.grouping.improving:
                self._improving.improve(state)
            else:
                self._aggregate(state)

    # ------------------------------------------------------------------ limits

    def _watch(self, component: Component, rounds: Rounds) -> None:
        seconds = time.monotonic() - self._began
        if limit := self.limits.reached(rounds.count, self._derived, seconds):
            rules = [r for p in component.preds for r in self._rules_of[p]]
            raise cut_short(component.preds, rules, limit, rounds.count, self._derived)

    # ------------------------------------------------------------------- state

    def holding(self) -> Mapping[str, list[Row]]:
        return self._memory.holding(self._frontiers)

    def size(self) -> int:
        return self._memory.size()

    def past(self, progress: Mapping[str, int]) -> Past:
        """What is known of the past, if this was the progress of the last step."""
        self._frontiers.move(progress)
        return Past(self._memory, self._frontiers)

    @property
    def last(self) -> int:
        """The latest time that anything has spoken of."""
        return self._last

    def save(self) -> Mapping[str, list[Row]]:
        saved = self._memory.save(self._frontiers)
        return {**saved, "started": [(int(self._started), self._last)]}

    def load(self, saved: Mapping[str, list[Row]]) -> None:
        self._memory.load(saved)
        started, last = saved["started"][0]
        self._started, self._last = bool(started), int(last)
