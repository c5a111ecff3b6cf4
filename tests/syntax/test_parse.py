"""Every construct of the language, as text and as canonical text."""

from __future__ import annotations

import pytest

from streamlog.diagnostics import Source
from streamlog.syntax import ast
from streamlog.syntax.ast import Type
from streamlog.syntax.parse import parse
from streamlog.syntax.pretty import pretty

# What people may write, and the one form it is printed in. None: it is that form already.
SPELLINGS: dict[str, str | None] = {
    # rules, facts, queries
    "first(T, X) <- msg(T, X), not previous(T, X).": None,
    "p(X):-q(X).": "p(X) <- q(X).",
    "p.": None,
    "p().": "p.",
    "p <- q.": None,
    "?first(T, red).": None,
    "?- p(X), X > 3.": "?p(X), X > 3.",
    "? -5 < X.": None,
    # negation
    "p <- !q, ~r, ¬s, not t.": "p <- not q, not r, not s, not t.",
    "p(X) <- X != 3, !q(X).": "p(X) <- X != 3, not q(X).",
    "p <- not not q.": None,
    "p <- not (q).": "p <- not q.",
    "p(X) <- not (q(X, Y), Y < X).": None,
    "p(X) <- not (X < 3).": None,
    "p <- not (a ; b).": None,
    # alternatives
    "p <- a ; b, c.": None,
    "p <- (a ; b), c.": None,
    "p <- (a, b), c.": "p <- a, b, c.",
    "p <- (a ; b).": "p <- a ; b.",
    "p <- (a ; b) ; c.": None,
    # comparisons and arithmetic
    "p(X) <- X ≤ 1, X ≥ 2, X ≠ 3.": "p(X) <- X <= 1, X >= 2, X != 3.",
    "p(X) <- X = (A + B) * C - (D - E) - F.": "p(X) <- X = (A + B) * C - (D - E) - F.",
    "p(X) <- X = (A * B) + (C // 2).": "p(X) <- X = A * B + C // 2.",
    "p(X) <- X = -A * B, Y = -(A * B).": None,
    "p(X) <- (X + 1) * 2 = Y.": None,
    "p(X) <- abs(X) % 2 = 0.": None,
    "p(X) <- X = lower(A) ++ '-' ++ 'it\\'s'.": 'p(X) <- X = lower(A) ++ "-" ++ "it\'s".',
    # aggregates
    "vol(T, S, sum(C), count()) <- trade(T, S, C).": None,
    "best(T, min(D), max<E>) <- d(T, D, E).": "best(T, min<D>, max<E>) <- d(T, D, E).",
    "p(sum<C * 2>, min<(-D)>) <- q(C, D).": "p(sum(C * 2), min<(-D)>) <- q(C, D).",
    "later(max(A, B)) <- q(A, B).": None,
    "first(X) <- last(X), count(X).": None,
    # constants
    "p(300s, 90min, 48h, 14d, 1.5s, 1us, 0h).": "p(5min, 90min, 2d, 2week, 1500ms, 1us, 0s).",
    "p(- 5, --5, -2.5, -5min, 1e3).": "p(-5, 5, -2.5, -5min, 1000.0).",
    "p(-9223372036854775808, 9223372036854775807).": None,
    "p(@2026-11-15).": "p(@2026-11-15T00:00:00Z).",
    "p(@2026-11-15T08:00:00.250+02:00).": "p(@2026-11-15T06:00:00.25Z).",
    "p(@1969-12-31T23:59).": "p(@1969-12-31T23:59:00Z).",
    "p(@2026-11-15T08:00:00Z+5min, 2-1).": "p(@2026-11-15T08:00:00Z + 5min, 2 - 1).",
    'p(true, "true", "red", "a b").': 'p(true, "true", red, "a b").',
    'p("\\u00e9\\n", \'"\').': 'p("é\\n", "\\"").',
    # declarations
    "stream s(T: time, area, x: int -5..5) slack 10s idle 5 from 'a.csv'.": (
        'stream s(T: time, area, x: int -5..5) slack 10s idle 5 from "a.csv".'
    ),
    "stream s(T: time @2026-01-01T00:00:00Z..@2027-01-01T00:00:00Z, x: float 0.5..1.5).": None,
    'table t(a: string, b: bool) from "t.csv".': None,
    "output a, b.": None,
    'use "lib/metro.slog".': None,
    # the words of declarations are names too
    "stream(T) <- test(T), use(T), output(T), table(T).": None,
    "output <- stream, from, end.": None,
    "stream stream(T: int).": None,
}


@pytest.mark.parametrize(("text", "canonical"), SPELLINGS.items())
def test_a_spelling_and_its_canonical_form(text: str, canonical: str | None) -> None:
    assert pretty(read(text)) == (canonical or text) + "\n"


def read(text: str) -> ast.Module:
    module, found = parse(Source("t.slog", text))
    assert found == ()
    return module


def only(text: str) -> ast.Statement:
    (statement,) = read(text).statements
    return statement


def test_the_steps_of_a_test() -> None:
    text = """\
test "all steps" {
    p(1).
    arrive late p(2).
    reject p("1 2").
    given p from "p.csv".
    advance T + 5min.
    end.
    expect p(1), q.
    expect none p.
    expect p from "out.csv".
    rejected SL0401.
    end().
}
"""
    assert pretty(read(text)) == text
    test = only(text)
    assert isinstance(test, ast.Test)
    assert " ".join(type(step).__name__ for step in test.steps) == (
        "Arrive Arrive Arrive Given Advance End Expect ExpectNone ExpectFrom Rejected Arrive"
    )


def test_a_test_may_end_with_a_dot_and_be_empty() -> None:
    module = read('test "a" {}. p. test "b" { }')
    assert pretty(module) == 'test "a" {}\np.\ntest "b" {}\n'


def test_a_long_rule_has_a_line_for_each_goal() -> None:
    goals = ["some_long_predicate(T, Area, Kind)", "another_one(T, Area)", "not a_third(T, Area)"]
    rule = f"head(T, Area) <- {', '.join(goals)}."
    assert pretty(only(rule)) == "head(T, Area) <-\n    " + ",\n    ".join(goals) + "."
    assert pretty(only(f"head(T) <- {goals[0]}.")) == f"head(T) <- {goals[0]}."


def test_precedence_and_association() -> None:
    rule = only("p(X) <- X = A - B - C * D.")
    assert isinstance(rule, ast.Rule)
    (goal,) = rule.body
    assert isinstance(goal, ast.Comparison)
    right = goal.right
    assert isinstance(right, ast.BinOp) and right.op == "-"
    assert pretty(right.left) == "A - B"
    assert pretty(right.right) == "C * D"


def test_constants_of_each_type() -> None:
    fact = only("p(1, 1.0, one, true, 1s, @1970-01-01T00:00:01Z).")
    assert isinstance(fact, ast.Fact)
    assert [(c.value, c.type) for c in fact.atom.args if isinstance(c, ast.Const)] == [
        (1, Type.INT),
        (1.0, Type.FLOAT),
        ("one", Type.STRING),
        (True, Type.BOOL),
        (1_000_000, Type.DURATION),
        (1_000_000, Type.TIME),
    ]


def test_spans_are_exact() -> None:
    text = "p(X) <- not (q(X), (X + 1) * 2 < 5min), (a ; b)."
    rule = only(text)
    assert isinstance(rule, ast.Rule)
    negation, choice = rule.body
    assert isinstance(negation, ast.Not) and isinstance(choice, ast.Choice)
    comparison = negation.body[1]
    assert isinstance(comparison, ast.Comparison) and isinstance(comparison.left, ast.BinOp)
    assert rule.span.text == text
    assert rule.head.span.text == "p(X)"
    assert negation.span.text == "not (q(X), (X + 1) * 2 < 5min)"
    assert comparison.left.span.text == "(X + 1) * 2"
    assert comparison.left.left.span.text == "X + 1"
    assert comparison.right.span.text == "5min"
    assert choice.span.text == "(a ; b)"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("p(X) <- q(X), X % 2 = 0. % even", "p(X) <- q(X), X % 2 = 0.\n"),
        ("p(X) <- q(X) % a comment\n.", "p(X) <- q(X).\n"),
        ("p(X) <- q(X) % X\n.", "p(X) <- q(X).\n"),
        ("p(X) <- q(X), % X, Y\n r.", "p(X) <- q(X), r.\n"),
        ("p(X) <- X = Y // 2 // half of it\n.", "p(X) <- X = Y // 2.\n"),
        ("p(X) <- X = Y // TODO: check\n.", "p(X) <- X = Y.\n"),
        ("p(X) <- X = Y // (see above)\n.", "p(X) <- X = Y.\n"),
        ("p(X) <- X = Y % (A + 1).", "p(X) <- X = Y % (A + 1).\n"),
        ("p(X) <- X = Y % f(red).", "p(X) <- X = Y % f(red).\n"),
        ("p(X) <- X = Y\n% Z\n.", "p(X) <- X = Y.\n"),
        ("stream s(T: int // Time\n).", "stream s(T: int).\n"),
        ('p("100% // sure"). /* p(2). */', 'p("100% // sure").\n'),
    ],
)
def test_percent_and_slashes_are_operators_only_between_operands(text: str, printed: str) -> None:
    assert pretty(read(text)) == printed
