"""What a query must know besides the plan: which tables there are, and what is in them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import pairwise

from attrs import field, frozen
from sqlglot import TokenType, exp, tokenize

from streamlog.analysis.builtins import TICK, WHOLE
from streamlog.analysis.time.reach import BranchTime, Goal
from streamlog.analysis.types import TypeTable
from streamlog.plan.steps import Plan
from streamlog.syntax.ast import Atom, Rule, Type

DIALECTS = ("spark", "duckdb")
LOW, HIGH = "low", "high"  # the parameters of a slice


class Version(enum.Enum):
    """Which rows of a relation a scan reads."""

    TOTAL = "total"
    DELTA = "delta"


class Unsupported(Exception):  # noqa: N818
    """Why a rule has no query. It runs in the kernel instead."""


class Untyped(Unsupported):
    """The program leaves the types of some values open. The data may tell."""


def named(name: str) -> exp.Table:
    """A relation by its name; for `Context.table`."""
    return exp.table_(name)


@frozen(slots=False)
class Context:
    """A relation is a set; its columns are c0, c1, …; c0 is the timestamp, if it has one.

    `plan` and `times` are those of the program without open predicates. `column_types` says what
    the columns of a predicate really are, where that is more than inference knows; columns that
    are unknown in both may be joined with each other, and must be stored in such a way that equal
    values are equal. `sliced`: a query gives the head's rows from :low to before :high. `slides`: a
    frame that moves along with a row costs not much more than one that only grows.
    """

    plan: Plan
    types: TypeTable
    times: tuple[BranchTime, ...]
    table: Callable[[str, Version], exp.Table] = field(default=lambda name, _: named(name))
    column_types: Mapping[str, tuple[Type | None, ...]] = field(factory=dict)
    sliced: bool = True
    slides: bool = False

    @cached_property
    def goals(self) -> Mapping[int, Goal]:
        """By number, where a goal lies in time."""
        return {g.atom.number: g for t in self.times for g in t.goals}

    @cached_property
    def _timed(self) -> frozenset[int]:
        return frozenset(t.rule.number for t in self.times)

    def has_time(self, rule: Rule) -> bool:
        return rule.number in self._timed

    def column(self, atom: Atom, position: int) -> Type | None:
        """The type of a goal's column; any whole number will do for another."""
        return self.column_of(atom.pred, position)

    def column_of(self, pred: str, position: int) -> Type | None:
        given = self.column_types.get(pred, ())
        if position < len(given) and given[position] is not None:
            return given[position]
        inferred = self.types.column(pred, position)
        if inferred is None and (
            pred == TICK or self.types.columns.get((pred, position), frozenset(Type)) <= WHOLE
        ):
            return Type.INT
        return inferred


def parameter(name: str, offset: int = 0) -> exp.Expr:
    """`:low`, or `:low + offset`, in 64 bits whatever the engine takes the argument for."""
    placeholder = exp.Placeholder(this=name)
    if offset == 0:
        return placeholder
    return shifted(exp.cast(placeholder, "BIGINT", copy=False), offset)


def shifted(value: exp.Expr, offset: int) -> exp.Expr:
    number = exp.Literal.number(abs(offset))
    kind = exp.Add if offset > 0 else exp.Sub
    return kind(this=value, expression=number) if offset else value


def with_slice(text: str, low: int, high: int) -> str:
    """Spark's text of a query with the ends of its slice in place of the parameters: extensions of
    Spark such as Delta Lake's replace its parser, and may know no parameters."""
    ends = {LOW: low, HIGH: high}
    parts, done = [], 0
    tokens = tokenize(text, read="spark")
    for colon, name in pairwise(tokens):
        if colon.token_type is TokenType.COLON and name.text in ends:
            parts += [text[done : colon.start], f"CAST('{ends[name.text]}' AS BIGINT)"]
            done = name.end + 1
    return "".join((*parts, text[done:]))


def render(query: exp.Expr, dialect: str, *, pretty: bool = False) -> str:
    """The query's text. DuckDB's parameters are `$low`, Spark's `:low`."""
    query = query.copy()
    if dialect == "duckdb":
        for call in query.find_all(exp.Anonymous):
            if call.name == "raise_error":
                call.set("this", "error")
    return query.sql(dialect, pretty=pretty, copy=False)
