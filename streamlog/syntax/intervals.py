"""What the grammar's elements make of states, of columns that say from when to when a row holds,
and of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve, frozen

from streamlog.diagnostics import finding
from streamlog.syntax.ast import (
    FROM,
    FROM_TO,
    ON,
    SINCE,
    WHILE,
    Atom,
    Body,
    Const,
    State,
    Type,
    When,
)
from streamlog.syntax.build import Goals, expression
from streamlog.syntax.operands import Chain, Interval, Operand
from streamlog.syntax.scan import STATE_WORDS
from streamlog.syntax.tokens import Refused, Tokens


@frozen
class EndColumn:
    """`until` in `valid: since..until`."""

    at: int


def end_column(tokens: Tokens, start: int, end: int) -> EndColumn:
    return EndColumn(start)


def window(tokens: Tokens, start: int, found: list[Any]) -> Operand:
    """The ends of an interval, each a chain of terms, and its brackets."""
    opening, close = found[0], found[-1]
    comma = next(
        i
        for i in range(2, len(found))
        if not isinstance(found[i - 1], int) and not isinstance(found[i], int)
    )
    first, second = expression(tokens, found[1:comma]), expression(tokens, found[comma:-1])
    interval = Interval(first, second, tokens.text(opening), tokens.text(close))
    return Operand(start, close + 1, 0, interval)


def expected(tokens: Tokens, start: int, found: list[Any]) -> Atom:
    """The atom that a test expects, and perhaps `from S to E` behind it."""
    atom, *rest = found
    assert isinstance(atom, Atom)
    if not rest:
        return atom
    words = [i for i, item in enumerate(rest) if isinstance(item, int) and tokens[item] == "I"]
    texts = " ".join(tokens.text(rest[i]) for i in words)
    if texts not in (FROM, FROM_TO):
        help = "a test expects `p(…) from S` or `p(…) from S to E`"
        raise tokens.refuse(
            "SL0101", f"`{texts}` says nothing here", rest[0], rest[0] + 1, help=help
        )
    ends = [*words[1:], len(rest)]
    times = tuple(
        expression(tokens, rest[at + 1 : end]) for at, end in zip(words, ends, strict=True)
    )
    last = rest[-1]
    assert isinstance(last, Operand)
    when = When(texts, times, span=tokens.span(rest[0], last.end))
    return evolve(atom, when=when, span=tokens.span(start, last.end))


def state(tokens: Tokens, start: int, found: list[Any]) -> State:
    name, *rest = found
    span = tokens.span(start, rest[-1] + 1)
    goals = [item for item in rest if isinstance(item, Goals)]
    at = next(i for i, item in enumerate(rest) if isinstance(item, Goals)) - 1
    word = tokens.text(rest[at])
    args, keys = _arguments(tokens, rest[1 : max(at - 1, 1)])
    head_end = (rest[at - 1] if at else name) + 1
    head = Atom(tokens.text(name), args, span=tokens.span(name, head_end))
    until: Body = goals[1].body(tokens) if len(goals) > 1 else ()
    most = None
    if isinstance(rest[-2], Operand):
        most = _most(tokens, rest[-4:-1])
    _check(tokens, rest[at], word, keys, bool(until), most)
    return State(head, word, goals[0].body(tokens), until, most, keys, span=span)


def _arguments(tokens: Tokens, chain: Chain) -> tuple[tuple[Any, ...], int | None]:
    """The arguments, and how many of them stand before the semicolon."""
    args: list[Any] = []
    keys: int | None = None
    begin = 0
    for i in range(1, len(chain) + 1, 2):
        separator = chain[i] if i < len(chain) else None
        assert separator is None or isinstance(separator, int)
        if separator is None or tokens[separator] in ",;":
            args.append(expression(tokens, chain[begin:i]))
            begin = i + 1
        if separator is not None and tokens[separator] == ";":
            if keys is not None:
                message = "a second semicolon: one divides the key from what is carried"
                raise tokens.refuse("SL0101", message, separator, separator + 1)
            keys = len(args)
    return tuple(args), keys


def _most(tokens: Tokens, found: Sequence[Any]) -> Const:
    at, most, operand = found
    words = f"{tokens.text(at)} {tokens.text(most)}"
    value = operand.value
    if words != "at most":
        help = "write `for at most 6h`"
        raise tokens.refuse("SL0101", f"unknown words `for {words}`", at, most + 1, help=help)
    if not isinstance(value, Const) or value.type not in (Type.DURATION, Type.INT):
        message = "`for at most` takes a duration, or an integer in logical time"
        raise tokens.refuse("SL0105", message, operand.start, operand.end)
    assert isinstance(value.value, int)
    if value.value <= 0:
        raise tokens.refuse("SL0105", "a state that never holds", operand.start, operand.end)
    return value


def _check(
    tokens: Tokens, at: int, word: str, keys: int | None, ends: bool, most: Const | None
) -> None:
    span = tokens.span(at, at + 1)
    if word == WHILE and (ends or most):
        message = "a state that holds `while` others do ends when they do"
        help = "say what else must hold, as in `while a(X), not b(X)`"
    elif word == WHILE and keys is not None:
        message, help = "a state that holds `while` others do has no key", "write `,` for `;`"
    elif word == SINCE and keys is not None:
        message = "a state with a key begins `on` an event, which replaces the one before"
        help = "write `on` for `since`"
    elif word == ON and keys is None:
        message = "`on` needs a key: of which arguments one event replaces another"
        help = (
            "divide the key from the rest, as in `state latest(Stock; Id) on …`, or write `since`"
        )
    else:
        return
    raise Refused(finding("SL0105", message, span, help=(help,)))


assert {SINCE, ON, WHILE} < set(STATE_WORDS)
