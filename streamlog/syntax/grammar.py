"""The grammar of one statement, in pyparsing, over the kinds of its tokens (see `scan`).

There is no packrat, no left recursion and next to no backtracking: a chain `operand (infix
operand)*` is read flat and made a tree by `build`, alternatives differ in their first tokens, and
`-` (pyparsing's error stop) says where a construct can no longer be another one.

Why not plain pyparsing over the text? It was tried on 2,000 rules like the README's: to recognise
them, with a smaller grammar and without making nodes, took nine times as long as all of this, and
with packrat more. And whether `%` or `//` is an operator or begins a comment depends on the tokens
around it, which is a question for a scanner.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import pyparsing as pp

from streamlog.syntax import (
    ast,
    build,
    data_paths,
    declare,
    intervals,
    limits,
    metadata,
    operands,
    time_forms,
)
from streamlog.syntax.scan import QUALIFIED, QUERY, WORDS
from streamlog.syntax.tokens import Tokens

Make: TypeAlias = Callable[[Tokens, int, int], object]


class Kind(pp.Token):
    """Some tokens by their kinds; notes what was expected wherever it does not match."""

    def __init__(self, pattern: str, *expected: str, make: Make | None = None) -> None:
        super().__init__()
        self.pattern = re.compile(pattern)
        self.expected = expected
        self.make = make
        self.mayIndexError = False
        self.set_name(" or ".join(expected) or pattern)
        self.leave_whitespace()

    def _generateDefaultName(self) -> str:  # noqa: N802  (pyparsing's name)
        return self.pattern.pattern

    def parseImpl(self, instring: Any, loc: int, do_actions: bool = True) -> Any:  # noqa: N802
        match = self.pattern.match(instring, loc)
        if match is None:
            instring.missed(loc, self.expected)
            raise pp.ParseException(instring, loc, self.errmsg, self)
        end = match.end()
        return end, self.make(instring, loc, end) if self.make else []


def _last(tokens: Tokens, start: int, end: int) -> int:
    return end - 1


def _word_class(*others: str) -> str:
    return f"[{WORDS}{''.join(others)}]"


WORD = _word_class()
PREDICATE = _word_class(QUALIFIED)
SINGLE = _word_class("VNTSB")
GOAL_INFIX = "[-+*=<>,;iIJ]"

comma = Kind(",", "`,`")
dot = Kind(r"\.", "`.`", make=_last)
close = Kind(r"\)", "`)`", make=_last)
text = Kind("S", "a text in quotes", make=_last)
predicate = Kind(PREDICATE, "a predicate", make=_last)
arithmetic = Kind("[-+*]", make=_last)


def _chain(operand: pp.ParserElement, infix: pp.ParserElement) -> pp.ParserElement:
    return operand - pp.ZeroOrMore(infix - operand)


def _plain_call(prefix: str, name: str = WORD) -> str:
    """`name(…)` whose arguments hold at most calls without further parentheses."""
    inner = rf"{WORD}\((?:-*{SINGLE}(?:[-+*,]-*{SINGLE})*)?\)"
    arg = rf"-*(?:{inner}|{SINGLE}(?!\())"
    return rf"{prefix}{name}\((?:{arg}(?:[-+*,]{arg})*)?\)"


def _full_call(
    prefix: str, expected: str, term: pp.ParserElement, name: str = WORD
) -> pp.ParserElement:
    opening = Kind(rf"{prefix}{name}\(", expected, make=_last)
    joint = Kind("[-+*,=<>]", "`,`", make=_last)  # a comparison, in `if(X < Y, X, Y)`
    return _with(opening - _chain(term, joint) - close, build.call)


def _with(
    element: pp.ParserElement, action: Callable[[Tokens, int, Any], object]
) -> pp.ParserElement:
    def act(tokens: str, start: int, found: pp.ParseResults) -> object:
        return action(cast(Tokens, tokens), start, found.as_list())

    return element.set_parse_action(act)


def _operands() -> tuple[pp.ParserElement, pp.ParserElement]:
    """What a chain of terms and what a chain of goals joins."""
    term, goal = pp.Forward(), pp.Forward()

    def operand(
        prefix: str, infix: str, name: str, follows: str, expected: str
    ) -> list[pp.ParserElement]:
        plain = rf"(?:{prefix}(?:[VNTSB]|{name}(?!{follows}))|{_plain_call(prefix, name)})"
        if prefix == "n*-*":
            plain = rf"(?:{plain}|{prefix}\({plain}(?:{infix}{plain})*\))"
        opening = Kind(rf"{prefix}\(", expected, make=_last)
        group = opening - _chain(goal, Kind(GOAL_INFIX, "`,`", make=_last)) - close
        return [
            # Most chains, or most of one, are plain enough to be one pattern.
            Kind(f"{plain}(?:{infix}{plain})*", expected, make=build.run),
            _full_call(prefix, expected, term, name),
            _with(group, build.group),
        ]

    window_opens = Kind(r"(?<=J)[\[(]", make=_last)
    window_closes = Kind(r"[\])]", "`]` or `)`", make=_last)
    ends = _chain(term, arithmetic) - comma - _chain(term, arithmetic)
    window = _with(window_opens - ends - window_closes, intervals.window)

    aggregate = Kind(f"{WORD}<") - _chain(term, arithmetic) - Kind(">", "`>`", make=_last)
    term <<= pp.MatchFirst(
        [
            *operand("-*", "[-+*]", WORD, "[(<]", "a term"),
            _with(aggregate, build.aggregate),
        ]
    )
    goal <<= pp.MatchFirst([window, *operand("n*-*", GOAL_INFIX, PREDICATE, r"\(", "a goal")])
    return term, goal


def _statement_grammars() -> tuple[pp.ParserElement, pp.ParserElement, pp.ParserElement]:
    term, goal = _operands()
    body = _with(_chain(goal, Kind(GOAL_INFIX, "`,`", make=_last)), build.goals)

    def atom_unless(other: str) -> pp.ParserElement:
        plain = rf"(?!{other})(?:{_plain_call('', PREDICATE)}|{PREDICATE}(?!\())"
        return _with(
            pp.MatchFirst(
                [
                    Kind(plain, "a predicate", make=build.run),
                    _full_call("", "a predicate", term, PREDICATE),
                ]
            ),
            lambda tokens, start, found: build.atom(found[0]),
        )

    atom = atom_unless("R")

    def clause(tokens: Tokens, start: int, found: list[Any]) -> ast.Rule | ast.Fact:
        span = tokens.span(start, found[-1] + 1)
        if len(found) == 2:
            return ast.Fact(found[0], span=span)
        limit = found[2] if len(found) > 3 else None
        return ast.Rule(found[0], found[1].body(tokens), limit, span=span)

    def query(tokens: Tokens, start: int, found: list[Any]) -> ast.Query:
        return ast.Query(found[0].body(tokens), span=tokens.span(start, found[-1] + 1))

    # Clauses come first because most statements are clauses.
    named, texted = WORD, _word_class("SV")
    head = atom_unless(f"[doK]{PREDICATE}|k{named}|u{texted}")
    count = Kind("N", "a number", make=_last)
    order = _with(_chain(term, arithmetic) - pp.Opt(Kind("[cq]", make=_last)), limits.order)
    per = _with(_chain(term, arithmetic), limits.term)
    limit = (
        Kind("m(?=N)")
        - count
        - pp.Opt(Kind("s") - count)
        - Kind("b", "`by`")
        - _listed(order)
        - pp.Opt(Kind("p") - _listed(per))
    )
    limited = pp.Opt(_with(limit, limits.limit))
    clauses = head - (Kind("R", "`<-`") - body - limited - dot | dot)

    # ---- declarations. Their first words are ordinary names before `(`, `.` and an arrow.
    kind = Kind(f"d(?={PREDICATE})", make=_last)
    column_name = Kind(_word_class("V"), "a column name", make=_last)
    type_name = Kind(_word_class("V"), "a type", make=_last)
    bound = Kind("-*[NT]", make=operands.leaf)
    high = Kind("-*[NT]", "a number, duration or timestamp", make=operands.leaf)
    span_of_values = bound - Kind("E", "`..`") - high
    validity = Kind(rf"E(?={_word_class('V')})") - Kind(_word_class("V"), make=intervals.end_column)
    part = Kind(SINGLE, "a unit or a format in quotes", make=_last)
    form = _with(Kind(r"\(") - _listed(part) - close, time_forms.form)
    optional = Kind(QUERY, make=declare.optional)
    by_engine = Kind(f"{WORD}(?!S)", "`row` or `arrival`", make=declare.given_by_engine)
    values = pp.Opt(validity) - pp.Opt(optional) - pp.Opt(span_of_values)
    typed = Kind(":", "`:`") - type_name - pp.Opt(form) - values - pp.Opt(by_engine)
    name_in_data = Kind("S", make=_last) - Kind(WORD, "`as`", make=_last)
    place_in_data = Kind(f"{WORD}(?=S)", make=_last) - Kind("S", make=_last)
    data_name = _with(name_in_data, data_paths.data_name)
    path = _with(place_in_data, data_paths.path)
    column = _with(pp.Opt(data_name) + column_name - pp.Opt(typed) - pp.Opt(path), declare.column)
    option_name = Kind(rf"(?![hG])(?:y{WORD}|{WORD})(?![(.R,])", "an option", make=_last)
    value = Kind(f"-*{SINGLE}", "a value", make=operands.leaf)
    option = _with(option_name - value, declare.option)
    opening = Kind(r"\(", "`(`")
    columns = opening - pp.Opt(_listed(column)) - close
    timeline = _with(column_name - pp.ZeroOrMore(option), declare.timeline)
    progress = Kind("G") - _listed(timeline)
    where = Kind("h") - body
    declared = Kind(WORD, "a predicate", make=_last)
    options = pp.ZeroOrMore(option) - pp.Opt(progress) - pp.Opt(where)
    declaration = kind - declared - columns - options - dot
    answer = _with(
        predicate - pp.Opt(Kind(r"\(") - pp.Opt(_listed(column_name)) - close), declare.answer
    )
    # A state: what begins it, and what ends it.
    argument = _chain(term, Kind("[-+*,;]", "`,`", make=_last))
    arguments = pp.Opt(Kind(r"\(", make=_last) - pp.Opt(argument) - close)
    named_state = Kind(f"K(?={PREDICATE}(?!R|\\.$))") - predicate - arguments
    begun = Kind("O", "`since`, `on` or `while`", make=_last) - body
    ended = pp.Opt(Kind("U", make=_last) - body)
    at_most = Kind(WORD, "`at`", make=_last) - Kind(WORD, "`most`", make=_last)
    bounded = pp.Opt(Kind("F", make=_last) - at_most - Kind("N", "a duration", make=operands.leaf))
    state = named_state - begun - ended - bounded - dot
    output = Kind(f"o(?={PREDICATE})") - _listed(answer) - dot
    alias = Kind(rf"{WORD}(?!\.)", "`as`", make=_last) - Kind(WORD, "an alias", make=_last)
    use = Kind(f"u(?={texted})") - text - pp.Opt(alias) - dot

    named_function = Kind(f"k(?={named})") - Kind(WORD, "a function", make=_last)
    types = opening - pp.Opt(_listed(type_name)) - Kind(r"\)", "`)`")
    file = Kind("f", "`from`") - text
    function = named_function - types - Kind(":", "`:`") - type_name - file - dot

    said = Kind(_word_class("S"), "a word or a text in quotes", make=_last)
    annotation = Kind("A") - _listed(said) - Kind(r"\Z", "the end of the line")

    statement = pp.MatchFirst(
        [
            _with(clauses, clause),
            _with(annotation, metadata.annotation),
            _with(declaration, declare.declaration),
            _with(state, intervals.state),
            _with(output, declare.output),
            _with(use, declare.use),
            _with(function, declare.function),
            _with(Kind(QUERY) - body - dot, query),
        ]
    )

    # ---- tests
    header = Kind(f"t(?={texted})") - text - Kind("{", "`{`")
    source = Kind("f", "`from`") - text
    arrive = Kind(f"(?:al|r)(?={PREDICATE})") - atom - dot
    given = Kind(f"g(?={PREDICATE})") - predicate - source - dot
    # `advance(5).` is a fact, `advance (5 + X) * 2.` is not.
    called_advance = Kind(r"(?=v\()") + atom + dot
    advance_one = Kind(f"v(?={PREDICATE}w)") - predicate - Kind("w", "`to`", make=_last)
    advance_one = advance_one - _chain(term, arithmetic) - dot
    advance = Kind(r"v(?!\.)") - _chain(term, arithmetic) - dot
    expect_none = Kind(rf"xz(?={PREDICATE}\.)") - predicate - dot
    expect_from = Kind(f"x(?={PREDICATE}fS)") - predicate - source - dot
    stamped = _chain(term, arithmetic)
    span_of_state = Kind("I", make=_last) - stamped - pp.Opt(Kind("I", make=_last) - stamped)
    expected = _with(atom - pp.Opt(span_of_state), intervals.expected)
    expect = Kind(r"x(?![(.])") - _listed(expected) - dot
    rejected = Kind(r"j(?![(.])") - Kind("V", "a code like SL0401", make=_last) - dot
    step = pp.MatchFirst(
        [
            _with(arrive, declare.arrive),
            _with(given, declare.given),
            _with(called_advance, declare.fact),
            _with(advance_one, declare.advance_one),
            _with(advance, declare.advance),
            _with(Kind(r"e(?=\.)") - dot, declare.end),
            _with(expect_none, declare.expect_none),
            _with(expect_from, declare.expect_from),
            _with(expect, declare.expect),
            _with(rejected, declare.rejected),
            _with(atom - dot, declare.fact),
        ]
    )
    return statement, _with(header, declare.test_name), step


def _listed(element: pp.ParserElement) -> pp.ParserElement:
    return element - pp.ZeroOrMore(comma - element)


def _ready(element: pp.ParserElement) -> pp.ParserElement:
    # Kinds hold no white space, and pyparsing must hand on the very object it is given.
    return element.leave_whitespace().parse_with_tabs().streamline()


statement, test_header, test_step = map(_ready, _statement_grammars())
