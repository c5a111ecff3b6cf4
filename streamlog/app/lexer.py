"""Programs in colour: the Pygments lexer of `.slog`, for the line editor, for pages and for others.

The scanner finds the tokens. What a word is follows from its neighbours and from the parentheses
around it: `first` is a predicate in `first(T, X) <- …`, an aggregate in `p(T, first(X)) <- …` and a
text in `p(T, first).` The editors' grammar below `docs/editor` says the same in regular
expressions, and a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum, auto

from attrs import frozen
from pygments.lexer import Lexer
from pygments.token import (
    Comment,
    Error,
    Keyword,
    Literal,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
    _TokenType,
)

from streamlog.analysis.builtins import FUNCTIONS, GOALS
from streamlog.diagnostics import Source
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import Type
from streamlog.syntax.data_paths import AS, PLACED
from streamlog.syntax.declare import ARRIVAL, PROGRESS, ROW, STREAM_OPTIONS, WHERE
from streamlog.syntax.literals import UNITS
from streamlog.syntax.scan import (
    ANNOTATION,
    ARROW,
    BOOL,
    COMPARISON,
    IN,
    INTERVAL_WORD,
    NOT,
    NUMBER,
    QUALIFIED,
    QUERY,
    RANGE,
    STATE,
    STATE_WORDS,
    STRANGE,
    TEXT,
    TIME,
    TIME_WORD,
    VARIABLE,
    WORDS,
    Scan,
    scan,
)
from streamlog.syntax.time_form import OF_TWO, TIME_UNITS

Typed = tuple[int, _TokenType, str]  # where, what, and the text itself

# On a terminal, in prompt_toolkit's words for styles. A type looks like its parents otherwise.
COLOURS: dict[_TokenType, str] = {
    Comment: "ansibrightblack italic",
    Error: "ansired",
    Keyword: "ansiblue bold",
    Keyword.Type: "ansigreen nobold",
    Literal: "ansiyellow",
    Name.Builtin: "ansimagenta",
    Name.Constant: "ansiyellow",
    Name.Decorator: "ansimagenta",
    Name.Variable: "ansicyan",
    Operator.Word: "ansiblue bold",
    String.Escape: "ansiyellow bold",
}


class SlogLexer(Lexer):
    """Rules over timestamped event streams."""

    name = "streamlog"
    aliases = ("slog", "streamlog")
    filenames = ("*.slog",)
    mimetypes = ("text/x-streamlog",)

    def get_tokens_unprocessed(self, text: str) -> Iterator[Typed]:
        scanned = scan(Source("", text))
        at = 0
        for start, end, type_ in sorted((*_comments(scanned), *_tokens(scanned))):
            yield from _between(text, at, start)
            if text[start] in "\"'" and type_ is not Error:
                yield from _text(text[start:end], start)
            else:
                yield start, type_, text[start:end]
            at = end
        yield from _between(text, at, len(text))


def _between(text: str, start: int, end: int) -> Iterator[Typed]:
    """Blanks; behind the last token perhaps a comment that never ends."""
    comment = text.find("/*", start, end)
    blank = end if comment < 0 else comment
    if start < blank:
        yield start, Whitespace, text[start:blank]
    if blank < end:
        yield blank, Comment.Multiline, text[blank:end]


def _text(token: str, start: int) -> Iterator[Typed]:
    """A text, and the escapes in it."""
    type_ = String.Double if token[0] == '"' else String.Single
    at = 0
    for escape in _ESCAPE.finditer(token):
        if at < escape.start():
            yield start + at, type_, token[at : escape.start()]
        yield start + escape.start(), String.Escape, escape[0]
        at = escape.end()
    yield start + at, type_, token[at:]


_ESCAPE = re.compile(r"""\\(?:u[0-9a-fA-F]{4}|[nt\\"'])""")


def _comments(scanned: Scan) -> Iterator[tuple[int, int, _TokenType]]:
    for comment in scanned.comments:
        several = comment.text.startswith("/*")
        type_ = Comment.Multiline if several else Comment.Single
        yield comment.span.start, comment.span.end, type_


def _tokens(scanned: Scan) -> Iterator[tuple[int, int, _TokenType]]:
    types = (t for parts in _parts(scanned.kinds, scanned.statements) for t in parts.types(scanned))
    return zip(scanned.starts, scanned.ends, types, strict=True)


# ------------------------------------------------------------------- statements and their parts


class _Place(Enum):
    """What the words in some place are."""

    GOALS = auto()  # predicates, or texts beside an operator
    TERMS = auto()  # functions and texts
    STEP = auto()  # as goals, perhaps from a file
    DECLARATION = auto()  # the predicate and options
    OUTPUT = auto()  # predicates
    USE = auto()  # an alias
    FUNCTION = auto()  # its name, types and file
    STATE = auto()  # the name of a state
    HOLDS = auto()  # its arguments: columns, or functions
    COLUMNS = auto()
    WHERE = auto()  # columns again, in the clause behind the options
    LIMIT = auto()  # `limit 5 by Amount desc`
    FORM = auto()  # of a column's times: `time(ms)`
    CODE = auto()  # as in `rejected SL0401`
    ANNOTATION = auto()  # its values


_Opening = tuple[str, _TokenType, _Place]

# Where the first words of a statement or a step are not names: their kinds, what they are, and
# what follows them.
_WORD = f"[{WORDS}{QUALIFIED}]"
_NO_NAME = rf"(?![(.{ARROW}])"
_STATEMENTS: tuple[_Opening, ...] = (
    (ANNOTATION, Name.Decorator, _Place.ANNOTATION),
    (rf"d{_NO_NAME}", Keyword.Declaration, _Place.DECLARATION),
    (rf"o{_NO_NAME}", Keyword.Declaration, _Place.OUTPUT),
    (rf"t{_NO_NAME}", Keyword.Declaration, _Place.GOALS),
    (rf"{STATE}{_NO_NAME}", Keyword.Declaration, _Place.STATE),
    (rf"k{_NO_NAME}", Keyword.Declaration, _Place.FUNCTION),
    (rf"u{_NO_NAME}", Keyword.Namespace, _Place.USE),
)
_STEPS: tuple[_Opening, ...] = (
    (rf"(?:al|r|g|xz)(?={_WORD})", Keyword, _Place.STEP),
    (r"x(?![(.])", Keyword, _Place.STEP),
    (r"v(?![(.])", Keyword, _Place.TERMS),
    (r"e(?=\.)", Keyword, _Place.GOALS),
    (r"j(?![(.])", Keyword, _Place.CODE),
)


@frozen
class _Part:
    """A statement; of a test its header, a step, or its end."""

    start: int
    end: int
    openings: tuple[_Opening, ...] = _STATEMENTS

    def types(self, scanned: Scan) -> Iterator[_TokenType]:
        start, place = self.start, _Place.GOALS
        for pattern, type_, follows in self.openings:
            opening = re.compile(pattern).match(scanned.kinds, start, self.end)
            if opening:
                yield from [type_] * len(opening[0])
                start, place = opening.end(), follows
                break
        yield from _types(scanned, start, self.end, place)


def _parts(kinds: str, statements: Iterable[tuple[int, int]]) -> Iterator[_Part]:
    for start, end in statements:
        opening = kinds.find("{", start, end)
        if opening < 0:
            yield _Part(start, end)
            continue
        yield _Part(start, opening + 1)
        at = opening + 1
        while at < end:
            stop = kinds.find(".", at, end) + 1 or end
            yield _Part(at, stop, _STEPS)
            at = stop


# --------------------------------------------------------------------------------- tokens

_OPERATORS = {*"<>=+-*", COMPARISON, IN}
_KINDS: dict[str, _TokenType] = {
    **dict.fromkeys({*"<>=+-*", COMPARISON, RANGE}, Operator),
    **dict.fromkeys("(),;.:{}[]", Punctuation),
    # They say what a statement is, as `stream` and `output` do.
    ARROW: Keyword,
    QUERY: Keyword,
    **dict.fromkeys((NOT, IN, TIME_WORD, INTERVAL_WORD), Operator.Word),
    BOOL: Keyword.Constant,
    VARIABLE: Name.Variable,
    TEXT: String,
    STRANGE: Error,
}
_NUMBERS: tuple[tuple[re.Pattern[str], _TokenType], ...] = (
    (re.compile(r"[0-9]+"), Number.Integer),
    (re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"), Number.Float),
    (re.compile(rf"[0-9]+(?:\.[0-9]+)?(?:{'|'.join(UNITS)})"), Number),
    (re.compile(r"@[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+(?:Z|[+-][0-9:]+)?)?"), Literal.Date),
)


def _types(scanned: Scan, start: int, end: int, place: _Place) -> Iterator[_TokenType]:
    """The types of some tokens. Parentheses behind a name hold terms, others hold what is
    around them."""
    kinds = scanned.kinds
    places = [place]
    for index in range(start, end):
        kind, place = kinds[index], places[-1]
        before = kinds[index - 1] if index > start else ""
        after = kinds[index + 1] if index + 1 < end else ""
        text = scanned.source.text[scanned.starts[index] : scanned.ends[index]]
        if kind in "([":
            places.append(_opened(place, before))
        elif kind in ")]" and len(places) > 1:
            places.pop()
        elif kind in _STATE_KINDS:
            places[-1] = _Place.GOALS
        if place is _Place.DECLARATION and text == WHERE:
            places[-1] = _Place.WHERE
        if place is _Place.GOALS and text == LIMIT and after == NUMBER:
            places[-1] = _Place.LIMIT
            yield Keyword
        elif kind in _STATE_KINDS or kinds.endswith(_AT_MOST, start, index):
            yield Keyword
        elif kind in WORDS:
            yield _word(text, place, before, after)
        elif kind == QUALIFIED:
            yield Name.Function
        elif kind in (NUMBER, TIME):
            yield next((t for pattern, t in _NUMBERS if pattern.fullmatch(text)), Error)
        elif kind == VARIABLE and place is _Place.COLUMNS:
            yield Name if before == ":" and after != RANGE else Name.Attribute
        elif kind == VARIABLE and place is _Place.WHERE:
            yield Name.Attribute
        elif kind == VARIABLE and place in (_Place.FORM, _Place.FUNCTION):
            yield Name
        elif kind == VARIABLE and place is _Place.USE:
            yield Name.Namespace
        elif kind == VARIABLE and place is _Place.CODE:
            yield Name.Constant
        elif kind in "<>" and place in (_Place.TERMS, _Place.HOLDS, _Place.LIMIT):
            yield Punctuation  # the angles of `min<D>`
        else:
            yield _KINDS[kind]


def _opened(place: _Place, before: str) -> _Place:
    if place in (_Place.DECLARATION, _Place.OUTPUT):
        return _Place.COLUMNS
    if place is _Place.STATE:
        return _Place.HOLDS
    if place in (_Place.COLUMNS, _Place.FORM):
        return _Place.FORM
    if place in (_Place.WHERE, _Place.FUNCTION):
        return place
    return _Place.TERMS if before and before in WORDS + QUALIFIED + IN else place


def _word(text: str, place: _Place, before: str, after: str) -> _TokenType:
    match place:
        case _Place.DECLARATION if after == "(":
            return Name.Function
        case _Place.DECLARATION:
            return Keyword if text in _DECLARING else Name
        case _Place.WHERE:
            return Name.Attribute
        case _Place.FUNCTION if after == "(":
            return Name.Function
        case _Place.FUNCTION if text == "from":
            return Keyword
        case _Place.FUNCTION:
            return Keyword.Type if text in _TYPES else Name
        case _Place.USE:
            return Keyword if text == AS and before == TEXT else Name.Namespace
        case _Place.OUTPUT | _Place.STATE:
            return Name.Function
        case _Place.HOLDS if after not in ("(", "<"):
            return Name.Attribute
        case _Place.ANNOTATION:
            return String.Symbol
        case _Place.COLUMNS if (before == TEXT and text == AS) or (
            after == TEXT and text in PLACED
        ):
            return Keyword
        case _Place.COLUMNS if (
            text in (ROW, ARRIVAL) and before not in ("(", ",") and after in (",", ")")
        ):
            return Keyword
        case _Place.COLUMNS if before == ":" and after != RANGE:
            return Keyword.Type if text in _TYPES else Name
        case _Place.COLUMNS:
            return Name.Attribute
        case _Place.FORM:
            return Keyword.Type if text in TIME_UNITS or text in OF_TWO else Name
        case _Place.LIMIT if text in LIMIT_WORDS and after != "(":
            return Keyword
        case _Place.TERMS | _Place.HOLDS | _Place.LIMIT if after == "(":
            return Name.Builtin if text in FUNCTIONS or text in AGGREGATES else Name.Function
        case _Place.TERMS | _Place.HOLDS | _Place.LIMIT if after == "<" and text in AGGREGATES:
            return Name.Builtin
        case _Place.TERMS | _Place.HOLDS | _Place.LIMIT:
            return String.Symbol
        case _Place.STEP if text == "from" and after == TEXT:
            return Keyword
    if after == "(":
        return Name.Builtin if text in FUNCTIONS or text in GOALS else Name.Function
    return String.Symbol if {before, after} & _OPERATORS else Name.Function


_STATE_KINDS = frozenset(STATE_WORDS.values())
_AT_MOST = ("F", "Fw")  # `for at most`
_DECLARING = {WHERE, PROGRESS, *" ".join(STREAM_OPTIONS).split()}
LIMIT = "limit"
LIMIT_WORDS = ("offset", "by", "asc", "desc", "per")
_TYPES = frozenset(map(str, Type))
