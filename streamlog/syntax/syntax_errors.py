"""A syntax error in human words: what was expected, what was found, and the likely slip."""

from __future__ import annotations

import re

from streamlog.diagnostics import Diagnostic, Span, did_you_mean, finding
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.literals import UNIT_SLIPS, UNITS
from streamlog.syntax.scan import (
    ARROW,
    BOOL,
    NOT,
    NUMBER,
    QUALIFIED,
    QUERY,
    TEXT,
    TIME,
    VARIABLE,
    WORDS,
)
from streamlog.syntax.tokens import Tokens

_WRITE = {
    "==": "write `=`",
    ":=": "write `=`",
    "&&": "write `,` for and",
    "&": "write `,` for and",
    "and": "write `,` for and",
    "||": "write `;` for or",
    "|": "write `;` for or",
    "or": "write `;` for or",
    "=<": "write `<=`",
    "=>": "write `>=`",
    "<>": "write `!=`",
    "\\=": "write `!=`",
    "=\\=": "write `!=`",
    "\\+": "write `not`",
    "->": "a rule is written `head <- body.`",
    "if": "a rule is written `head <- body.`",
    "[": "there are no lists; a predicate with one fact for each element will do",
}
_CLOCK = re.compile(r"\d+:[\d:.]*\d(?:Z|[+-]\d{2}:?\d{2})?")
# What other languages have after a goal.
_AFTER_A_GOAL = {
    "order": "rank at the end of a body: `limit 5 by X desc`",
    "group": "an aggregate groups by the other arguments of the head",
    "limit": "the number of a limit is written out: `limit 5 by X desc`",
    "descending": "write `desc`",
    "ascending": "write `asc`, or nothing",
    "like": "write `contains(X, …)`, `starts_with(X, …)` or `matches(X, …)`",
}
# Closing things first: they are the likeliest to be missing.
_ORDER = ("`)`", "`>`", "`}`", "`{`", "`(`", "`,`", "`.`", "`<-`", "`:`", "`..`")
_DECLARATIONS = ("stream", "table", "output", "use", "export", "extend", "test")


def syntax_error(tokens: Tokens) -> Diagnostic:
    at = tokens.furthest
    expected = ["a statement"] if at == 0 else sorted(tokens.expected, key=_rank)
    wanted = " or ".join(filter(None, (", ".join(expected[:-1]), expected[-1])))
    if at < len(tokens):
        span, found = tokens.span(at, at + 1), f"`{_shortened(tokens.text(at))}`"
    else:
        last = tokens.span(at - 1, at)
        span, found = Span(last.source, last.end - 1, last.end), "the end of the file"
    related = []
    if "`)`" in expected and (at >= len(tokens) or tokens[at] in ".}"):
        opening = _unclosed(tokens, at)
        related = [(tokens.span(opening, opening + 1), "opened here")]
    message = f"expected {wanted}, found {found}"
    return finding("SL0101", message, span, related=related, help=_help(tokens, at, expected))


def _unclosed(tokens: Tokens, at: int) -> int:
    """The last parenthesis before a place that is open there."""
    depth = 0
    while depth <= 0:
        at -= 1
        depth += (tokens[at] == "(") - (tokens[at] == ")")
    return at


def starts_statement(tokens: Tokens, at: int) -> bool:
    """Whether the token looks like the start of the next statement, a `.` being forgotten."""
    if not 0 < at < len(tokens) or tokens[at] not in WORDS + QUERY:
        return False
    return _first_on_line(tokens, at) and _column(tokens, at) <= _column(tokens, 0)


def _rank(expected: str) -> tuple[int, str]:
    return (_ORDER.index(expected) if expected in _ORDER else len(_ORDER)), expected


def _shortened(text: str) -> str:
    return text if len(text) <= 30 else text[:29] + "…"


def _help(tokens: Tokens, at: int, expected: list[str]) -> tuple[str, ...]:
    dot_missing = "`.`" in expected
    if at >= len(tokens):
        comment = _comment_behind(tokens)
        if comment:
            return (f"`{comment}` begins a comment here, so the rest of the line is not read",)
        return ("a statement ends with `.`",) if dot_missing else ()
    kind, text = tokens[at], tokens.text(at)
    before = tokens[at - 1] if at else ""
    if text in _WRITE and (at > 0 or kind not in WORDS):
        return (_WRITE[text],)
    if text == "between" and at > 0 and len(tokens) > at + 1:
        value, low = tokens.text(at - 1), tokens.text(at + 1)
        has_high = tokens.text(min(at + 2, len(tokens) - 1)) == "and" and len(tokens) > at + 3
        high = tokens.text(at + 3) if has_high else "9"
        return (f"write `between({value}, {low}, {high})`, which has both ends in it",)
    if "an alias" in expected and kind == VARIABLE:
        return (f"an alias begins with a lower-case letter: `{text.lower()}`",)
    if before == TIME and kind == NUMBER and tokens[at + 1 : at + 2] == ":":
        clock = _CLOCK.match(tokens.scan.source.text, tokens.span(at, at + 1).start)
        if clock:
            return (f"a timestamp is written without a blank: `{tokens.text(at - 1)}T{clock[0]}`",)
    if dot_missing and (starts_statement(tokens, at) or (kind == "}" and before != ".")):
        return ("every statement ends with `.`: is one missing before this?",)
    if text == "in" or (text == "not" and _is(tokens, at + 1, "in")):
        return ("write `not (X in (a, b))`" if text == "not" else "write `X in (a, b)`",)
    if dot_missing and kind in WORDS and text in _AFTER_A_GOAL:
        return (_AFTER_A_GOAL[text],)
    if "`by`" in expected:
        return ("a limit says by what rows are ranked: `limit 5 by X desc`",)
    here = kind == VARIABLE and ("a predicate" in expected or tokens[at + 1 : at + 2] == "(")
    capital = at if here else at - 1
    if here or (capital >= 0 and tokens[capital : capital + 2] == f"{VARIABLE}("):
        name = tokens.text(capital)
        lower = name.lstrip("_")[:1].lower() + name.lstrip("_")[1:]
        return (
            (f"predicates begin with a lower-case letter: `{lower}`",)
            if lower[:1].isalpha()
            else ("predicates begin with a lower-case letter",)
        )
    if kind == ARROW and ARROW in tokens[:at]:
        return ("for less than a negative number write `< -`; a new rule needs a `.` before it",)
    if at == 1 and tokens[0] in WORDS and kind in WORDS + TEXT:
        guess = did_you_mean(tokens.text(0), _DECLARATIONS)
        if guess:
            return (f"did you mean `{guess}`?",)
    if before == NUMBER and (text in UNITS or text in UNIT_SLIPS):
        unit = UNIT_SLIPS.get(text, text)
        return (f"a duration is written without a space: `{tokens.text(at - 1)}{unit}`",)
    if tokens[:2] == "xz" and at == 2:
        return (f"nothing is expected of a whole predicate: `expect none {text}.`",)
    for near in range(max(0, at - 8), min(at + 2, len(tokens))):
        if tokens.text(near) in AGGREGATES and tokens[near + 1 : near + 2] == "<":
            return (f"inside an expression write `{tokens.text(near)}(…)`, with parentheses",)
    if kind in "<>=" and dot_missing and ARROW not in tokens[:at]:
        return ("a comparison is a goal: it belongs in the body of a rule",)
    if kind in "<>=" and "`)`" in expected:
        return ("a comparison cannot be an argument",)
    if kind in (NOT, BOOL) and text.isalpha():
        return (f'`{text}` is a reserved word; as a text write "{text}"',)
    near = tokens.rfind(QUALIFIED, 0 if tokens[0] == "o" else max(0, at - 2), at + 1)
    if near >= 0:
        name = tokens.text(near)
        return (
            f"`{name}` is one name: if the dot ends a statement, write a blank behind it",
            f'a text with a dot is written in quotes, "{name}"',
        )
    return _comment_help(tokens, at)


def _is(tokens: Tokens, at: int, text: str) -> bool:
    return at < len(tokens) and tokens.text(at) == text


def _comment_help(tokens: Tokens, at: int) -> tuple[str, ...]:
    for index in range(max(0, at - 8), at + 1):
        text = tokens.text(index)
        if text in ("%", "//") and not _line_break(tokens, index, at):
            return (
                f"`{text}` is an operator here; begin a comment on a separate line,"
                " or after `,` or `.`",
            )
    return ()


def _comment_behind(tokens: Tokens) -> str:
    """The `%` or `//` that hides the rest of the last token's line."""
    end = tokens.span(len(tokens) - 1, len(tokens)).end
    text = tokens.scan.source.text
    hidden = text[end : end + 200].split("\n")[0].strip()
    return next((mark for mark in ("%", "//") if hidden.startswith(mark) and "." in hidden), "")


def _first_on_line(tokens: Tokens, at: int) -> bool:
    return _line_break(tokens, at - 1, at)


def _line_break(tokens: Tokens, one: int, other: int) -> bool:
    text = tokens.scan.source.text
    return text.find("\n", tokens.span(one, one + 1).end, tokens.span(other, other + 1).start) >= 0


def _column(tokens: Tokens, at: int) -> int:
    span = tokens.span(at, at + 1)
    return span.start - (span.source.text.rfind("\n", 0, span.start) + 1)
