"""The syntax tree: frozen nodes with a span, compared without it.

`parse` makes exactly these nodes and `pretty` prints them; `rewrite.desugar` returns the same
kinds of node in a simpler shape (see there), so every later pass works on one tree.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from attrs import field, frozen
from attrs.validators import deep_iterable, instance_of

from streamlog.diagnostics import Span
from streamlog.syntax.bodies import (
    AT,
    EVERY,
    FROM,
    FROM_TO,
    OVER,
    PAIRS,
    Atom,
    Body,
    Choice,
    Comparison,
    Literal,
    Not,
    When,
    branches,
)
from streamlog.syntax.bodies import numbered as _number
from streamlog.syntax.data_path import DataPath
from streamlog.syntax.remarks import Annotation, Suppression
from streamlog.syntax.terms import (
    COMPARISONS,
    FIRST_INSTANT,
    INT64_MAX,
    INT64_MIN,
    LAST_INSTANT,
    LOGICAL_TIME,
    PRECEDENCE,
    Agg,
    BinOp,
    Call,
    Const,
    Neg,
    Term,
    Type,
    Value,
    Var,
)
from streamlog.syntax.terms import place as _span
from streamlog.syntax.time_form import TimeForm

# The names of `terms`, `bodies` and `remarks` too.
__all__ = [
    "AT",
    "COMPARISONS",
    "EVERY",
    "FIRST_INSTANT",
    "FROM",
    "FROM_TO",
    "INT64_MAX",
    "INT64_MIN",
    "LAST_INSTANT",
    "LOGICAL_TIME",
    "OVER",
    "PAIRS",
    "PRECEDENCE",
    "Agg",
    "Annotation",
    "Atom",
    "BinOp",
    "Body",
    "Call",
    "Choice",
    "Comparison",
    "Const",
    "Literal",
    "Neg",
    "Not",
    "Suppression",
    "Term",
    "Type",
    "Value",
    "Var",
    "When",
    "branches",
]


def _tuple_of(*types: type) -> Any:
    return field(validator=deep_iterable(instance_of(types), instance_of(tuple)))


# ------------------------------------------------------------------------------ statements


@frozen
class Order:
    """One of the terms by which a limit ranks."""

    term: Term
    descending: bool = False
    span: Span = _span()


@frozen
class Limit:
    """`limit 5 offset 10 by Amount desc, Name per Shop`: of the solutions of a body, those from
    the 11th to the 15th place at each timestamp of the head, for each shop."""

    count: int
    by: tuple[Order, ...]
    per: tuple[Term, ...] = ()
    offset: int = 0
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if not (self.by and 0 < self.count <= INT64_MAX and 0 <= self.offset <= INT64_MAX):
            raise ValueError("a limit ranks, and leaves something")


@frozen
class Rule:
    head: Atom
    body: Body
    limit: Limit | None = None
    span: Span = _span()
    number: int = _number()
    is_auxiliary: bool = False  # made from a part of a written rule: nobody asks for its rows
    wanted: Limit | None = None  # what whoever reads its rows leaves of them: others may be missing
    annotations: tuple[Annotation, ...] = field(default=(), eq=False, repr=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not self.body:
            raise ValueError("a rule without a body is a fact")

    @property
    def groups(self) -> bool:
        """Whether all solutions must be known before any gives a row: it aggregates or ranks."""
        return self.limit is not None or any(isinstance(a, Agg) for a in self.head.args)


@frozen
class Fact:
    atom: Atom
    span: Span = _span()

    @property
    def row(self) -> tuple[Value, ...]:
        return self.atom.constants


@frozen
class Query:
    """`?goal, goal.`"""

    body: Body
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if not self.body:
            raise ValueError("a query asks something")


@frozen
class Column:
    """`name: type? low..high`, all but the name optional; a time may have a form. `path`: where
    data have it, if not under its own name."""

    name: str
    type: Type | None = None
    low: Const | None = None
    high: Const | None = None
    form: TimeForm | None = None
    path: DataPath | None = None
    optional: bool = False  # a value may be missing
    ends: tuple[str, str] | None = None  # `valid: since..until`: two columns, one interval
    is_row: bool = False  # the number of the row in its file
    is_arrival: bool = False  # when the row arrived, by the engine's clock
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if self.is_row and (self.type is not Type.INT or self.optional or self.path):
            raise ValueError("the number of a row is an int, and not in the data")
        if self.ends and (self.type or self.optional or self.low or self.path or self.is_row):
            raise ValueError("an interval is two columns, and nothing else")
        if self.is_arrival and (
            self.type is not Type.TIME or self.optional or self.path or self.form or self.low
        ):
            raise ValueError("an arrival is a plain time")
        if self.optional and self.type is None:
            raise ValueError("a column without a type is not optional")
        if self.form is not None and self.type is not Type.TIME:
            raise ValueError("only a time has a form")
        if self.path == DataPath((self.name,)):
            raise ValueError("a column that has its own name in data has no path")
        if (self.low is None) != (self.high is None) or (self.low and self.type is None):
            raise ValueError("a range has two ends and a type")


ARRIVES_WITHIN = "arrives within"


@frozen
class Option:
    """`slack 10s`, `from "a.csv"` and the like."""

    name: str
    value: Const
    span: Span = _span()


@frozen
class Timeline:
    """A column on which a stream makes progress: `sys slack 5s`, after `progress`."""

    column: str
    options: tuple[Option, ...] = _tuple_of(Option)
    span: Span = _span()


@frozen
class Stream:
    name: str
    columns: tuple[Column, ...] = _tuple_of(Column)
    options: tuple[Option, ...] = _tuple_of(Option)
    where: Body = ()  # between columns, which stand there as words or variables
    progress: tuple[Timeline, ...] = ()  # empty: on its first column
    span: Span = _span()


@frozen
class Table:
    name: str
    columns: tuple[Column, ...] = _tuple_of(Column)
    options: tuple[Option, ...] = _tuple_of(Option)
    where: Body = ()
    span: Span = _span()


@frozen
class State:
    """What holds over intervals, by the events that begin and end it, or by other states.

    state burning(A) since fire_start(_, A) until fire_end(_, A) for at most 6h.
    state latest(S; I) on news(_, I, S).
    state danger(A) while burning(A), not evacuated(A).
    """

    head: Atom
    word: str
    body: Body
    until: Body = ()
    most: Const | None = None
    keys: int | None = None  # of how many arguments there is one combination of the others at most
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if self.word not in (SINCE, ON, WHILE) or not self.body:
            raise ValueError("a state begins in one of three ways")
        if self.word == WHILE and (self.until or self.most):
            raise ValueError("a state that holds while others do ends by itself")
        if (self.keys is not None) != (self.word == ON):
            raise ValueError("a state with a key is begun `on` an event")


SINCE, ON, WHILE = "since", "on", "while"


@frozen
class PredName:
    """A predicate's name on its own, as in `output p.`; perhaps with names for its columns."""

    name: str
    columns: tuple[str, ...] = ()
    span: Span = _span()


@frozen
class Output:
    preds: tuple[PredName, ...] = _tuple_of(PredName)
    span: Span = _span()


@frozen
class Use:
    """`use "lib/auth.slog".`, or with a name before that of each of its predicates, `as auth`."""

    path: str
    alias: str | None = None
    span: Span = _span()


@frozen
class Export:
    """`export failed.`: files that use this one under an alias may name these predicates."""

    preds: tuple[PredName, ...] = _tuple_of(PredName)
    span: Span = _span()


@frozen
class Extend:
    """`extend failed.`: rules of this file add to predicates that another file defines."""

    preds: tuple[PredName, ...] = _tuple_of(PredName)
    span: Span = _span()


@frozen
class Function:
    """`function risk(float, string): float from "risk.py".`"""

    name: str
    args: tuple[Type, ...]
    result: Type
    path: str
    span: Span = _span()
    file: str | None = field(default=None, eq=False, repr=False, kw_only=True)  # once it is found


# ------------------------------------------------------------------------------- the tests


@frozen
class Arrive:
    """A fact arrives: `p(…).`, or `arrive late p(…).`, or `reject p(…).` as `fate` says."""

    atom: Atom
    fate: str = "accepted"
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if self.fate not in ("accepted", "late", "rejected"):
            raise ValueError(f"unknown fate {self.fate}")


@frozen
class Given:
    """`given p from "file.csv".`"""

    pred: PredName
    path: str
    span: Span = _span()


@frozen
class Advance:
    """Nothing earlier than `time` will come any more: in no stream, or on one timeline."""

    time: Term
    timeline: str | None = None  # a stream, or `report.sys`
    span: Span = _span()


@frozen
class End:
    """Every stream has ended."""

    span: Span = _span()


@frozen
class Expect:
    """The exact set of facts of their predicates released so far."""

    atoms: tuple[Atom, ...] = _tuple_of(Atom)
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if not self.atoms:
            raise ValueError("expect something, or `expect none p`")


@frozen
class ExpectNone:
    pred: PredName
    span: Span = _span()


@frozen
class ExpectFrom:
    pred: PredName
    path: str
    span: Span = _span()


@frozen
class Rejected:
    """The program itself must be refused with this code."""

    code: str
    span: Span = _span()


Step: TypeAlias = Arrive | Given | Advance | End | Expect | ExpectNone | ExpectFrom | Rejected


@frozen
class Test:
    __test__ = False  # not one of pytest's

    name: str
    steps: tuple[Step, ...]
    span: Span = _span()


Declaration: TypeAlias = Stream | Table | State | Output | Use | Export | Extend | Function
Statement: TypeAlias = Annotation | Rule | Fact | Query | Declaration | Test


@frozen
class Module:
    """One file."""

    statements: tuple[Statement, ...]
    suppressions: tuple[Suppression, ...] = field(default=(), eq=False, repr=False, kw_only=True)
    span: Span = _span()
