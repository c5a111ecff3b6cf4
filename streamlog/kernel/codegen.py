"""Pipelines to Python source, compiled once.

For each predicate `on_p(rows)` stores its new rows in the indexes and runs every pipeline that
starts from them; for each conjunction with something to decide, `check_n(rows)` decides its
candidates. State lives in the module's globals: `index_…` by key, `pending_n` the candidates of
conjunction n, `new_p` the rows of p that nobody has seen yet, `seen_p` those that were.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from contextlib import contextmanager

from streamlog.analysis.types import TypeTable
from streamlog.plan.python.generated import Generated
from streamlog.plan.python.inserts import as_tuple, insert
from streamlog.plan.python.nest import Nest, computes, literal
from streamlog.plan.python.terms import identifier, name, python
from streamlog.plan.steps import (
    Grouping,
    Index,
    Pipeline,
    Plan,
    RulePlan,
)
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import Agg, Term, Type
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import variables


def generate(plan: Plan, types: TypeTable, streams: Collection[str], names: Set[str]) -> Generated:
    """`streams` are the predicates whose rows come in the order of time; `names` the globals of
    the code."""
    return _Generator(plan, types, streams, names).run()


class _Generator:
    def __init__(
        self, plan: Plan, types: TypeTable, streams: Collection[str], names: Set[str]
    ) -> None:
        self.plan, self.types, self.streams = plan, types, streams
        self.out = Generated(names)
        self.groupings = {g.number: g for g in plan.groupings}

    def run(self) -> Generated:
        for component in self.plan.components:
            for pred in component.preds:
                self._on(pred)
        for rule in self.plan.rules:
            if rule.pipelines and rule.pipelines[0].start is None:
                with self.out.function(f"start_{rule.number}"), self.out.part_of(rule.rule):
                    self._pipeline(rule, rule.pipelines[0])
            if not rule.is_immediate:
                self._check(rule)
        return self.out

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
                            self._pipeline(rule, pipeline)
            for rule, _ in whole:
                self.out(f"pending_{rule.number}.extend(rows)")
            if not starts and not indexes:
                self.out("pass")

    def _insert(self, index: Index) -> None:
        if index.where:
            values = (
                f"row[{p}] == {literal(self.types, index.pred, p, c)}" for p, c in index.where
            )
            with self.out.block(f"if {' and '.join(values)}:"):
                insert(self.out, index, index.pred in self.streams)
        else:
            insert(self.out, index, index.pred in self.streams)

    def _pipeline(self, rule: RulePlan, pipeline: Pipeline) -> None:
        steps, start = Nest(self.out, self.types, rule.rule), pipeline.start

        def body() -> None:
            known = variables(start) if start else ()
            steps.chain(pipeline.steps, known, rule.carries, lambda: self._found(rule))

        if start is None:
            body()
        else:
            steps.bind(start, "row", None, body)

    def _found(self, rule: RulePlan) -> None:
        """A solution of the positive goals."""
        if rule.is_immediate:
            self._emit(rule, None)
        else:
            with self._unless_known(rule):
                self.out(f"pending_{rule.number}.append({as_tuple(map(name, rule.carries))})")

    @contextmanager
    def _unless_known(self, rule: RulePlan) -> Iterator[None]:
        """Where better values replace worse ones, a candidate must be better than the best."""
        grouping = self.groupings.get(rule.group) if rule.group is not None else None
        if grouping is None or not grouping.improving:
            yield
            return
        keys, (value,) = self._group(rule)
        self.out(f"best = best_{grouping.number}.get({as_tuple(keys)})")
        sign = "<" if grouping.aggregates[0][1] == "min" else ">"
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
                steps = Nest(self.out, self.types, rule.rule)
                steps.chain(rule.checks, rule.carries, shown, decided)

    def _emit(self, rule: RulePlan, row: str | None) -> None:
        if rule.group is not None:
            self._solution(rule, self.groupings[rule.group])
            return
        pred = identifier(rule.rule.head.pred)
        value = row or as_tuple(self._head_term(rule, i, a) for i, a in enumerate(rule.head))
        if rule.once:
            self.out(f"new_{pred}.append({value})")
            return
        if row is None:
            self.out(f"found = {value}")
            value = "found"
        with self.out.block(f"if {value} not in seen_{pred}:"):
            self.out(f"seen_{pred}.add({value})")
            self.out(f"new_{pred}.append({value})")

    def _head_term(self, rule: RulePlan, position: int, term: Term) -> str:
        value = python(term)
        type_ = self.types.column(rule.rule.head.pred, position)
        if type_ is Type.FLOAT:
            return f"finite({value})" if computes(term) else f"float({value})"
        if computes(term) and type_ not in (Type.STRING, Type.BOOL):
            return f"whole({value})"
        return value

    def _solution(self, rule: RulePlan, grouping: Grouping) -> None:
        """What an aggregate sees: the group, the values, and what tells solutions apart."""
        keys, values = self._group(rule)
        if grouping.improving:
            self.out(f"solutions_{grouping.number}.append(({as_tuple(keys)}, {values[0]}))")
            return
        ordered = any(AGGREGATES[func].by_order for _, func in grouping.aggregates)
        order = as_tuple(map(name, rule.order)) if ordered else "()"
        own = [v for v in rule.carries if v.is_written]
        which = " ".join(v.name for v in own)  # branches may bind different variables
        distinct = as_tuple([repr(which), *map(name, own)]) if grouping.distinct else "None"
        solution = f"({as_tuple(keys)}, {as_tuple(values)}, {order}, {distinct})"
        self.out(f"solutions_{grouping.number}.append({solution})")

    def _group(self, rule: RulePlan) -> tuple[list[str], list[str]]:
        """The head's terms, and the values to aggregate."""
        keys, values = [], []
        for position, term in enumerate(rule.head):
            if not isinstance(term, Agg):
                keys.append(self._head_term(rule, position, term))
            elif term.arg is None:
                values.append("1")
            else:
                values.append(python(term.arg))
        return keys, values
