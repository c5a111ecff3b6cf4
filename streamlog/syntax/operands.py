"""What terms and goals are made of: literals, names and parentheses, with their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from streamlog.diagnostics import Span, finding
from streamlog.syntax import literals
from streamlog.syntax.ast import Call, Const, Literal, Neg, Term, Type, Var
from streamlog.syntax.nothing import NONE, Nothing
from streamlog.syntax.scan import BOOL, NUMBER, QUALIFIED, TEXT, TIME, VARIABLE
from streamlog.syntax.tokens import Refused, Tokens

MAX_LEVELS = 200


class Goal(NamedTuple):
    """A goal that may still turn out to be a term in parentheses."""

    start: int
    end: int
    negations: int
    left: Operand | Term
    op: str = ""
    right: Term | None = None
    made: Literal | None = None  # a goal and nothing else: it says something of time


class Interval(NamedTuple):
    """`[ term, term )`, behind `over` or a relation between intervals."""

    first: Term
    second: Term
    opens: str = "["
    closes: str = "]"


class Group(NamedTuple):
    """`( … )`, with the minuses before it."""

    branches: list[list[Goal]]
    minuses: int


class Operand(NamedTuple):
    """The tokens from `start` to `end`: `negations` times `not`, then a value."""

    start: int
    end: int
    negations: int
    value: Term | Group | Interval


Chain: TypeAlias = Sequence["Operand | int"]  # operand, index of an infix, operand, …

# ----------------------------------------------------------------------------------- operands


def leaf(tokens: Tokens, start: int, end: int) -> Operand:
    """`n*-*x` with x a single token."""
    at = end - 1
    if at == start:
        return Operand(start, end, 0, simple(tokens, at, at, 1))
    negations, first = prefix(tokens, start)
    minuses = at - first
    kind = tokens[at]
    if kind == NUMBER:
        value = simple(tokens, first, at, -1 if minuses % 2 else 1)
    else:
        value = negative(tokens, simple(tokens, at, at, 1), first, at, end)
    return Operand(start, end, negations, value)


def index_of(item: Operand | int) -> int:
    assert isinstance(item, int)
    return item


def simple(tokens: Tokens, start: int, at: int, sign: int) -> Term:
    kind = tokens[at]
    span = tokens.span(start, at + 1)
    word = tokens.text(at)
    if kind == VARIABLE:
        return Var(word, span=span)
    if kind == NUMBER:
        return literals.number(word, sign, span)
    if kind == TEXT:
        return literals.text(word, span)
    if kind == TIME:
        return literals.timestamp(word, span)
    if kind == QUALIFIED:  # a goal without arguments
        return Call(word, (), span=span)
    if kind == BOOL:
        return Const(word == "true", Type.BOOL, span=span)
    if word == "none":
        return Const(NONE, None, span=span)
    return Const(word, Type.STRING, span=span)


def negative(tokens: Tokens, value: Term, first: int, name: int, end: int) -> Term:
    """`value` with the minuses from `first` up to `name`; a number swallows them."""
    if name - first > MAX_LEVELS:
        raise too_deep(tokens.span(first, end))
    for at in range(name - 1, first - 1, -1):
        span = tokens.span(at, end)
        if isinstance(value, Const) and not isinstance(value.value, str | bool | Nothing):
            value = literals.negated(value.value, value.type or Type.INT, span)
        else:
            value = Neg(value, span=span)
    return value


# -------------------------------------------------------------------------------- expressions


def too_deep(span: Span) -> Refused:
    message = f"this has more than {MAX_LEVELS} levels"
    return Refused(finding("SL0103", message, span, help="split it into several goals"))


def start_of(item: Operand | int) -> int:
    return item if isinstance(item, int) else item.start


def end_of(item: Operand | int) -> int:
    return item + 1 if isinstance(item, int) else item.end


def prefix(tokens: Tokens, start: int) -> tuple[int, int]:
    """The number of `not`s, and the token behind them."""
    at = start
    while tokens[at] == "n":
        at += 1
    return at - start, at
