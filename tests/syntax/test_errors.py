"""The exact words for what cannot be read, and the place they point at."""

from __future__ import annotations

import pytest

from streamlog.diagnostics import Source
from streamlog.syntax import ast
from streamlog.syntax.parse import MAX_DIAGNOSTICS, parse
from streamlog.syntax.pretty import pretty

# The text with the place between « and », what is said of it, and the help.
ERRORS = [
    ("p(X «<-» q(X).", "SL0101 expected `)` or `,`, found `<-`", ""),
    ("p(X) <- q(«X»", "SL0101 expected `)` or `,`, found the end of the file", ""),
    ("p(X) <- q(X) «r»(X).", "SL0101 expected `,` or `.`, found `r`", ""),
    (
        "p(X) <- q(X)\n«r»(X) <- s(X).",
        "SL0101 expected `,` or `.`, found `r`",
        "every statement ends with `.`: is one missing before this?",
    ),
    ("p(X) <- q(X), «.»", "SL0101 expected a goal, found `.`", ""),
    ("p(X) <- «.»", "SL0101 expected a goal, found `.`", ""),
    ("p(X) <- X «==» 3.", "SL0101 expected `,` or `.`, found `==`", "write `=`"),
    ("p(X) <- q(X) «&&» r(X).", "SL0101 expected `,` or `.`, found `&&`", "write `,` for and"),
    ("p(X) <- q(X) «and» r(X).", "SL0101 expected `,` or `.`, found `and`", "write `,` for and"),
    ("p(X) <- q(X) «||» r(X).", "SL0101 expected `,` or `.`, found `||`", "write `;` for or"),
    ("p(X) <- q(X) «or» r(X).", "SL0101 expected `,` or `.`, found `or`", "write `;` for or"),
    ("p(X) <- X «=<» 3.", "SL0101 expected `,` or `.`, found `=<`", "write `<=`"),
    ("p(X) <- X «=>» 3.", "SL0101 expected `,` or `.`, found `=>`", "write `>=`"),
    ("p(X) <- X «:=» 3.", "SL0101 expected `,` or `.`, found `:=`", "write `=`"),
    ("p(X) <- X «<>» 3.", "SL0101 expected `,` or `.`, found `<>`", "write `!=`"),
    ("p(X) <- «\\+» q(X).", "SL0101 expected a goal, found `\\+`", "write `not`"),
    (
        "p(X) «->» q(X).",
        "SL0101 expected `.` or `<-`, found `->`",
        "a rule is written `head <- body.`",
    ),
    (
        "p(X) «if» q(X).",
        "SL0101 expected `.` or `<-`, found `if`",
        "a rule is written `head <- body.`",
    ),
    (
        "«P»(X) <- q(X).",
        "SL0101 expected a statement, found `P`",
        "predicates begin with a lower-case letter: `p`",
    ),
    (
        "p(X) <- Q«(»X).",
        "SL0101 expected `,` or `.`, found `(`",
        "predicates begin with a lower-case letter: `q`",
    ),
    (
        "p(X) <- «X».",
        "SL0101 `X` is not a goal",
        "a goal is a predicate, as in `p(X)`, or a comparison, as in `X < Y`",
    ),
    (
        "p(X) <- «X + 1».",
        "SL0101 `X + 1` is not a goal",
        "a goal is a predicate, as in `p(X)`, or a comparison, as in `X < Y`",
    ),
    (
        'p(X) <- «"text"».',
        'SL0101 `"text"` is not a goal',
        "a goal is a predicate, as in `p(X)`, or a comparison, as in `X < Y`",
    ),
    (
        "p(X) <- «not X < 3».",
        "SL0101 `not` before a comparison",
        "write the opposite comparison, or put it in parentheses: `not (X < Y)`",
    ),
    (
        "p(X) <- 1 < X «<» 3.",
        "SL0101 a second comparison in one goal, `<`",
        "compare in two goals, as in `X < Y, Y < Z`",
    ),
    ("p(X) <- X = («Y < 3»).", "SL0101 a comparison cannot be part of a term", ""),
    ("p(X) <- X = «(q, r)».", "SL0101 a group of goals cannot be part of a term", ""),
    ("p(X) <- X = Y + «not» Z.", "SL0101 a negation cannot be part of a term", ""),
    (
        "p(«X < 3») <- q(X).",
        "SL0101 a comparison cannot be part of a term",
        "the first argument of `if` may be one, as in `if(X < Y, X, Y)`",
    ),
    ("«X» < 3 <- q(X).", "SL0101 expected a statement, found `X`", ""),
    (
        "p(X) <- q(X), X «<-»5.",
        "SL0101 expected `,` or `.`, found `<-`",
        "for less than a negative number write `< -`; a new rule needs a `.` before it",
    ),
    ("p(X)«)» <- q(X).", "SL0101 expected `.` or `<-`, found `)`", ""),
    (
        "p(«[»X]) <- q(X).",
        "SL0101 expected a term, found `[`",
        "there are no lists; a predicate with one fact for each element will do",
    ),
    (
        "«true» <- q.",
        "SL0101 expected a statement, found `true`",
        '`true` is a reserved word; as a text write "true"',
    ),
    (
        "p(«not») <- q.",
        "SL0101 expected a term, found `not`",
        '`not` is a reserved word; as a text write "not"',
    ),
    ("strem «s»(T: time).", "SL0101 expected `.` or `<-`, found `s`", "did you mean `stream`?"),
    ("stream s«.»", "SL0101 expected `(`, found `.`", ""),
    (
        "stream s(T: time) slack 10«s»",
        "SL0101 expected `.` or an option, found the end of the file",
        "a statement ends with `.`",
    ),
    ("stream s(T «time»).", "SL0101 expected `)`, `,` or `:`, found `time`", ""),
    ("use «lib».", "SL0101 expected a text in quotes, found `lib`", ""),
    ("output p «q».", "SL0101 expected `,` or `.`, found `q`", ""),
    (
        "p(X) <- X = «Y» % 3 is odd.",
        "SL0101 expected `,` or `.`, found the end of the file",
        "`%` begins a comment here, so the rest of the line is not read",
    ),
    (
        "p(X) <- X = Y % Z, and «so» on\n.",
        "SL0101 expected `,` or `.`, found `so`",
        "`%` is an operator here; begin a comment on a separate line, or after `,` or `.`",
    ),
    ("?«.»", "SL0101 expected a goal, found `.`", ""),
    ("«}»", "SL0101 expected a statement, found `}`", ""),
    ("p(X) <- q(X) «#» r.", "SL0101 expected `,` or `.`, found `#`", ""),
    (
        'test "a" { p(1) «}»',
        "SL0101 expected `.`, found `}`",
        "every statement ends with `.`: is one missing before this?",
    ),
    (
        'test "a" { p(1). expect none «p»(1). }',
        "SL0101 expected `,` or `.`, found `p`",
        "nothing is expected of a whole predicate: `expect none p.`",
    ),
    ('test "a" { p(1)«.» ', "SL0101 expected `}` at the end of this test", ""),
    ("test «a» { }", "SL0101 expected a text in quotes, found `a`", ""),
    ('test "a" «p»(1).', "SL0101 expected `{`, found `p`", ""),
    (
        'p(«"»abc).',
        "SL0102 this text never ends",
        'close it with `"` on the same line; write a line break as `\\n`',
    ),
    ("p(1). «/*» never", "SL0102 this comment never ends", "close it with `*/`"),
    (
        "p((((((((((((((((((((((((((((((((«(»(X)))))))))))))))))))))))))))))))))).",
        "SL0103 parentheses are nested more than 32 deep",
        "split the rule, or give the inner part a name of its own",
    ),
    ("p(«5m»).", "SL0104 `m` is not a unit of time", "did you mean `5min`?"),
    (
        "p(5 «m»).",
        "SL0101 expected `)` or `,`, found `m`",
        "a duration is written without a space: `5min`",
    ),
    (
        "p(«3parsecs»).",
        "SL0104 `parsecs` is not a unit of time",
        "the units are us, ms, s, min, h, d and week",
    ),
    ("p(«5mins»).", "SL0104 `mins` is not a unit of time", "did you mean `5min`?"),
    ("p(«1e3s»).", "SL0104 a duration is written without an exponent", ""),
    ("p(«0.0000001s»).", "SL0104 this duration is not a whole number of microseconds", ""),
    ("p(«9999999999week»).", "SL0104 this duration does not fit into 64 bits of microseconds", ""),
    (
        "p(«9223372036854775808»).",
        "SL0104 this integer does not fit into 64 bits",
        "the largest integer is 9223372036854775807",
    ),
    (
        "p(«-9223372036854775809»).",
        "SL0104 this integer does not fit into 64 bits",
        "the largest integer is 9223372036854775807",
    ),
    ("p(«-(-9223372036854775808)»).", "SL0104 this integer does not fit into 64 bits", ""),
    ("p(«1e999»).", "SL0104 this decimal is too large", "the largest is about 1.8e308"),
    ("p(«@2026-02-30»).", "SL0104 there is no such time: day is out of range for month", ""),
    ("p(«@2026-11-15T25:00:00Z»).", "SL0104 there is no such time: hour must be in 0..23", ""),
    (
        "p(«@2026-11-15T08:00:00.1234567Z»).",
        "SL0104 this is not a timestamp",
        "write it like `@2026-11-15T08:00:00Z` or `@2026-11-15`",
    ),
    (
        "p(«@noon»).",
        "SL0104 this is not a timestamp",
        "write it like `@2026-11-15T08:00:00Z` or `@2026-11-15`",
    ),
    ("p(«-@2026-11-15»).", "SL0104 a timestamp cannot be negated", ""),
    (
        'p("a«\\q»b").',
        "SL0104 `\\q` means nothing",
        "the escapes are \\n \\t \\\\ \\\" \\' and \\uXXXX; write a backslash as \\\\",
    ),
    ('p("«\\ud800»").', "SL0104 `\\ud800` is half a character", "write the character itself"),
    ("stream s(T: «tiem»).", "SL0105 unknown type `tiem`", "did you mean `time`?"),
    ("stream s(T: «Integer»).", "SL0105 unknown type `Integer`", "did you mean `int`?"),
    (
        "stream s(T: «blob»).",
        "SL0105 unknown type `blob`",
        "the types are int, float, string, bool, time, duration",
    ),
    ("stream s(T: time, «T: int»).", "SL0105 two columns named `T`", ""),
    (
        "stream s(T: int «5..1»).",
        "SL0105 this range is empty: its low end is above its high end",
        "",
    ),
    ("stream s(T: string «1..5»).", "SL0105 a range of int for a column of type string", ""),
    ("stream s(T: int «1..5s»).", "SL0105 a range of int to duration for a column of type int", ""),
    ("stream s(T: time) «slak» 10s.", "SL0105 unknown option `slak`", "did you mean `slack`?"),
    (
        "stream s(T: time) «colour» red.",
        "SL0105 unknown option `colour`",
        "the options are from, slack, idle, horizon, arrives within, keep",
    ),
    ("stream s(T: time) slack 10s «slack 20s».", "SL0105 `slack` is given twice", ""),
    (
        'stream s(T: time) slack «"x"».',
        "SL0105 `slack` takes a duration or an integer, as in `slack 10s`",
        "",
    ),
    ("stream s(T: time) slack «-5s».", "SL0105 `slack` cannot be negative", ""),
    (
        "stream s(T: time) from «x».",
        'SL0105 `from` takes a path in quotes, as in `from "rows.csv"`',
        "",
    ),
    (
        "table t(a) «slack 10s».",
        "SL0105 a table has no `slack`",
        "the only option of a table is `from`; for timestamped rows declare a stream",
    ),
    (
        "p(X) <- X = «sum(Y)».",
        "SL0106 the aggregate `sum` is outside a rule head",
        "aggregate in the head of a separate rule, as in `result(T, sum(X)) <- …`, and use that",
    ),
    (
        "p(«sum(X)»).",
        "SL0106 the aggregate `sum` is outside a rule head",
        "aggregate in the head of a separate rule, as in `result(T, sum(X)) <- …`, and use that",
    ),
    (
        "p(1 + sum(Y + «sum(X)»)) <- q(X).",
        "SL0106 the aggregate `sum` is outside a rule head",
        "aggregate in the head of a separate rule, as in `result(T, sum(X)) <- …`, and use that",
    ),
    (
        "p(X) <- q(«min<X>»).",
        "SL0106 the aggregate `min` is outside a rule head",
        "aggregate in the head of a separate rule, as in `result(T, min<X>) <- …`, and use that",
    ),
    (
        "p(sum(«max<X>»)) <- q(X).",
        "SL0106 the aggregate `max` is outside a rule head",
        "aggregate in the head of a separate rule, as in `result(T, max<X>) <- …`, and use that",
    ),
    (
        "p(«med»<X>) <- q(X).",
        "SL0101 `med` is not an aggregate",
        "there are count, sum, min, max, avg, count_distinct, first, last, count_if, var, stddev, "
        "median, percentile, arg_min, arg_max, collect",
    ),
    (
        "p((max<X> - min<X>«)» / 2) <- q(X).",
        "SL0101 expected a goal, found `)`",
        "inside an expression write `min(…)`, with parentheses",
    ),
    (
        "p(«arg_max<X>») <- q(X).",
        "SL0205 `arg_max` takes two terms, in parentheses",
        "`arg_max(X, Y)` is the X for which Y is highest",
    ),
    ("p(«summ»<X>) <- q(X).", "SL0101 `summ` is not an aggregate", "did you mean `sum`?"),
]


@pytest.mark.parametrize(("marked", "said", "help"), ERRORS)
def test_what_is_said_and_where(marked: str, said: str, help: str) -> None:
    text = marked.replace("«", "").replace("»", "")
    _, (diagnostic,) = parse(Source("t.slog", text))
    span = diagnostic.span
    assert f"{text[: span.start]}«{span.text}»{text[span.end :]}" == marked
    assert f"{diagnostic.code} {diagnostic.message}" == said
    assert diagnostic.help == ((help,) if help else ())


@pytest.mark.parametrize(
    ("text", "other", "label"),
    [
        ("stream s(T: time, T: int).", "T: time", "the first"),
        ("stream s(T: time) slack 1s slack 2s.", "slack 1s", "first here"),
        ("table t(a) slack 10s.", "table t", "a table is not timestamped"),
        ('test "a" { p(1).', "{", "opened here"),
    ],
)
def test_the_other_place_is_named(text: str, other: str, label: str) -> None:
    _, (diagnostic,) = parse(Source("t.slog", text))
    assert [(related.span.text, related.text) for related in diagnostic.labels[1:]] == [
        (other, label)
    ]


def messages(text: str) -> list[str]:
    return [d.message for d in parse(Source("t.slog", text))[1]]


def test_a_bad_statement_hides_no_other() -> None:
    text = """\
p(X <- q(X).
good(1).
p("never ends).
q(5m).
r(X) <- s(X)
t(X) <- u(X).
test "steps" { p(1. advance 5. q(2,). end. }
last(2).
"""
    module, found = parse(Source("t.slog", text))
    assert [d.message for d in found] == [
        "expected `)` or `,`, found `<-`",
        "this text never ends",
        "`m` is not a unit of time",
        "expected `,` or `.`, found `t`",
        "expected `)` or `,`, found `.`",
        "expected a term, found `)`",
    ]
    assert pretty(module) == (
        'good(1).\nt(X) <- u(X).\ntest "steps" {\n    advance 5.\n    end.\n}\nlast(2).\n'
    )


def test_an_unclosed_test_does_not_swallow_the_next() -> None:
    module, found = parse(Source("t.slog", 'test "a" { p(1).\ntest "b" { q(2). }\nr.'))
    assert [d.message for d in found] == ["expected `}` at the end of this test"]
    assert [s.name for s in module.statements if isinstance(s, ast.Test)] == ["a", "b"]
    assert pretty(module.statements[-1]) == "r."


def test_a_comment_that_never_ends_is_the_only_error() -> None:
    assert messages("p(1). q(2) /* r(3). s(4).") == ["this comment never ends"]


def test_the_number_of_errors_is_limited() -> None:
    found = messages("p(. " * 500)
    assert len(found) == MAX_DIAGNOSTICS + 1
    assert found[-1] == "more than 100 errors; the rest of the file was not read"


@pytest.mark.parametrize(
    "text",
    [
        "p <- " + "(" * 33 + "q" + ")" * 33 + ".",
        "p(" + "f(" * 40 + "X" + ")" * 40 + ").",
        "p(X) <- X = 1" + " + 1" * 10_000 + ".",
        "p(X) <- X = 1" + " + 1" * 50_000 + ".",
        "p(" + "-" * 10_000 + "X).",
        "p(" + "-" * 150 + "(" + "-" * 150 + "X)).",
        "p <- " + "not " * 10_000 + "q.",
        "p(" + "a<" * 5_000 + "X.",
    ],
)
def test_what_is_nested_too_deeply(text: str) -> None:
    module, found = parse(Source("t.slog", text))
    assert [d.code for d in found] == ["SL0103"]
    assert module.statements == ()


@pytest.mark.parametrize(
    "text",
    [
        "p <- " + "not (a, " * 32 + "q" + ")" * 32 + ".",
        "p(" + "f(a + " * 31 + "X" + ")" * 31 + ").",
        "p <- " + "not (a ; b, X = 1 + 2, " * 32 + "q" + ")" * 32 + ".",
        "p(X) <- X = 1" + " + 1" * 150 + ".",
    ],
)
def test_what_is_nested_as_deeply_as_allowed(text: str) -> None:
    module, found = parse(Source("t.slog", text))
    assert found == ()
    assert parse(Source("t.slog", pretty(module)))[0] == module
