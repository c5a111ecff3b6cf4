"""What the grammar's elements make of a limit: `limit 5 offset 10 by Amount desc per Shop`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from attrs import evolve

from streamlog.syntax.ast import Const, Limit, Order, Term, Type
from streamlog.syntax.build import expression
from streamlog.syntax.operands import Chain, Operand, simple
from streamlog.syntax.tokens import Tokens


def term(tokens: Tokens, start: int, chain: Chain) -> Term:
    return expression(tokens, chain)


def order(tokens: Tokens, start: int, chain: Chain) -> Order:
    """A term, and perhaps the index of `asc` or `desc`."""
    way = chain[-1] if isinstance(chain[-1], int) else None
    parts = chain if way is None else chain[:-1]
    last = parts[-1]
    assert isinstance(last, Operand)
    end = last.end if way is None else way + 1
    descending = way is not None and tokens[way] == "q"
    return Order(expression(tokens, parts), descending, span=tokens.span(start, end))


def limit(tokens: Tokens, start: int, found: Sequence[int | Order | Term]) -> Limit:
    numbers = [item for item in found if isinstance(item, int)]
    by = tuple(item for item in found if isinstance(item, Order))
    per = tuple(item for item in found if not isinstance(item, int | Order))
    count, offset = (*map(partial(_natural, tokens), numbers), 0)[:2]
    if not count:
        raise tokens.refuse("SL0104", "a limit of 0 leaves nothing", numbers[0], numbers[0] + 1)
    span = tokens.span(start, start + 1)
    return Limit(count, by, per, offset, span=evolve(span, end=(per or by)[-1].span.end))


def _natural(tokens: Tokens, at: int) -> int:
    number = simple(tokens, at, at, 1)
    if isinstance(number, Const) and number.type is Type.INT:
        assert isinstance(number.value, int)
        return number.value
    raise tokens.refuse("SL0104", "a limit is a whole number", at, at + 1)
