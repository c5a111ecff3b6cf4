"""Steps as Python source, one inside the other: joins, tests, and what must exist or must not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeAlias

from streamlog.analysis.builtins import WHOLE
from streamlog.analysis.failing import fitting
from streamlog.analysis.types import TypeTable
from streamlog.plan.python.generated import Generated
from streamlog.plan.python.inserts import as_tuple, column_of, is_stored, lists, nothing, place
from streamlog.plan.python.terms import name, python, stored, test
from streamlog.plan.steps import (
    Exists,
    Extend,
    Filter,
    Fold,
    Index,
    Join,
    Ranked,
    Step,
    Store,
)
from streamlog.plan.walk import bindings, reads
from streamlog.syntax.ast import (
    Atom,
    BinOp,
    Call,
    Comparison,
    Const,
    Neg,
    Query,
    Rule,
    Term,
    Type,
    Var,
)
from streamlog.syntax.nothing import as_float
from streamlog.syntax.walk import variables, walk

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_STEPPED = ("floor", "ceil", "abs")
_NESTED = 8  # steps one inside the other; Python allows twenty blocks, and a step may need two


# What an index holds, by key.
Tables: TypeAlias = Callable[[Index], object]
# What finds the rows of a step, and its name.
Ranks: TypeAlias = Callable[[Ranked], tuple[str, object]]
# What finds the highest value of a column, or the lowest (False), and its name; if it may.
Peaks: TypeAlias = Callable[[Index, int, bool], tuple[str, object] | None]


class Nest:
    """Writes steps of a statement, and what is to be done where they have a solution."""

    def __init__(
        self,
        out: Generated,
        types: TypeTable,
        statement: Rule | Query,
        tables: Tables,
        ranks: Ranks | None = None,
        peaks: Peaks | None = None,
    ) -> None:
        self.out, self.types, self.statement, self.tables = out, types, statement, tables
        self.ranks, self.peaks = ranks, peaks
        self.searches = 0  # one within the other
        self.depth = 0  # of nested joins, to name their rows
        self.parts = self.flags = 0  # how many there are, to name them
        self.stop: str | None = None  # the flag that ends the joins at hand

    def chain(
        self,
        steps: Sequence[Step],
        known: Iterable[Var],
        shown: Iterable[Var],
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
            self.parts += 1
            gathered, rest = f"part{self.parts}", steps[number * _NESTED :]
            bound |= {v.name: v for s in part for v in bindings(s)}
            used = later | {v.name for s in rest for v in reads(s)}
            live = as_tuple(name(v) for n, v in sorted(bound.items()) if n in used)
            gather = partial(self.out, f"{gathered}.append({live})")
            self.out(f"{gathered} = []")
            with loop:
                self._steps(list(part), gather)
            loop = self.out.block(f"for {live} in {gathered}:")
        with loop:
            self._steps(list(last), then)

    def _steps(self, steps: list[Step], then: Callable[[], None]) -> None:
        if not steps:
            then()
            return
        step, rest = steps[0], steps[1:]

        def go_on() -> None:
            self._steps(rest, then)

        match step:
            case Filter(literal, skips=True):
                self.flags += 1
                holds = f"holds{self.flags}"
                self._tried(f"{holds} = {test(self._checked(literal))}", f"{holds} = False")
                with self.out.block(f"if {holds}:"):
                    go_on()
            case Extend(var, term, skips=True):
                self._tried(f"{name(var)} = {self._extended(var, term)}", f"{name(var)} = None")
                with self.out.block(f"if {name(var)} is not None:"):
                    go_on()
            case Filter(literal):
                with self.out.block(f"if {test(literal)}:"):
                    go_on()
            case Extend(var, term):
                self.out(f"{name(var)} = {self._extended(var, term)}")
                go_on()
            case Join():
                self._join(step, go_on)
            case Fold():
                self._fold(step, go_on)
            case Ranked():
                self._ranked(step, go_on)
            case Exists():
                self._exists(step, go_on)

    def _checked(self, literal: Comparison | Atom) -> Comparison | Atom:
        """A test that fails where a side does, as the value of a variable would."""
        if isinstance(literal, Atom):
            return literal
        left, right = (
            fitting(side, self.types, self.statement) for side in (literal.left, literal.right)
        )
        return Comparison(literal.op, left, right, span=literal.span)

    def _tried(self, line: str, otherwise: str) -> None:
        """A line, and another one where that cannot be computed."""
        with self.out.block("try:"):
            self.out(line)
        with self.out.block("except ERRORS:"):
            self.out(otherwise)

    def _extended(self, var: Var, term: Term) -> str:
        """A variable's value; one that is computed must be one of its type's."""
        value = python(term)
        if not computes(term):
            return value
        if self.types.variable(self.statement, var.name) == {Type.FLOAT}:
            return f"finite({value})"
        return f"whole({value})" if self._is_whole(var) else value

    def _is_whole(self, var: Var) -> bool:
        types = self.types.variable(self.statement, var.name)
        return not types & {Type.FLOAT, Type.STRING, Type.BOOL} or types == {Type.INT, Type.FLOAT}

    def _join(self, join: Join, then: Callable[[], None]) -> None:
        self.depth += 1
        row = f"row{self.depth}"
        rows = f"{self._table(join.index)}.get({self._key(join)}, ())"
        if join.index.store is Store.BY_TIME:
            times, listed = f"times{self.depth}", f"rows{self.depth}"
            self.out(f"{lists(join.index, times, listed)} = {self._lists(join)}")
            low, high = self._bounds(join, times)
            if join.latest is not None:
                low = f"latest({times}, {join.latest}, {low or 0}, {high or f'len({times})'})"
            rows = f"{listed if join.index.has_rows else times}[{low}:{high}]"
        stop = self.stop
        with self.out.block(f"for {row} in {rows}:"):
            if join.not_itself:
                with self.out.block(f"if {row} is not row:"):
                    self.bind(join.atom, row, join.index, then)
            else:
                self.bind(join.atom, row, join.index, then)
            if stop is not None:
                with self.out.block(f"if {stop}:"):
                    self.out("break")
        self.depth -= 1

    def _table(self, index: Index) -> str:
        return self.out.named(stored(index), self.tables(index))

    def _lists(self, join: Join) -> str:
        """The lists of an index by time."""
        return f"{self._table(join.index)}.get({self._key(join)}, {nothing(join.index)})"

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

    def _ranked(self, step: Ranked, then: Callable[[], None]) -> None:
        assert self.ranks is not None
        join = step.join
        self.depth += 1
        row = f"row{self.depth}"
        low = "ever" if join.low is None else python(join.low)
        high = "never" if join.high is None else python(join.high)
        self.out(f"{lists(join.index, 'times', 'rows')} = {self._lists(join)}")
        asked = f"({self._key(join)}, times, rows, {low}, {high})"
        found = f"{self.out.named(*self.ranks(step))}.between{asked}"
        with self.out.block(f"for {row}, {name(step.var)} in {found}:"):
            self.bind(join.atom, row, join.index, then)
        self.depth -= 1

    def bind(self, atom: Atom, row: str, index: Index | None, then: Callable[[], None]) -> None:
        """The goal's variables from a row; a constant is a test.

        Of a row out of an index, those columns that are stored and not known.
        """
        targets: dict[int, str] = {}  # by place in the row
        tests: list[str] = []
        for position, arg in enumerate(atom.args):
            if index is not None and not is_stored(index, position):
                continue
            if isinstance(arg, Var):
                targets[position if index is None else place(index, position)] = name(arg)
            else:
                value = f"{row}[{position}]" if index is None else column_of(index, row, position)
                tests.append(f"{value} == {self._constant(atom, position)}")
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
        return literal(self.types, atom.pred, position, arg)

    def _key(self, join: Join) -> str:
        parts = [python(join.atom.args[p]) for p in join.index.key]
        return parts[0] if len(parts) == 1 else as_tuple(parts)

    # ------------------------------------------------------------------ checks

    def _exists(self, step: Exists, then: Callable[[], None]) -> None:
        """A look-up where that is enough; else loops that stop at the first solution."""
        test = self._simple(step) or self._by_peak(step)
        if test is None:
            found = self._search(step.steps)
            test = found if step.wanted else f"not {found}"
        with self.out.block(f"if {test}:"):
            then()

    def _search(self, steps: Sequence[Step]) -> str:
        self.flags += 1
        self.searches += 1
        outer, flag = self.stop, f"found{self.flags}"
        if outer is None:
            self.out(f"{flag} = False")
            self.stop = flag
            self.chain(steps, (), (), lambda: self.out(f"{flag} = True"))
        else:  # within another search: Python nests only so many blocks in a function
            flag += "()"
            self.stop = None
            with self.out.block(f"def {flag}:"):
                self.chain(steps, (), (), lambda: self.out("return True"))
                self.out("return False")
        self.stop = outer
        self.searches -= 1
        return flag

    def _by_peak(self, step: Exists) -> str | None:
        """Whether some row up to a time is beyond a value: whether the highest, or lowest, is."""
        match step.steps:
            case (
                Join(index=Index(store=Store.BY_TIME), low=None) as join,
                Filter(Comparison() as c),
            ):
                pass
            case _:
                return None
        own = {v: i for i, v in enumerate(join.atom.args) if i not in join.index.fixed}
        sides = ((c.op, c.left, c.right), (_MIRRORED.get(c.op, ""), c.right, c.left))
        found = [
            (op, own[mine], other)
            for op, mine, other in sides
            if op in _MIRRORED and mine in own and not any(v in own for v in variables(other))
        ]
        if self.peaks is None or self.searches or join.high is None or len(found) != 1:
            return None
        ((op, column, other),) = found
        pred = join.atom.pred
        if not all(isinstance(v, Var) for v in own) or not column or join.not_itself:
            return None
        if self.types.column(pred, column) is None or computes(other):
            return None
        made = self.peaks(join.index, column, op[0] == ">")
        if made is None:
            return None
        times, rows = "times", "rows"
        self.out(f"{lists(join.index, times, rows)} = {self._lists(join)}")
        asked = f"({self._key(join)}, times, rows, {python(join.high)})"
        self.out(f"peak = {self.out.named(*made)}.up_to{asked}")
        holds = f"peak is not None and peak {op} {python(other)}"
        return holds if step.wanted else f"not ({holds})"

    def _simple(self, step: Exists) -> str | None:
        if len(step.steps) != 1 or not isinstance(step.steps[0], Join):
            return None
        join = step.steps[0]
        table, key = self._table(join.index), self._key(join)
        free = [a for i, a in enumerate(join.atom.args) if i not in join.index.fixed]
        if not all(isinstance(a, Var) for a in free):
            return None
        match join.index.store:
            case Store.EARLIEST:
                assert join.high is not None
                sign = "<=" if step.wanted else ">"
                return f"{table}.get({key}, never) {sign} {python(join.high)}"
            case Store.ROWS:
                return f"{key} in {table}" if step.wanted else f"{key} not in {table}"
            case Store.BY_TIME:
                low = "ever" if join.low is None else python(join.low)
                high = "never" if join.high is None else python(join.high)
                found = f"any_between({table}.get({key}), {low}, {high})"
                return found if step.wanted else f"not {found}"


def computes(term: Term) -> bool:
    """Whether a term may leave the range of the values it is made of."""
    return any(
        isinstance(t, BinOp | Neg) or (isinstance(t, Call) and t.name in _STEPPED)
        for t in walk(term)
    )


def literal(types: TypeTable, pred: str, position: int, const: Const) -> str:
    """A constant as the column has its values."""
    is_float = types.column(pred, position) is Type.FLOAT
    return repr(as_float(const.value) if is_float else const.value)
