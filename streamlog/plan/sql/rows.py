"""Rows in the making: a FROM with joins and conditions, and what the variables are in it.

`sql.steps` adds to it step by step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import count

from attrs import evolve
from sqlglot import exp

from streamlog.plan.sql.context import HIGH, LOW, Context, Unsupported, Version, parameter
from streamlog.plan.sql.terms import Env, Value, compare, equal, finite, test, value
from streamlog.plan.steps import Extend, Filter, RulePlan
from streamlog.syntax.ast import Atom, Const, Term, Type, Var
from streamlog.syntax.nothing import Nothing
from streamlog.syntax.pretty import pretty

# What queries call their own columns.
_OURS = re.compile(
    r"[ckvo]\d+|pos|upto|asks|row_pos|row_value|row_rank|found|n|total|n_before|total_before"
)


class CorrelatedError(Exception):
    """A test within a test speaks of the outermost rows."""


class Scope:
    """Names within the query of one rule."""

    def __init__(self, context: Context, rule: RulePlan, delta: Atom | None = None) -> None:
        self.context, self.rule, self.delta = context, rule, delta
        self._numbers = {"g": count(), "s": count()}
        self._columns: dict[str, str] = {}

    def alias(self, kind: str) -> str:
        return f"{kind}{next(self._numbers[kind])}"

    def column(self, variable: str) -> str:
        """A column for a variable: in its own name, if SQL can tell that from the others."""
        if variable.startswith("#"):
            return variable[1:]
        if variable not in self._columns:
            name = re.sub(r"\W", "", variable, flags=re.ASCII).lower()
            name = name if name[:1].isalpha() or name[:1] == "_" else f"x{name}"
            taken = set(self._columns.values())
            while name in taken or _OURS.fullmatch(name):
                name += "_"
            self._columns[variable] = name
        return self._columns[variable]

    def table(self, atom: Atom) -> exp.Table:
        version = Version.DELTA if atom is self.delta else Version.TOTAL
        return self.context.table(atom.pred, version)

    @property
    def head_time(self) -> str | None:
        """The variable of the head's timestamp, if it has one."""
        head = self.rule.head
        timed = self.context.has_time(self.rule.rule)
        return head[0].name if timed and isinstance(head[0], Var) else None


class Rows:
    """With `env` from somewhere else these rows are a test of others, which their conditions may
    speak of: `keys` are values here that must be values there, `across` are other conditions."""

    def __init__(self, scope: Scope, env: Env | None = None) -> None:
        self.scope, self.is_test = scope, env is not None
        self.env: dict[str, Value] = dict(env or {})
        self.aliases: set[str] = set()
        self.source: exp.Expr | None = None
        self.joins: list[exp.Join] = []
        self.where: list[exp.Expr] = []
        self.keys: list[tuple[Value, Value]] = []  # here and there
        self.across: list[exp.Expr] = []
        self.fails: list[exp.Expr] = []

    def owns(self, sql: exp.Expr) -> bool:
        return all(column.table in self.aliases for column in sql.find_all(exp.Column))

    # ----------------------------------------------------------------------------- steps

    def apply(self, step: Filter | Extend) -> None:
        match step:
            case Filter(literal):
                self.filter(test(literal, self.env))
            case Filter(skips=True) | Extend(skips=True):
                raise Unsupported("a solution that cannot be computed is left out")
            case Extend(var, term):
                self.extend(var.name, value(term, self.env))

    def filter(self, condition: Value) -> None:
        """A row that makes the test fail stays, and is an error when it comes to its end."""
        self._may_fail(condition)
        self.require(exp.or_(condition.sql, *condition.fails))

    def extend(self, name: str, what: Value) -> None:
        what = what if self.is_test else finite(what)
        self._may_fail(what)
        if name in self.env:
            raise ValueError(f"{name} has a value")
        self.env[name] = what

    def _may_fail(self, what: Value) -> None:
        if what.fails and self.is_test:
            rule = self.scope.rule.rule.head.pred
            raise Unsupported(f"a test in the rule for `{rule}` divides by what may be zero")
        self.fails += (f for f in what.fails if f not in self.fails)

    def require(self, condition: exp.Expr) -> None:
        (self.where if self.owns(condition) else self.across).append(condition)

    # ----------------------------------------------------------------------------- joins

    def start(self, atom: Atom) -> None:
        self.join(atom, None, None)

    def join(self, atom: Atom, low: Term | None, high: Term | None) -> None:
        """The rows of a goal; what is known of it becomes a condition."""
        context = self.scope.context
        if any((atom.pred, i) in context.types.optional for i in range(atom.arity)):
            raise Unsupported(f"values of `{atom.pred}` may be missing")
        alias = self.scope.alias("g")
        bounds = [(op, value(term, self.env)) for op, term in ((">=", low), ("<=", high)) if term]
        self.aliases.add(alias)
        on: list[exp.Expr] = []
        is_linked = is_asked = False
        columns = [
            Value(exp.column(f"c{i}", alias), context.column(atom, i)) for i in range(atom.arity)
        ]
        for column, arg in zip(columns, atom.args, strict=True):
            match arg:
                case Const():
                    on.append(equal(column, self._constant(arg, column), atom))
                case Var(name) if name in self.env:
                    known = self.env[name]
                    same = equal(column, known, atom)
                    if self.owns(known.sql):
                        on.append(same)
                        is_linked |= any(c.table != alias for c in known.sql.find_all(exp.Column))
                    else:
                        self.keys.append((column, known))
                        self.env[name] = column
                        is_asked = True
                case Var(name):
                    self.env[name] = column
                case _:
                    raise ValueError("goals are desugared")
        if self.source is not None and is_asked and not is_linked:
            raise CorrelatedError  # without the rows that ask, each row here with each of the goal
        for op, bound in bounds:
            if bound.fails:
                raise Unsupported(f"`{pretty(atom)}` lies at a time whose computation may fail")
            on.append(compare(op, columns[0], bound, atom).sql)
        self.add(alias, exp.alias_(self.scope.table(atom), alias, table=True, copy=False), on)
        for condition in self._slice(atom, columns):
            self.require(condition)

    def _constant(self, const: Const, column: Value) -> Value:
        """A whole number stands for the float that a column of floats has in its place."""
        if isinstance(const.value, Nothing):
            raise Unsupported("`none` is for kernels")
        if column.type is Type.FLOAT and const.type is Type.INT:
            const = Const(float(const.value), Type.FLOAT, span=const.span)
        known = value(const, {})
        return known if column.type is not None else evolve(known, type=None)

    def _slice(self, atom: Atom, columns: Sequence[Value]) -> Iterable[exp.Expr]:
        """What a slice of the head can need of a goal."""
        context = self.scope.context
        goal = context.goals.get(atom.number)
        if goal is None or not context.sliced:
            return
        at, stamp = columns[0].sql, atom.args[0]
        if isinstance(stamp, Var) and stamp.name == self.scope.head_time and not self.is_test:
            return
        if goal.back is not None:
            yield exp.GTE(this=at.copy(), expression=parameter(LOW, goal.back))
        if goal.ahead is not None:
            yield exp.LT(this=at.copy(), expression=parameter(HIGH, goal.ahead))

    def add(self, alias: str, table: exp.Expr, on: list[exp.Expr]) -> None:
        """More rows beside those that there are; the conditions may be about both."""
        self.aliases.add(alias)
        own = [c for c in on if self.owns(c)]
        self.across += (c for c in on if not self.owns(c))
        if self.source is None:
            self.source = table
            self.where += own
        elif own:
            self.joins.append(exp.Join(this=table, on=exp.and_(*own, copy=False)))
        else:
            self.joins.append(exp.Join(this=table, kind="CROSS"))

    def attach(self, table: exp.Expr, on: list[exp.Expr], wanted: bool) -> None:
        """Only rows that have a partner (`wanted`), or that have none."""
        if not all(self._is_about(c, table) for c in on):
            raise CorrelatedError
        kind = "SEMI" if wanted else "ANTI"
        condition = exp.and_(*on, copy=False) if on else exp.true()
        self.joins.append(exp.Join(this=table, side="LEFT", kind=kind, on=condition))

    def _is_about(self, condition: exp.Expr, table: exp.Expr) -> bool:
        known = self.aliases | {table.alias}
        return all(c.table in known for c in condition.find_all(exp.Column))

    # --------------------------------------------------------------------------- results

    def read(self, query: exp.Query, env: Env) -> str:
        """Go on from the rows of a query that has a column for each of these variables."""
        alias = self.scope.alias("s")
        self.aliases = {alias}
        self.source, self.joins, self.where = query.subquery(alias, copy=False), [], []
        for name, known in env.items():
            self.env[name] = Value(exp.column(self.scope.column(name), alias), known.type)
        return alias

    def key_conditions(self) -> list[exp.Expr]:
        return [
            exp.EQ(this=here.sql.copy(), expression=there.sql.copy()) for here, there in self.keys
        ]

    def select(self, columns: Sequence[exp.Expr], *, goes_on: bool = False) -> exp.Select:
        """The query so far. A row whose values cannot be computed is an error.

        These rows become part of it, unless more will be done with them (`goes_on`).
        """
        columns = list(columns)
        if self.fails and columns:
            first = columns[0]
            checked = exp.Case(
                ifs=[exp.If(this=f.copy(), true=_DIVISION.copy()) for f in self.fails],
                default=first.this if isinstance(first, exp.Alias) else first,
            )
            columns[0] = checked.as_(first.alias) if first.alias else checked
        query = exp.select(*columns, copy=False)
        if self.source is not None:
            query.from_(self.source.copy() if goes_on else self.source, copy=False)
        for join in self.joins:
            query.append("joins", join.copy() if goes_on else join)
        if self.where:
            query.where(*(c.copy() if goes_on else c for c in self.where), copy=False)
        return query


_DIVISION = exp.Anonymous(
    this="raise_error",
    expressions=[
        exp.Literal.string(
            "division by zero, a step of no size, or a result beyond the range of floats"
        )
    ],
)
