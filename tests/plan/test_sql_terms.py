"""Terms in DuckDB against the kernel's: every value, and every error, of many operands."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import duckdb
import pytest
from sqlglot import exp, parse_one

from streamlog.diagnostics import Source
from streamlog.plan.python import terms as kernel
from streamlog.plan.sql import Unsupported, render, with_slice
from streamlog.plan.sql import terms as sql
from streamlog.plan.sql.terms import Value, compare, value
from streamlog.runtime.functions import FUNCTIONS, EvaluationError, whole
from streamlog.syntax.ast import INT64_MAX, INT64_MIN, Atom, Comparison, Const, Rule, Term, Type
from streamlog.syntax.parse import parse

SMALL = (-7, -6, -5, -1, 0, 1, 2, 3, 5, 6, 7)
EDGES = (INT64_MIN, INT64_MIN + 1, -(2**53) - 1, -(2**31), 2**31, 2**53 + 1, 2**62, INT64_MAX)
INTS = (*SMALL, *EDGES)
FLOATS = (-2.5, -1.0, -0.1, 0.0, 0.1, 0.3, 1.0, 1.5, 2.0, 1e15, 1e300)
TEXTS = ("", "a", "ab", "abcdef", "héé", "日本語", "a b", "😀x")
AWKWARD = (
    "it's",
    'say "x"',
    "back\\slash",
    "\\",
    "\\'",
    "\\n",
    "a\nb",
    "a\tb",
    "\r\n",
    "%_",
    "--",
    "/* */",
    "$low",
    ":low",
    "${x}",
    "a${b${c",
    "é日本😀",
    "\u200b",
    "{{x}}",
    "?",
    " ",
    "",
)
SQL = {Type.INT: "BIGINT", Type.FLOAT: "DOUBLE", Type.STRING: "VARCHAR", Type.BOOL: "BOOLEAN"}
TYPES = {int: Type.INT, float: Type.FLOAT, str: Type.STRING, bool: Type.BOOL}
ERRORS = (ZeroDivisionError, OverflowError, EvaluationError)

Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def db() -> Iterable[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def literal_of(text: str) -> Comparison | Atom:
    """`A + B < 3`, or a test such as `contains(X, Y)`."""
    module, found = parse(Source("term", f"p <- {text}.\n"))
    assert not found, found
    (rule,) = module.statements
    assert isinstance(rule, Rule)
    (literal,) = rule.body
    assert isinstance(literal, Comparison | Atom)
    return literal


def term_of(text: str) -> Term:
    literal = literal_of(f"R = {text}")
    assert isinstance(literal, Comparison)
    return literal.right


def by_kernel(code: str, names: Sequence[str], row: Row) -> Any:
    found = eval(code, dict(FUNCTIONS), {f"v_{n}": v for n, v in zip(names, row, strict=True)})
    return whole(found) if type(found) is int else found


def by_duckdb(
    db: duckdb.DuckDBPyConnection, what: Value, names: Sequence[str], rows: Sequence[Row]
) -> list[Any]:
    """Of each row. An error of one is an error of all."""
    kinds = ", ".join(f"{n} {SQL[TYPES[type(v)]]}" for n, v in zip(names, rows[0], strict=True))
    db.execute(f"CREATE OR REPLACE TEMP TABLE operands (number INTEGER, {kinds})")
    lists = [list(range(len(rows))), *map(list, zip(*rows, strict=True))]
    db.execute(f"INSERT INTO operands SELECT {', '.join(['unnest(?)'] * len(lists))}", lists)
    failing = [
        exp.If(this=f, true=exp.func("raise_error", exp.Literal.string(""))) for f in what.fails
    ]
    column = exp.Case(ifs=failing, default=what.sql) if failing else what.sql
    query = exp.select(column.as_("found")).from_("operands").order_by("number")
    return [row[0] for row in db.execute(render(query, "duckdb")).fetchall()]


def agree(
    db: duckdb.DuckDBPyConnection, code: str, what: Value, names: Sequence[str], rows: list[Row]
) -> None:
    good: list[tuple[Row, Any]] = []
    bad: list[Row] = []
    for row in rows:
        try:
            good.append((row, by_kernel(code, names, row)))
        except ERRORS:
            bad.append(row)
    if good:
        found = by_duckdb(db, what, names, [row for row, _ in good])
        wrong = [
            (row, expected, f)
            for (row, expected), f in zip(good, found, strict=True)
            if not same(expected, f)
        ]
        assert wrong == [], "operands, kernel, DuckDB"
    for row in Random(code).sample(bad, min(len(bad), 12)):
        with pytest.raises(duckdb.Error):
            print(row, by_duckdb(db, what, names, [row]))


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def environment(names: Sequence[str], row: Row) -> dict[str, Value]:
    return {n: Value(exp.column(n), TYPES[type(v)]) for n, v in zip(names, row, strict=True)}


def check_term(db: duckdb.DuckDBPyConnection, text: str, names: str, rows: Iterable[Row]) -> None:
    term, rows = term_of(text), list(rows)
    agree(db, kernel.python(term), value(term, environment(names, rows[0])), names, rows)


@pytest.mark.parametrize(
    "text",
    [
        "A + B",
        "A - B",
        "A * B",
        "A // B",
        "A % B",
        "max(A, B)",
        "min(A, B, 3)",
        "floor(A, B)",
        "if(A < B, A, B)",
        "if(A = B, A // B, A % 3)",
        "if(B != 0, A // B, 0)",
        "if(in(A, B, 2, -7), A, 0)",
        "ceil(A, B)",
        "-A",
        "abs(A)",
        "A + 1",
        "1 - A",
        "A * -3",
        "A // 3",
        "A // -3",
        "A % 3",
        "A % -3",
        "7 // A",
        "-7 // A",
        "7 % A",
        "-7 % A",
        "A // 0",
        "A % 0",
        "floor(A, 5)",
        "ceil(A, 5)",
        "floor(17, A)",
        "floor(A, 0)",
        "ceil(A, -2)",
    ],
)
def test_whole_numbers(db, text: str) -> None:
    rows = set(itertools.product(INTS, INTS)) - {(INT64_MIN, -1)}
    check_term(db, text, "AB", sorted(rows))


@pytest.mark.parametrize(
    "text",
    [
        "- -A",
        "A - (B - 1)",
        "(A - B) - 1",
        "-(A + B)",
        "(A + B) * 2 // 3 % 5",
        "A // (B // 2)",
        "A % B // B",
        "floor(A + 1, 3) - ceil(B, 4)",
        "floor(ceil(A, 3), B)",
        "2 + 3 * 4 - A",
        "max(A, B - 3, A % 2) * abs(A - B)",
        'length(substr("abcdef", A, B)) - A',
    ],
)
def test_terms_within_terms(db, text: str) -> None:
    """What leaves 64 bits on the way is an error in DuckDB alone."""
    check_term(db, text, "AB", itertools.product(SMALL, SMALL))


@pytest.mark.parametrize("text", ["A / B", "A / 4", "1 / A", "A / 0", "A // 2 / 3", "(A + B) / 2"])
def test_a_quotient_is_a_float(db, text: str) -> None:
    check_term(db, text, "AB", itertools.product(SMALL, SMALL))


@pytest.mark.parametrize(
    "text",
    [
        "F + G",
        "F - G",
        "F * G",
        "F / G",
        "-F",
        "abs(F)",
        "max(F, G)",
        "min(F, G)",
        "F * 0.1",
        "F / 3.0",
    ],
)
def test_floats(db, text: str) -> None:
    check_term(db, text, "FG", itertools.product(FLOATS[:-1], FLOATS[:-1]))


@pytest.mark.parametrize(
    "text",
    [
        "length(X)",
        "X ++ Y",
        'X ++ "-" ++ Y',
        "max(X, Y)",
        "min(X, Y)",
        "length(X ++ Y) * 2",
    ],
)
def test_texts(db, text: str) -> None:
    check_term(db, text, "XY", itertools.product(TEXTS, TEXTS))


@pytest.mark.parametrize(
    "text",
    [
        "substr(X, A)",
        "substr(X, A, B)",
        "substr(X, A, 2)",
        "substr(X, 1, B)",
        "substr(X, -1, B)",
        "substr(X, 1)",
        "substr(X, -2)",
        "substr(X, 0, 2)",
        "substr(X, -1, 3)",
        "substr(X, -3, 2)",
        "substr(X, 2, -1)",
        "substr(X, A - 1, B + 1)",
    ],
)
def test_parts_of_texts(db, text: str) -> None:
    check_term(db, text, "XAB", itertools.product(TEXTS, SMALL, SMALL))


def test_parts_of_texts_far_away(db) -> None:
    far = (-(2**40), -3, 1, 2**31 - 1, 2**31, 2**40)
    check_term(db, "substr(X, A, B)", "XAB", itertools.product(TEXTS, far, far))
    check_term(db, "substr(X, A)", "XA", itertools.product(TEXTS, far))


# --------------------------------------------------------------------------------- comparisons

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


def check_test(db: duckdb.DuckDBPyConnection, text: str, names: str, rows: Iterable[Row]) -> None:
    literal, rows = literal_of(text), list(rows)
    agree(db, kernel.test(literal), sql.test(literal, environment(names, rows[0])), names, rows)


@pytest.mark.parametrize("op", OPERATORS)
def test_comparisons(db, op: str) -> None:
    check_test(db, f"A {op} B", "AB", itertools.product(INTS, INTS))
    check_test(db, f"F {op} G", "FG", itertools.product(FLOATS, FLOATS))
    check_test(db, f"X {op} Y", "XY", itertools.product((*TEXTS, *AWKWARD), TEXTS))
    check_test(db, f"A // B {op} 2", "AB", itertools.product(SMALL, SMALL))
    check_test(db, f"A - B {op} B % 3", "AB", itertools.product(SMALL, SMALL))


EXACT = (*FLOATS, 2.0**53, 2.0**53 + 2, 2.0**62, -(2.0**63), 2.0**63, -1e300, float(INT64_MAX))


@pytest.mark.parametrize("op", OPERATORS)
def test_a_whole_number_and_a_float_by_their_exact_values(db, op: str) -> None:
    rows = list(itertools.product((*INTS, 2**53, 2**53 + 1, 2**53 + 2), EXACT))
    check_test(db, f"A {op} F", "AF", rows)
    check_test(db, f"F {op} A", "FA", [(f, a) for a, f in rows])


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("number", [-2.5, -2.0, 0.0, 0.1, 2.0, 2.5, 1e18, 1e19, -1e19, 2.0**63])
def test_with_a_constant(db, op: str, number: float) -> None:
    literal = literal_of("A = B")
    const = Value(exp.Literal.number(repr(number)), Type.FLOAT, const=number)
    what = compare(op, Value(exp.column("A"), Type.INT), const, literal)
    python = {"=": "=="}.get(op, op)
    agree(db, f"v_A {python} {number!r}", what, "A", [(n,) for n in INTS])
    check_test(db, f"F {op} 2", "F", [(f,) for f in FLOATS])


@pytest.mark.parametrize("name", ["contains", "starts_with"])
def test_tests_of_texts(db, name: str) -> None:
    texts = (*TEXTS, *AWKWARD)
    check_test(db, f"{name}(X, Y)", "XY", itertools.product(texts, texts))


# ----------------------------------------------------------------------------------- constants


def quoted(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\u000d"}
    return '"' + "".join(escapes.get(c, c) for c in text) + '"'


@pytest.mark.parametrize("text", AWKWARD)
def test_a_text_is_itself(db, text: str) -> None:
    check_term(db, f"{quoted(text)} ++ X", "X", [("",), ("x",)])
    check_test(db, f"X = {quoted(text)}", "X", [(t,) for t in AWKWARD])
    check_test(db, f"contains(X, {quoted(text)})", "X", [(t,) for t in AWKWARD])


@pytest.mark.parametrize(
    "number", [*INTS, *FLOATS, 5e-324, 1.7976931348623157e308, 1e16, 123456.789]
)
def test_a_number_is_itself(db, number: float) -> None:
    const = Const(number, TYPES[type(number)], span=term_of("1").span)
    agree(db, repr(number), value(const, {}), "A", [(1,)])


@pytest.mark.parametrize("text", ["lower(X)", "upper(X)"])
def test_no_query(text: str) -> None:
    with pytest.raises(Unsupported):
        value(term_of(text), environment("X", ("a",)))


@pytest.mark.parametrize("text", AWKWARD)
def test_a_text_in_the_dialect_of_spark(text: str) -> None:
    """Backslashes escape there; settings stand in `${…}`, inside of texts too."""
    written = render(value(term_of(quoted(text)), {}).sql, "spark")
    assert "${" not in written
    read = parse_one(written, dialect="spark")
    assert "".join(part.name for part in read.find_all(exp.Literal, bfs=False)) == text


def test_a_slice_in_the_text_of_a_query() -> None:
    text = r"SELECT c0 FROM x AS g WHERE c0 >= :low AND c1 = ':low \' :high' AND g.c0 < :high + 1"
    wanted = (
        r"SELECT c0 FROM x AS g WHERE c0 >= CAST('-5' AS BIGINT) AND c1 = ':low \' :high' "
        "AND g.c0 < CAST('7' AS BIGINT) + 1"
    )
    assert with_slice(text, -5, 7) == wanted
    assert with_slice("SELECT 1", 0, 1) == "SELECT 1"
