"""The syntax tree: frozen nodes with a span, compared without it.

`parse` makes exactly these nodes and `pretty` prints them; `rewrite.desugar` returns the same
kinds of node in a simpler shape (see there), so every later pass works on one tree.
"""

from __future__ import annotations

import enum
import math
from typing import Any, TypeAlias

from attrs import field, frozen
from attrs.validators import deep_iterable, instance_of

from streamlog.diagnostics import Span
from streamlog.syntax.aggregates import AGGREGATES, Aggregate
from streamlog.syntax.data_path import DataPath
from streamlog.syntax.nothing import NONE, Nothing
from streamlog.syntax.time_form import TimeForm

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
# Timestamps of logical time, so that offsets can be added to them within 64 bits.
FIRST_INSTANT, LAST_INSTANT = -(2**62), 2**62
LOGICAL_TIME = f"logical time goes from {FIRST_INSTANT} to {LAST_INSTANT}"


class Type(enum.Enum):
    """The types of the language. `time` and `duration` are int64 microseconds."""

    INT = "int"
    FLOAT = "float"
    STRING = "string"
    BOOL = "bool"
    TIME = "time"
    DURATION = "duration"

    def __str__(self) -> str:
        return self.value


_PYTHON_TYPES: dict[Type, type] = {
    Type.INT: int,
    Type.FLOAT: float,
    Type.STRING: str,
    Type.BOOL: bool,
    Type.TIME: int,
    Type.DURATION: int,
}


def _span() -> Any:
    """A node's place: never part of what the node means, so never compared."""
    return field(eq=False, repr=False, kw_only=True)


def _number() -> Any:
    """Which one it is of a program (`rewrite.number`); 0: not one of a program yet."""
    return field(default=0, eq=False, repr=False, kw_only=True)


def _tuple_of(*types: type) -> Any:
    return field(validator=deep_iterable(instance_of(types), instance_of(tuple)))


# ---------------------------------------------------------------------------------- terms


@frozen
class Var:
    """A variable. `_` stays `_` here; desugaring calls each one `_#1`, `_#2`, …"""

    name: str
    span: Span = _span()

    @property
    def is_anonymous(self) -> bool:
        return self.name == "_" or self.name.startswith("_#")

    @property
    def is_from_core(self) -> bool:
        """Whether `rewrite.close` brought it in: callers do not know of it."""
        return self.name.startswith("_#c")

    @property
    def is_written(self) -> bool:
        """Whether someone wrote it. Desugaring calls an expression's variable `_#e1`."""
        return not self.is_from_core and not self.name.startswith("_#e")


Value: TypeAlias = int | float | str | bool | Nothing


@frozen
class Const:
    """A literal. Times and durations hold microseconds; `none` has no type."""

    value: Value
    type: Type | None
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if (self.type is None) != (self.value is NONE):
            raise TypeError("`none` alone has no type")
        if self.type is None:
            return
        if type(self.value) is not _PYTHON_TYPES[self.type]:
            raise TypeError(f"{self.value!r} is not a valid {self.type}")
        if isinstance(self.value, float) and not math.isfinite(self.value):
            raise ValueError(f"{self.value!r} is not a finite number")
        if type(self.value) is int and not INT64_MIN <= self.value <= INT64_MAX:
            raise ValueError(f"{self.value!r} is not a 64-bit integer")

    def __eq__(self, other: object) -> bool:
        # 1, 1.0 and true are equal in Python and three different constants here.
        if not isinstance(other, Const):
            return NotImplemented
        return self.type is other.type and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.type, self.value))


@frozen
class Neg:
    """`-X`. A minus before a number is part of the number."""

    operand: Term
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if isinstance(self.operand, Const) and type(self.operand.value) in (int, float):
            raise ValueError("a negated number is a number")


@frozen
class BinOp:
    """`left op right` with op one of `+ - * / // % ++`; in `if`, a comparison too."""

    op: str
    left: Term
    right: Term
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if self.op not in PRECEDENCE and self.op not in COMPARISONS:
            raise ValueError(f"unknown operator {self.op}")


@frozen
class Call:
    """A built-in function applied to terms, as in `max(T1, T2)` or `floor(T, 1h)`."""

    name: str
    args: tuple[Term, ...]
    span: Span = _span()


@frozen
class Agg:
    """An aggregate in a rule head: `sum(C)`, `min<D>`, `count()`, `arg_max(X, C)`."""

    func: str
    arg: Term | None
    by: Term | None = None  # the second argument
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if self.func not in AGGREGATES:
            raise ValueError(f"unknown aggregate {self.func}")
        if self.arg is None and self.func != "count":
            raise ValueError(f"{self.func} needs something to aggregate")
        if (self.by is not None) != (self.kind.takes == 2):
            raise ValueError(f"{self.func} takes {self.kind.takes}")

    @property
    def args(self) -> tuple[Term, ...]:
        return tuple(term for term in (self.arg, self.by) if term is not None)

    @property
    def kind(self) -> Aggregate:
        return AGGREGATES[self.func]


Term: TypeAlias = Var | Const | Neg | BinOp | Call | Agg

# Binary operators by how tightly they bind; all associate to the left.
PRECEDENCE = {"++": 1, "+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2}
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")

# ----------------------------------------------------------------------------------- goals


@frozen
class Atom:
    """A predicate applied to terms: a goal, a head or a fact."""

    pred: str
    args: tuple[Term, ...]
    span: Span = _span()
    number: int = _number()

    @property
    def arity(self) -> int:
        return len(self.args)

    @property
    def constants(self) -> tuple[Value, ...]:
        """The values of those arguments that are constants."""
        return tuple(arg.value for arg in self.args if isinstance(arg, Const))


@frozen
class Comparison:
    op: str
    left: Term
    right: Term
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if self.op not in COMPARISONS:
            raise ValueError(f"unknown comparison {self.op}")


@frozen
class Not:
    """`not goal` or `not (goal, goal, …)`: no assignment of the local variables satisfies it."""

    body: Body
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if not self.body:
            raise ValueError("a negation of nothing")


@frozen
class Choice:
    """`(body ; body ; …)`."""

    branches: tuple[Body, ...]
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if len(self.branches) < 2 or not all(self.branches):
            raise ValueError("a choice has at least two branches, none of them empty")


Literal: TypeAlias = Atom | Comparison | Not | Choice
Body: TypeAlias = tuple[Literal, ...]

# ------------------------------------------------------------------------------ statements


@frozen
class Rule:
    head: Atom
    body: Body
    span: Span = _span()
    number: int = _number()
    is_auxiliary: bool = False  # made from a part of a written rule: nobody asks for its rows

    def __attrs_post_init__(self) -> None:
        if not self.body:
            raise ValueError("a rule without a body is a fact")


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
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if self.optional and self.type is None:
            raise ValueError("a column without a type is not optional")
        if self.form is not None and self.type is not Type.TIME:
            raise ValueError("only a time has a form")
        if self.path == DataPath((self.name,)):
            raise ValueError("a column that has its own name in data has no path")
        if (self.low is None) != (self.high is None) or (self.low and self.type is None):
            raise ValueError("a range has two ends and a type")


@frozen
class Option:
    """`slack 10s`, `from "a.csv"` and the like."""

    name: str
    value: Const
    span: Span = _span()


@frozen
class Stream:
    name: str
    columns: tuple[Column, ...] = _tuple_of(Column)
    options: tuple[Option, ...] = _tuple_of(Option)
    where: Body = ()  # between columns, which stand there as words or variables
    span: Span = _span()


@frozen
class Table:
    name: str
    columns: tuple[Column, ...] = _tuple_of(Column)
    options: tuple[Option, ...] = _tuple_of(Option)
    where: Body = ()
    span: Span = _span()


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
    path: str
    span: Span = _span()


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
    """Nothing earlier than `time` will come any more."""

    time: Term
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


Statement: TypeAlias = Rule | Fact | Query | Stream | Table | Output | Use | Test


@frozen
class Module:
    """One file."""

    statements: tuple[Statement, ...]
    span: Span = _span()


def branches(body: Body) -> tuple[Body, ...]:
    """The alternatives of a desugared body: conjunctions without `Choice`."""
    match body:
        case (Choice(alternatives),):
            return alternatives
        case _:
            return (body,)
