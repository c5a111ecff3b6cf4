"""Terms: what stands in the arguments of predicates and in comparisons."""

from __future__ import annotations

import enum
import math
from typing import Any, TypeAlias

from attrs import field, frozen

from streamlog.diagnostics import Span
from streamlog.syntax.aggregates import AGGREGATES, Aggregate
from streamlog.syntax.nothing import NONE, Nothing

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


def place() -> Any:
    """A node's place: never part of what the node means, so never compared."""
    return field(eq=False, repr=False, kw_only=True)


@frozen
class Var:
    """A variable. `_` stays `_` here; desugaring calls each one `_#1`, `_#2`, …"""

    name: str
    span: Span = place()

    @property
    def is_anonymous(self) -> bool:
        return self.name == "_" or self.name.startswith("_#")

    @property
    def is_from_core(self) -> bool:
        """Whether `rewrite.close` brought it in: callers do not know of it."""
        return self.name.startswith("_#c")

    @property
    def is_shared(self) -> bool:
        """Whether it stands for a `_` of a goal that has become several."""
        return self.name.startswith("_#a")

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
    span: Span = place()

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
    span: Span = place()

    def __attrs_post_init__(self) -> None:
        if isinstance(self.operand, Const) and type(self.operand.value) in (int, float):
            raise ValueError("a negated number is a number")


@frozen
class BinOp:
    """`left op right` with op one of `+ - * / // % ++`; in `if`, a comparison too."""

    op: str
    left: Term
    right: Term
    span: Span = place()

    def __attrs_post_init__(self) -> None:
        if self.op not in PRECEDENCE and self.op not in COMPARISONS:
            raise ValueError(f"unknown operator {self.op}")


@frozen
class Call:
    """A built-in function applied to terms, as in `max(T1, T2)` or `floor(T, 1h)`."""

    name: str
    args: tuple[Term, ...]
    span: Span = place()


@frozen
class Agg:
    """An aggregate in a rule head: `sum(C)`, `min<D>`, `count()`, `arg_max(X, C)`."""

    func: str
    arg: Term | None
    by: Term | None = None  # the second argument
    span: Span = place()

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
