"""A plan in words: where each rule starts, what it joins through which index, what it awaits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve

from streamlog.plan.closures import without_recursion
from streamlog.plan.conjunction import HEAD_TIME
from streamlog.plan.paths import in_words
from streamlog.plan.rewrites.ranks import COUNTED
from streamlog.plan.rewrites.windows import FOLDED
from streamlog.plan.steps import (
    Awaits,
    Component,
    Exists,
    Extend,
    Filter,
    Fold,
    Grouping,
    Index,
    Join,
    Old,
    Pipeline,
    Plan,
    Ranked,
    RulePlan,
    Step,
    Store,
)
from streamlog.plan.walk import reads
from streamlog.rewrite.desugar import printable
from streamlog.syntax.ast import BinOp, Comparison, Const, Rule, Term, Type, Var
from streamlog.syntax.pretty import duration_text, limit_text, pretty
from streamlog.syntax.walk import N, map_terms, variables

INDENT = "  "
_OURS = {
    HEAD_TIME: "HeadTime",
    FOLDED: "Folded",
    COUNTED: "Counted",
}  # variables that the lowering makes


def explain(
    plan: Plan, clocks: Mapping[str, Type | None], on_spark: Mapping[str, list[str]] | None = None
) -> str:
    """Components in the order in which they run, their conjunctions, and the indexes at the end:
    what a kernel does.

    `on_spark` says by predicate how Spark evaluates it.
    """
    written, plan = plan.rules, without_recursion(plan)
    running = {rule.number: rule for rule in plan.rules}
    groupings = {g.number: g for g in plan.groupings}
    blocks = []
    for component in plan.components:
        rules = [r for r in written if r.rule.head.pred in component.preds]
        if not rules:
            continue
        lines = [_heading(component)]
        if on_spark is not None:
            lines += (INDENT + line for line in on_spark[component.preds[0]])
        if (closure := plan.closures.get(component.preds[0])) is not None:
            lines.append(f"{INDENT}from its base, by the ends of paths ({in_words(closure)})")
        for rule in rules:
            run = running.get(rule.number)
            group = groupings[run.group] if run and run.group is not None else None
            words = _Words(run or rule, group, clocks)
            lines += (INDENT + line for line in (words.lines() if run else words.replaced()))
        blocks.append("\n".join(lines))
    if plan.indexes:
        held = [INDENT + _index(i, plan) for i in sorted(plan.indexes, key=lambda i: i.name)]
        blocks.append("\n".join(["indexes", *held]))
    return "\n\n".join(blocks)


def in_a_line(rule: Rule) -> str:
    return " ".join(map(str.strip, pretty(printable(rule)).split("\n")))


def _heading(component: Component) -> str:
    how = "in one go"
    if component.is_ordered:
        how = "instant by instant"
    elif component.is_recursive:
        how = "until nothing is new"
    return f"{', '.join(component.preds)}: {how}"


def _index(index: Index, plan: Plan) -> str:
    key = _columns(index.key) if index.key else "all rows"
    key += _where(index)
    how = {
        Store.ROWS: "",
        Store.BY_TIME: ", in time order",
        Store.EARLIEST: "; stores the earliest timestamp",
    }
    old = f"; once old, only {_kept(index, found)}" if (found := plan.thinned.get(index)) else ""
    final = ", final rows only" if index.settled else ""
    stored = _stored(index, plan.arity[index.pred])
    return f"{index.pred} {key}{how[index.store]}{final}{stored}{old}"


def _kept(index: Index, old: Old) -> str:
    """`the highest column 3 per column 1`."""
    parts = []
    for rows in old.sufficient:
        if rows.best is None:
            parts.append("one for each combination of values")
            continue
        group = [p for p in rows.best.group if p not in dict(index.where)]
        per = f" per {_places(group)}" if group else ""
        count = f"{rows.best.count} " if rows.best.count > 1 else ""
        if rows.best.column == 0:
            parts.append(f"the {count}{'latest' if rows.best.highest else 'earliest'}{per}")
        else:
            extreme = "highest" if rows.best.highest else "lowest"
            parts.append(f"the {count}{extreme} column {rows.best.column + 1}{per}")
    return " and ".join(parts)


def _stored(index: Index, arity: int) -> str:
    """`; stores column 3`, where that is not all."""
    words = f"; running totals of {_places(index.sums)}" if index.sums else ""
    known = index.known(arity)
    if index.store is Store.EARLIEST or len(known) == arity:
        return words
    own = sorted(known - index.fixed - set(index.sums))
    if not own:
        return f"; stores only whether there is one{words}"
    once = ", deduplicated" if index.is_set else ""
    return f"; stores {_places(own)}{once}{words}"


def _where(index: Index) -> str:
    """`, where column 2 = red`."""
    values = [f"column {p + 1} = {pretty(const)}" for p, const in index.where]
    return f", where {' and '.join(values)}" if values else ""


def _columns(key: tuple[int, ...]) -> str:
    return f"by {_places(key)}"


def _places(columns: Sequence[int]) -> str:
    return f"column{'s' * (len(columns) > 1)} {', '.join(str(i + 1) for i in columns)}"


class _Words:
    """One conjunction. Variables that the rule does not name get names, unless they stand alone."""

    def __init__(
        self, rule: RulePlan, group: Grouping | None, clocks: Mapping[str, Type | None]
    ) -> None:
        self.rule, self.group, self.clocks = rule, group, clocks
        self.head = evolve(rule.rule.head, args=rule.head)
        used = Counter(v.name for v in variables(rule.head))
        for pipeline in rule.pipelines[:1]:
            used.update(v.name for v in self._in_pipeline(pipeline))
        used.update(v.name for s in rule.checks for v in reads(s))
        self.used = used

    def _in_pipeline(self, pipeline: Pipeline) -> Iterator[Var]:
        if pipeline.start is not None:
            yield from variables(pipeline.start)
        for step in pipeline.steps:
            yield from reads(step)

    def replaced(self) -> Iterator[str]:
        yield from self._as_written()
        yield f"{INDENT}without a join: its paths are those made from the base"

    def _as_written(self) -> Iterator[str]:
        source = self.rule.rule.span.source
        line = source.position(self.rule.rule.span.start)[0]
        yield in_a_line(self.rule.rule)
        yield f"{INDENT}{source.path} line {line}, conjunction {self.rule.number}"

    def lines(self) -> Iterator[str]:
        yield from self._as_written()
        for pipeline in self.rule.pipelines:
            start = "once, at the beginning"
            if pipeline.start is not None:
                start = f"from each new {self.text(pipeline.start)}"
            yield INDENT + start
            yield from (INDENT * 2 + line for line in self._steps(pipeline.steps))
        if not self.rule.is_immediate or self.rule.awaits:
            yield f"{INDENT}when {self._awaited()}"
            yield from (INDENT * 2 + line for line in self._steps(self.rule.checks))
        yield INDENT + self._result()

    def _awaited(self) -> str:
        parts = sorted(map(self._complete, self.rule.awaits))
        return " and ".join(parts) if parts else "its own instant is over"

    def _complete(self, awaits: Awaits) -> str:
        if awaits.ahead is None:
            return f"{awaits.pred} has ended"
        stamp = self.text(self.rule.head[0]) if self.rule.head else ""
        distance = self._distance(abs(awaits.ahead), awaits.pred)
        sign = "+" if awaits.ahead > 0 else "-"
        far = f"{stamp} {sign} {distance}" if awaits.ahead else stamp
        return f"{awaits.pred} is complete up to {far}"

    def _distance(self, distance: int, pred: str) -> str:
        clock = self.clocks.get(pred) or self.clocks.get(self.rule.rule.head.pred)
        return duration_text(distance) if clock is Type.TIME else str(distance)

    def _result(self) -> str:
        if self.group is None:
            return f"gives {self.text(self.head)}"
        if self.group.limit is not None:
            return f"gives {self.text(self.head)}: of each group {limit_text(self.group.limit)}"
        functions = ", ".join(f"{f} of column {i + 1}" for i, f in self.group.aggregates)
        how = "keeping the best so far" if self.group.improving else "when the group is complete"
        once = ", each solution once" if self.group.distinct else ""
        return f"gives {self.text(self.head)}: {functions}, {how}{once} (group {self.group.number})"

    # ----------------------------------------------------------------------------- steps

    def _steps(self, steps: Iterable[Step]) -> Iterator[str]:
        for step in steps:
            match step:
                case Join():
                    also = ", not the row it started from" if step.not_itself else ""
                    yield f"join {self._join(step)}{also}"
                case Filter(test):
                    yield f"only if {self.text(test)}"
                case Extend(var, term):
                    yield f"let {self.text(Comparison('=', var, term, span=term.span))}"
                case Exists(inner, wanted):
                    yield "only if there is" if wanted else "only if there is no"
                    yield from (INDENT + line for line in self._steps(inner))
                case Fold(var, func, join, column):
                    what = "" if column is None else f" of column {column + 1}"
                    yield f"let {self.text(var)} = {func}{what} over {self._join(join)}"
                case Ranked(var, join, column, highest, same_time, least, limit):
                    yield f"join {self._join(join)}"
                    which = f"{'higher' if highest else 'lower'} in column {column + 1}"
                    when = "not earlier" if same_time else "later"
                    many = f"{least} to {limit - 1}" if least < limit - 1 else str(least)
                    yield f"only if {many} of these rows are {which} and {when}: {self.text(var)}"

    def _join(self, join: Join) -> str:
        columns = f" {_columns(join.index.key)}" if join.index.key else " by scan"
        columns += _where(join.index)
        if join.index.store is Store.EARLIEST:
            columns += ", the earliest alone"
        few = f", the {join.latest} latest times" if join.latest is not None else ""
        return self.text(join.atom) + columns + self._range(join.low, join.high) + few

    def _range(self, low: Term | None, high: Term | None) -> str:
        words = ""
        if low is not None:
            words += f", from {self._bound(low)}"
        if high is not None:
            words += f", {'up' if low is None else ''} to {self._bound(high)}".replace(",  ", " ")
        return words

    def _bound(self, term: Term) -> str:
        """`T - 1` on a calendar is one microsecond."""
        match term:
            case BinOp(op, left, Const(1, Type.INT)) if self._on_calendar():
                return f"{self.text(left)} {op} 1us"
            case _:
                return self.text(term)

    def _on_calendar(self) -> bool:
        return self.clocks.get(self.rule.rule.head.pred) is Type.TIME

    # ----------------------------------------------------------------------------- names

    def text(self, node: N) -> str:
        return pretty(map_terms(node, self._named))

    def _named(self, term: Term) -> Term:
        if not isinstance(term, Var):
            return term
        if term.name in _OURS:
            return evolve(term, name=_OURS[term.name])
        if term.is_anonymous and self.used[term.name] > 1:
            return evolve(term, name=term.name.replace("_#", "_"))
        return term
