"""Pipelines to Python source, compiled once.

For each predicate `on_p(rows)` stores its new rows in the indexes and runs every pipeline that
starts from them; for each conjunction with something to decide, `check_n(rows)` decides its
candidates. They have hold of the kernel's state: `index_…`, `new_p` and `seen_p` are of a relation,
`pending_n` of a conjunction, `solutions_n` and `best_n` of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TypeAlias

from attrs import frozen

from streamlog.analysis.types import TypeTable
from streamlog.kernel.peaks import Peaks
from streamlog.kernel.profile import Profile
from streamlog.kernel.ranks import Ranks
from streamlog.kernel.state import GroupState, State
from streamlog.plan.pivot import seat
from streamlog.plan.python.generated import Generated
from streamlog.plan.python.inserts import as_tuple, insert
from streamlog.plan.python.nest import Nest, computes, literal
from streamlog.plan.python.terms import identifier, name, python
from streamlog.plan.steps import (
    Index,
    Pipeline,
    Plan,
    Ranked,
    RulePlan,
)
from streamlog.runtime.executor import Row
from streamlog.runtime.functions import FUNCTIONS
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import Agg, Rule, Term, Type
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import variables

SOURCE = "<streamlog kernel>"
_NAMES = {**FUNCTIONS, "seat": seat}

NO_PYTHON: Mapping[str, Callable[..., Any]] = {}

OnRows: TypeAlias = Callable[[Sequence[Row]], None]


@frozen
class Code:
    """The functions of a plan, with their text and the rule that each of its lines is part of."""

    text: str
    rule_at: Mapping[int, Rule]
    on: Mapping[str, OnRows]  # by predicate
    after: Mapping[str, OnRows]  # for rows that nothing better can replace any more
    check: Mapping[int, OnRows]  # by conjunction
    start: Sequence[Callable[[], None]]  # the conjunctions without goals


def generate(
    plan: Plan,
    types: TypeTable,
    streams: Collection[str],
    state: State,
    profile: Profile | None = None,
    python: Mapping[str, Callable[..., Any]] = NO_PYTHON,
) -> Code:
    """`streams` are the predicates whose rows come in the order of time; with a profile, the code
    also measures what each conjunction costs; `python` are functions that the program declares."""
    return _Generator(plan, types, streams, state, profile).run(python)


class _Generator:
    def __init__(
        self,
        plan: Plan,
        types: TypeTable,
        streams: Collection[str],
        state: State,
        profile: Profile | None,
    ) -> None:
        self.profile = profile
        self.plan, self.types, self.streams, self.state = plan, types, streams, state
        self.out = Generated()
        self.ranks = self.peaks = 0  # how many there are, to name them

    def run(self, python: Mapping[str, Callable[..., Any]]) -> Code:
        preds = [pred for component in self.plan.components for pred in component.preds]
        starting = [r for r in self.plan.rules for p in r.pipelines if p.start is None]
        checking = [r for r in self.plan.rules if not r.is_immediate]
        for pred in preds:
            self._on(pred)
        for rule in starting:
            with self.out.function(f"start_{rule.number}"), self.out.part_of(rule.rule):
                self._pipeline(rule, rule.pipelines[0])
        for rule in checking:
            self._check(rule)
        names = {**_NAMES, **python, "perf_counter": perf_counter}
        made = self.out.run(SOURCE, names)
        return Code(
            self.out.text,
            self.out.rules,
            {pred: made[f"on_{identifier(pred)}"] for pred in preds},
            {pred: made[f"after_{identifier(pred)}"] for pred in self.plan.improving},
            {rule.number: made[f"check_{rule.number}"] for rule in checking},
            [made[f"start_{rule.number}"] for rule in starting],
        )

    # ------------------------------------------------------------- names of the state

    def _new(self, pred: str) -> str:
        return self.out.named(f"new_{identifier(pred)}", self.state.relations[pred].new)

    def _seen(self, pred: str) -> str:
        return self.out.named(f"seen_{identifier(pred)}", self.state.relations[pred].seen)

    def _pending(self, rule: RulePlan) -> str:
        return self.out.named(f"pending_{rule.number}", self.state.rules[rule.number].pending)

    def _solutions(self, group: GroupState) -> str:
        return self.out.named(f"solutions_{group.grouping.number}", group.solutions)

    def _best(self, group: GroupState) -> str:
        return self.out.named(f"best_{group.grouping.number}", group.best)

    # ---------------------------------------------------------------- new rows

    def _on(self, pred: str) -> None:
        indexes = [i for i in self.plan.indexes if i.pred == pred]
        starts = [
            (rule, pipeline)
            for rule in self.plan.rules
            for pipeline in rule.pipelines
            if pipeline.start is not None and pipeline.start.pred == pred
        ]
        if pred in self.plan.improving:
            # Rows that a better one may still replace are seen by their own recursion only.
            inside = self.plan.improving[pred]
            later = [(r, p) for r, p in starts if r.rule.head.pred not in inside]
            starts = [(r, p) for r, p in starts if r.rule.head.pred in inside]
            settled = [i for i in indexes if i.settled]
            self._function(f"after_{identifier(pred)}", settled, later)
            indexes = [i for i in indexes if not i.settled]
        self._function(f"on_{identifier(pred)}", indexes, starts)

    def _function(
        self, title: str, indexes: list[Index], starts: list[tuple[RulePlan, Pipeline]]
    ) -> None:
        whole = [(r, p) for r, p in starts if r.passes(p)]
        others = [(r, p) for r, p in starts if not r.passes(p)]
        with self.out.function(title, "rows"):
            if indexes or others:
                with self.out.block("for row in rows:"):
                    for index in indexes:
                        self._insert(index)
                    for rule, pipeline in others:
                        with self.out.part_of(rule.rule):
                            self.out(f"# {pretty(rule.rule).splitlines()[0]}")
                            with self._measured(rule):
                                self._pipeline(rule, pipeline)
            for rule, _ in whole:
                self.out(f"{self._pending(rule)}.extend(rows)")
            if self.profile is not None:
                for rule, pipeline in starts:
                    rows = "len(rows)" if rule.passes(pipeline) else "0"
                    self.out(f"{self._cost(rule)}.add(0.0, {rows}, 0, 1)")
            if not starts and not indexes:
                self.out("pass")

    def _cost(self, rule: RulePlan) -> str:
        assert self.profile is not None
        return self.out.named(f"cost_{rule.number}", self.profile.of(rule.number))

    @contextmanager
    def _measured(self, rule: RulePlan) -> Iterator[None]:
        """From one new row."""
        if self.profile is None:
            yield
            return
        self.out("started = perf_counter()")
        yield
        self.out(f"{self._cost(rule)}.add(perf_counter() - started, 1)")

    def _insert(self, index: Index) -> None:
        held, in_order = self.state.stored(index), index.pred in self.streams
        if index.where:
            values = (
                f"row[{p}] == {literal(self.types, index.pred, p, c)}" for p, c in index.where
            )
            with self.out.block(f"if {' and '.join(values)}:"):
                insert(self.out, index, held, in_order)
        else:
            insert(self.out, index, held, in_order)

    def _pipeline(self, rule: RulePlan, pipeline: Pipeline) -> None:
        steps, start = self._nest(rule), pipeline.start

        def body() -> None:
            known = variables(start) if start else ()
            steps.chain(pipeline.steps, known, rule.carries, lambda: self._found(rule))

        if start is None:
            body()
        else:
            steps.bind(start, "row", None, body)

    def _nest(self, rule: RulePlan) -> Nest:
        tables, ranks, peaks = self.state.stored, self._ranks, self._peaks
        return Nest(self.out, self.types, rule.rule, tables, ranks, peaks)

    def _peaks(self, index: Index, column: int, highest: bool) -> tuple[str, Peaks] | None:
        if index.pred in self.plan.improving:  # rows may be taken back
            return None
        self.peaks += 1
        made = Peaks(index, column, highest)
        self.state.derived.setdefault(index, []).append(made)
        return f"peaks_{self.peaks}", made

    def _ranks(self, step: Ranked) -> tuple[str, Ranks]:
        self.ranks += 1
        made = Ranks(step)
        self.state.derived.setdefault(step.join.index, []).append(made)
        return f"ranks_{self.ranks}", made

    def _found(self, rule: RulePlan) -> None:
        """A solution of the positive goals."""
        if rule.is_immediate:
            self._emit(rule, None)
        else:
            with self._unless_known(rule):
                self.out(f"{self._pending(rule)}.append({as_tuple(map(name, rule.carries))})")

    @contextmanager
    def _unless_known(self, rule: RulePlan) -> Iterator[None]:
        """Where better values replace worse ones, a candidate must be better than the best."""
        group = self.state.groups[rule.group] if rule.group is not None else None
        if group is None or not group.grouping.improving:
            yield
            return
        keys, (value,) = self._group(rule)
        self.out(f"best = {self._best(group)}.get({as_tuple(keys)})")
        sign = "<" if group.grouping.aggregates[0][1] == "min" else ">"
        with self.out.block(f"if best is None or {value} {sign} best:"):
            yield

    # ------------------------------------------------------------------ checks

    def _check(self, rule: RulePlan) -> None:
        with self.out.function(f"check_{rule.number}", "rows"), self.out.part_of(rule.rule):
            self.out(f"# {pretty(rule.rule).splitlines()[0]}")
            with self.out.block("for row in rows:"):
                self.out(f"{as_tuple(map(name, rule.carries))} = row")
                row = "row" if rule.carries == rule.head else None

                def decided() -> None:
                    self._emit(rule, row)

                shown = [v for x in (*rule.head, *rule.order) for v in variables(x)]
                steps = self._nest(rule)
                steps.chain(rule.checks, rule.carries, shown, decided)

    def _emit(self, rule: RulePlan, row: str | None) -> None:
        if self.profile is not None:
            self.out(f"{self._cost(rule)}.rows_out += 1")
        if rule.group is not None:
            self._solution(rule, self.state.groups[rule.group])
            return
        pred = rule.rule.head.pred
        value = row or as_tuple(self._head_term(rule, i, a) for i, a in enumerate(rule.head))
        if rule.once:
            self.out(f"{self._new(pred)}.append({value})")
            return
        if row is None:
            self.out(f"found = {value}")
            value = "found"
        with self.out.block(f"if {value} not in {self._seen(pred)}:"):
            self.out(f"{self._seen(pred)}.add({value})")
            self.out(f"{self._new(pred)}.append({value})")

    def _head_term(self, rule: RulePlan, position: int, term: Term) -> str:
        value = python(term)
        type_ = self.types.column(rule.rule.head.pred, position)
        if type_ is Type.FLOAT:
            if computes(term):
                return f"finite({value})"
            is_optional = (rule.rule.head.pred, position) in self.types.optional
            return f"as_float({value})" if is_optional else f"float({value})"
        if computes(term) and type_ not in (Type.STRING, Type.BOOL):
            return f"whole({value})"
        return value

    def _solution(self, rule: RulePlan, group: GroupState) -> None:
        """What an aggregate sees: the group, the values, and what tells solutions apart."""
        grouping, gathered = group.grouping, self._solutions(group)
        keys, values = self._group(rule)
        if grouping.improving:
            self.out(f"{gathered}.append(({as_tuple(keys)}, {values[0]}))")
            return
        ordered = any(AGGREGATES[func].by_order for _, func in grouping.aggregates)
        order = as_tuple(map(name, rule.order)) if ordered else "()"
        own = [v for v in rule.carries if v.is_written]
        which = " ".join(v.name for v in own)  # branches may bind different variables
        distinct = as_tuple([repr(which), *map(name, own)]) if grouping.distinct else "None"
        solution = f"({as_tuple(keys)}, {as_tuple(values)}, {order}, {distinct})"
        self.out(f"{gathered}.append({solution})")

    def _group(self, rule: RulePlan) -> tuple[list[str], list[str]]:
        """The head's terms, and the values to aggregate; of a limit, what tells groups apart, and
        the row with what it is ranked by."""
        limit = self.state.groups[rule.group].grouping.limit if rule.group is not None else None
        if limit is not None:
            row = as_tuple(self._head_term(rule, i, term) for i, term in enumerate(rule.head))
            by = as_tuple(python(order.term) for order in limit.by)
            return [*map(python, limit.per)], [by, row]
        keys, values = [], []
        for position, term in enumerate(rule.head):
            if not isinstance(term, Agg):
                keys.append(self._head_term(rule, position, term))
            elif term.by is not None:
                values.append(as_tuple(map(python, term.args)))
            else:
                values.append("1" if term.arg is None else python(term.arg))
        return keys, values
