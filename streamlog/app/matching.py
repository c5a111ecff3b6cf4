"""`-k EXPR`: which tests are meant."""

from __future__ import annotations

import re
from collections.abc import Callable

Matches = Callable[[str], bool]

_TOKEN = re.compile(r"""\s*(?:([()])|"([^"]*)"|'([^']*)'|([^\s()"']+))""")


class ExpressionError(Exception):
    """An expression that cannot be read."""


def matcher(expression: str) -> Matches:
    """Words and quoted phrases, joined by `and`, `or`, `not` and parentheses, each of them to be
    found in the name of a test or of its file, in any case."""
    parser = _Parser(_tokens(expression))
    matches = parser.either()
    if parser.rest:
        raise ExpressionError(f"{parser.rest[0][1]!r} is not expected there")
    return lambda name: matches(name.casefold())


def _tokens(expression: str) -> list[tuple[bool, str]]:
    """Each with whether it may be an operator."""
    found, at, text = [], 0, expression.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError("a quote is not closed")
        at = match.end()
        sign, double, single, word = match.groups()
        quoted = double if double is not None else single
        found.append((quoted is None, quoted if quoted is not None else sign or word))
    return found


class _Parser:
    def __init__(self, rest: list[tuple[bool, str]]) -> None:
        self.rest = rest

    def either(self) -> Matches:
        branches = [self._both()]
        while self._take("or"):
            branches.append(self._both())
        return lambda name: any(b(name) for b in branches)

    def _both(self) -> Matches:
        parts = [self._one()]
        while self._take("and"):
            parts.append(self._one())
        return lambda name: all(p(name) for p in parts)

    def _one(self) -> Matches:
        if self._take("not"):
            negated = self._one()
            return lambda name: not negated(name)
        if self._take("("):
            inner = self.either()
            if not self._take(")"):
                raise ExpressionError("a parenthesis is not closed")
            return inner
        if not self.rest or self.rest[0] in [(True, w) for w in ("and", "or", ")")]:
            raise ExpressionError("a word is missing")
        word = self.rest.pop(0)[1].casefold()
        return lambda name: word in name

    def _take(self, sign: str) -> bool:
        if self.rest and self.rest[0] == (True, sign):
            self.rest.pop(0)
            return True
        return False
