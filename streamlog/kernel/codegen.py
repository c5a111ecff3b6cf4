"""Pipelines to Python source, compiled once.

For each predicate `on_p(rows)` stores its new rows in the indexes and runs every pipeline that
starts from them; for each conjunction with something to decide, `check_n(rows)` decides its
candidates. State lives in the module's globals: `index_…` by key, `pending_n` the candidates of
conjunction n, `new_p` the rows of p that nobody has seen yet, `seen_p` those that were.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from streamlog.analysis.builtins import WHOLE
from streamlog.analysis.types import TypeTable
from streamlog.kernel.generated import Generated
from streamlog.kernel.inserts import as_tuple, column_of, insert, is_stored, lists, place
from streamlog.kernel.terms import identifier, name, nothing, python, stored, test
from streamlog.plan.steps import (
    Exists,
    Extend,
    Filter,
    Fold,
    Grouping,
    Index,
    Join,
    Pipeline,
    Plan,
    RulePlan,
    Step,
    Store,
)
from streamlog.plan.walk import bindings, reads
from streamlog.syntax.ast import Agg, Atom, BinOp, Call, Const, Neg, Term, Type, Var
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import variables, walk

_STEPPED = ("floor", "ceil", "abs")
_NESTED = 8  # steps one inside the other; Python allows twenty blocks, and a step may need two


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
        self.depth = 0  # of nested joins, to name their rows
        self.groupings = {g.number: g for g in plan.groupings}

    def run(self) -> Generated:
        for component in self.plan.components:
            for pred in component.preds:
                self._on(pred)
        for rule in self.plan.rules:
            if rule.pipelines and rule.pipelines[0].start is None:
                with self.out.function(f"start_{rule.number}"), self.out.part_of(rule.rule):
                    self._pipeline(rule, rule.pipelines[0], None)
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
                            self._pipeline(rule, pipeline, pipeline.start)
            for rule, _ in whole:
                self.out(f"pending_{rule.number}.extend(rows)")
            if not starts and not indexes:
                self.out("pass")

    def _insert(self, index: Index) -> None:
        if index.where:
            values = (
                f"row[{p}] == {self._value(index.pred, p, const)}" for p, const in index.where
            )
            with self.out.block(f"if {' and '.join(values)}:"):
                insert(self.out, index, index.pred in self.streams)
        else:
            insert(self.out, index, index.pred in self.streams)

    def _pipeline(self, rule: RulePlan, pipeline: Pipeline, start: Atom | None) -> None:
        def body() -> None:
            known = variables(start) if start else ()
            self._chain(pipeline.steps, known, rule.carries, rule, lambda: self._found(rule))

        if start is None:
            body()
        else:
            self._bind(start, "row", None, body)

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

    # ------------------------------------------------------------------- steps

    def _chain(
        self,
        steps: Sequence[Step],
        known: Iterable[Var],
        shown: Iterable[Var],
        rule: RulePlan,
        then: Callable[[], None],
    ) -> None:
        """Steps one inside the other, but not more than Python can nest: then what has been
        bound so far is gathered, and the next steps go through that. `known` is bound before,
        `shown` is read afterwards."""
        later = {v.name for v in shown}
        bound = {v.name: v for v in known}
        loop: AbstractContextManager[None] = nullcontext()
        *parts, last = [steps[i : i + _NESTED] for i in range(0, len(steps), _NESTED)] or [()]
        for number, part in enumerate(parts, 1):
            rest = steps[number * _NESTED :]
            bound |= {v.name: v for s in part for v in bindings(s)}
            used = later | {v.name for s in rest for v in reads(s)}
            live = as_tuple(name(v) for n, v in sorted(bound.items()) if n in used)
            gather = partial(self.out, f"part{number}.append({live})")
            self.out(f"part{number} = []")
            with loop:
                self._steps(list(part), rule, gather)
            loop = self.out.block(f"for {live} in part{number}:")
        with loop:
            self._steps(list(last), rule, then)

    def _steps(self, steps: list[Step], rule: RulePlan, then: Callable[[], None]) -> None:
        if not steps:
            then()
            return
        step, rest = steps[0], steps[1:]

        def go_on() -> None:
            self._steps(rest, rule, then)

        match step:
            case Filter(literal):
                with self.out.block(f"if {test(literal)}:"):
                    go_on()
            case Extend(var, term):
                self.out(f"{name(var)} = {self._extended(rule, var, term)}")
                go_on()
            case Join():
                self._join(step, go_on)
            case Fold():
                self._fold(step, go_on)
            case Exists((Join() as join, *tests)) if self._is_a_loop(step):
                self._look(join, tests, rule, step.wanted, go_on)
            case Exists():
                with self.out.block(f"if {self._exists(step, rule)}:"):
                    go_on()

    def _extended(self, rule: RulePlan, var: Var, term: Term) -> str:
        """A variable's value; one that is computed must be one of its type's."""
        value = python(term)
        if not _computes(term):
            return value
        if self.types.variable(rule.rule, var.name) == {Type.FLOAT}:
            return f"finite({value})"
        return f"whole({value})" if self._is_whole(rule, var) else value

    def _is_whole(self, rule: RulePlan, var: Var) -> bool:
        types = self.types.variable(rule.rule, var.name)
        return not types & {Type.FLOAT, Type.STRING, Type.BOOL} or types == {Type.INT, Type.FLOAT}

    def _join(self, join: Join, then: Callable[[], None]) -> None:
        self.depth += 1
        row = f"row{self.depth}"
        rows = f"{stored(join.index)}.get({self._key(join)}, ())"
        if join.index.store is Store.BY_TIME:
            times, listed = f"times{self.depth}", f"rows{self.depth}"
            self.out(f"{lists(join.index, times, listed)} = {self._lists(join)}")
            low, high = self._bounds(join, times)
            rows = f"{listed if join.index.has_rows else times}[{low}:{high}]"
        with self.out.block(f"for {row} in {rows}:"):
            if join.not_itself:
                with self.out.block(f"if {row} is not row:"):
                    self._bind(join.atom, row, join.index, then)
            else:
                self._bind(join.atom, row, join.index, then)
        self.depth -= 1

    def _lists(self, join: Join) -> str:
        """The lists of an index by time."""
        return f"{stored(join.index)}.get({self._key(join)}, {nothing(join.index)})"

    def _bounds(self, join: Join, times: str) -> tuple[str, str]:
        low = f"bisect_left({times}, {python(join.low)})" if join.low is not None else ""
        high = f"bisect_right({times}, {python(join.high)})" if join.high is not None else ""
        return low, high

    def _fold(self, fold: Fold, then: Callable[[], None]) -> None:
        join, index, column = fold.join, fold.join.index, fold.column
        self.out(f"{lists(index, 'times', 'rows', column)} = {self._lists(join)}")
        low, high = self._bounds(join, "times")
        self.out(f"low, high = {low or 0}, {high or 'len(times)'}")
        with self.out.block("if low < high:"):
            type_ = self.types.column(join.atom.pred, column) if column is not None else None
            values = "rows[low:high]"
            if column is not None and is_stored(index, column) and index.columns != (column,):
                values = f"(r[{place(index, column)}] for r in {values})"
            total = f"exact_sum([*{values}])"
            if column in index.sums:
                total = "totals[high] - totals[low]"
            match fold.func:
                case "count":
                    value = "high - low"
                case "min" if column == 0:
                    value = "times[low]"
                case "max" if column == 0:
                    value = "times[high - 1]"
                case "sum":
                    value = f"whole({total})" if type_ in WHOLE else total
                case "avg":
                    value = f"float({total}) / (high - low)"
                    if type_ is Type.DURATION:
                        value = f"({total}) // (high - low)"
                case function:
                    value = f"{function}({values})"
            self.out(f"{name(fold.var)} = {value}")
            then()

    def _bind(self, atom: Atom, row: str, index: Index | None, then: Callable[[], None]) -> None:
        """The goal's variables from a row; a constant or a repeated variable is a test.

        Of a row out of an index, those columns that are stored and not known.
        """
        targets: dict[int, str] = {}  # by place in the row
        tests: list[str] = []
        for position, arg in enumerate(atom.args):
            if index is not None and not is_stored(index, position):
                continue
            if isinstance(arg, Var) and name(arg) not in targets.values():
                targets[position if index is None else place(index, position)] = name(arg)
            else:
                value = f"{row}[{position}]" if index is None else column_of(index, row, position)
                known = name(arg) if isinstance(arg, Var) else self._constant(atom, position)
                tests.append(f"{value} == {known}")
        width = len(atom.args)
        if index is not None and index.columns is not None:
            width = len(index.columns)
        if targets and width == 1 and index is not None and index.columns is not None:
            self.out(f"{targets[0]} = {row}")
        elif len(targets) > 1 or width == 1 == len(targets):  # at once is faster
            names = ", ".join(targets.get(at, "_") for at in range(width))
            self.out(f"{names} = {row}" if width > 1 else f"{names}, = {row}")
        else:
            for at, target in targets.items():
                self.out(f"{target} = {row}[{at}]")
        if tests:
            with self.out.block(f"if {' and '.join(tests)}:"):
                then()
        else:
            then()

    def _constant(self, atom: Atom, position: int) -> str:
        arg = atom.args[position]
        assert isinstance(arg, Const)
        return self._value(atom.pred, position, arg)

    def _value(self, pred: str, position: int, const: Const) -> str:
        if self.types.column(pred, position) is Type.FLOAT:
            return repr(float(const.value))
        return repr(const.value)

    def _key(self, join: Join) -> str:
        parts = [python(join.atom.args[p]) for p in join.index.key]
        return parts[0] if len(parts) == 1 else as_tuple(parts)

    # ------------------------------------------------------------------ checks

    def _exists(self, step: Exists, rule: RulePlan) -> str:
        """An expression; for anything but a single look-up, a comprehension that stops early."""
        match step.steps:
            case (Join(_, Index(_, _, Store.EARLIEST), _, high) as join,) if high is not None:
                sign = "<=" if step.wanted else ">"
                found = f"{stored(join.index)}.get({self._key(join)}, never)"
                return f"{found} {sign} {python(high)}"
        found = self._simple(step) or self._general(step, rule)
        return found if step.wanted else f"not ({found})"

    def _is_a_loop(self, step: Exists) -> bool:
        """Whether it is rows of one goal that are tested, each by itself."""
        rest = step.steps[1:]
        return bool(rest) and not any(isinstance(s, Join | Extend | Fold) for s in rest)

    def _look(
        self, join: Join, tests: list[Step], rule: RulePlan, wanted: bool, then: Callable[[], None]
    ) -> None:
        """A loop that stops at the first row: `then` goes there, or where there was none."""

        def found() -> None:
            if wanted:
                then()
            self.out("break")

        self._join(join, lambda: self._steps(tests, rule, found))
        if not wanted:
            with self.out.block("else:"):
                then()

    def _simple(self, step: Exists) -> str | None:
        if len(step.steps) != 1 or not isinstance(step.steps[0], Join):
            return None
        join = step.steps[0]
        table, key = stored(join.index), self._key(join)
        free = [a for i, a in enumerate(join.atom.args) if i not in join.index.fixed]
        if len(set(free)) < len(free) or not all(isinstance(a, Var) for a in free):
            return None
        match join.index.store:
            case Store.EARLIEST:
                raise ValueError("an earliest timestamp is compared, not looked at")
            case Store.ROWS:
                return f"{key} in {table}"
            case Store.BY_TIME:
                low = "ever" if join.low is None else python(join.low)
                high = "never" if join.high is None else python(join.high)
                return f"any_between({table}.get({key}), {low}, {high})"

    def _general(self, step: Exists, rule: RulePlan) -> str:
        """`any(True for row1 in … for v_X in (row1[1],) if …)`."""
        clauses: list[str] = []
        bound: dict[str, Var] = {}
        for number, inner in enumerate(step.steps):
            needed = {v.name for s in step.steps[number:] for v in reads(s)}
            if number and number % _NESTED == 0:
                live = as_tuple(name(v) for n, v in sorted(bound.items()) if n in needed)
                clauses = [f"for {live} in ({live} {' '.join(clauses)})"]
            bound |= {v.name: v for v in bindings(inner)}
            match inner:
                case Join():
                    self.depth += 1
                    needed = {v.name for s in step.steps[number + 1 :] for v in reads(s)}
                    clauses += self._clauses(inner, f"row{self.depth}", needed)
                case Filter(literal):
                    clauses.append(f"if {test(literal)}")
                case Extend(var, term):
                    clauses.append(f"for {name(var)} in ({self._extended(rule, var, term)},)")
                case Exists():
                    clauses.append(f"if {self._exists(inner, rule)}")
        self.depth -= sum(isinstance(s, Join) for s in step.steps)
        if not clauses or not clauses[0].startswith("for"):
            clauses.insert(0, "for _ in (0,)")
        return f"any(True {' '.join(clauses)})"

    def _clauses(self, join: Join, row: str, needed: set[str]) -> Iterator[str]:
        index = join.index
        rows = f"{stored(index)}.get({self._key(join)}, ())"
        if index.store is Store.BY_TIME:
            low = "ever" if join.low is None else python(join.low)
            high = "never" if join.high is None else python(join.high)
            found = f"{stored(index)}.get({self._key(join)})"
            rows = f"between({found}, {int(index.has_rows)}, {low}, {high})"
        yield f"for {row} in {rows}"
        first: dict[str, str] = {}
        for position, arg in enumerate(join.atom.args):
            if not is_stored(index, position):
                continue
            value = column_of(index, row, position)
            if isinstance(arg, Const):
                yield f"if {value} == {self._constant(join.atom, position)}"
            elif isinstance(arg, Var) and arg.name in first:
                yield f"if {value} == {first[arg.name]}"
            elif isinstance(arg, Var):
                first[arg.name] = value
                if arg.name in needed:
                    yield f"for {name(arg)} in ({value},)"

    def _check(self, rule: RulePlan) -> None:
        with self.out.function(f"check_{rule.number}", "rows"), self.out.part_of(rule.rule):
            self.out(f"# {pretty(rule.rule).splitlines()[0]}")
            with self.out.block("for row in rows:"):
                self.out(f"{as_tuple(map(name, rule.carries))} = row")
                row = "row" if rule.carries == rule.head else None

                def decided() -> None:
                    self._emit(rule, row)

                shown = [v for x in (*rule.head, *rule.order) for v in variables(x)]
                self._chain(rule.checks, rule.carries, shown, rule, decided)

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
            return f"finite({value})" if _computes(term) else f"float({value})"
        if _computes(term) and type_ not in (Type.STRING, Type.BOOL):
            return f"whole({value})"
        return value

    def _solution(self, rule: RulePlan, grouping: Grouping) -> None:
        """What an aggregate sees: the group, the values, and what tells solutions apart."""
        keys, values = self._group(rule)
        if grouping.improving:
            self.out(f"solutions_{grouping.number}.append(({as_tuple(keys)}, {values[0]}))")
            return
        ordered = any(func in ("first", "last") for _, func in grouping.aggregates)
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


def _computes(term: Term) -> bool:
    """Whether a term may leave the range of the values it is made of."""
    return any(
        isinstance(t, BinOp | Neg) or (isinstance(t, Call) and t.name in _STEPPED)
        for t in walk(term)
    )
