"""What the columns of answers are called."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from strategies import heads
from streaming import compiled

from streamlog.analysis.column_names import column_names
from streamlog.analysis.schema import resolve
from streamlog.app.cli import main
from streamlog.syntax import ast

ORDER = "stream order(T: time, shop: string, amount: float, n: int).\n"
BODY = "order(T, S, A, N)"


def names(rules: str, pred: str = "p") -> tuple[str, ...]:
    return compiled(ORDER + rules).schema.column_names[pred]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("p(T, S, A)", ("T", "S", "A")),
        ("p(floor(T, 1h), S, sum(A), count())", ("T", "S", "sum_a", "count")),
        ("p(T, S, max<A>)", ("T", "S", "A")),
        ("p(T, min<A>, max<A>)", ("T", "min_a", "max_a")),
        ("p(T, S, S, T)", ("T", "S", "S_2", "T_2")),
        ("p(T, red, 5, true)", ("T", "value", "value_2", "value_3")),
        ("p(T + 1h, N + 1, lower(S), -N)", ("T", "n_plus_1", "lower_s", "minus_n")),
        ("p(T, count(S), count_distinct(S))", ("T", "count_s", "count_distinct_s")),
        ("p(T, sum(A * 2.0))", ("T", "sum_a_times_2_0")),
        ('p(T, S ++ "?!", S ++ S)', ("T", "s_and", "s_and_s")),
        ('p(T, "?!" ++ S)', ("T", "and_s")),
        ("p(T, N * N * N * N * N * N * N * N * N)", ("T", "value")),
        ("p(max(T, T + 1s), N)", ("T", "N")),
    ],
)
def test_names_from_the_head(head: str, expected: tuple[str, ...]) -> None:
    assert names(f"output p.\n{head} <- {BODY}.") == expected


def test_a_variable_of_any_rule_goes_before_a_term() -> None:
    assert names(f"output p.\np(T, red) <- {BODY}.\np(T, S) <- {BODY}.") == ("T", "S")
    assert names(f"output p.\np(T, red, N + 1) <- {BODY}.\np(T, S, 5) <- {BODY}.") == (
        *("T", "S", "n_plus_1"),
    )
    # A name that a rule has is not taken by one that is made.
    assert names(f"output p.\np(T, 5, N + 1, V, T) <- {BODY}, V = N.") == (
        *("T", "value", "n_plus_1", "V", "T_2"),
    )


def test_names_of_the_output() -> None:
    assert names(f"output p(hour, Total).\np(floor(T, 1h), sum(A)) <- {BODY}.") == ("hour", "Total")
    assert names(f"output p(a, b), p.\np(T, S) <- {BODY}.") == ("a", "b")


def test_unnamed_columns_of_an_input_have_numbers() -> None:
    program = compiled("table q(a: string, b: string).\noutput p.\np(T) <- s(T, _, X), q(X, _).")
    assert program.schema.column_names["s"] == ("T", "c1", "c2")


def test_a_timer_made_for_a_goal() -> None:
    rules = "output p.\np(T, S) <- T every 1h align 10min, s(U, S, _), U < T, T <= U + 1h."
    program = compiled(ORDER + rules)
    assert program.schema.column_names["every_1h_10min"] == ("T",)


@given(heads)
def test_every_head_has_names(head: ast.Atom) -> None:
    rule = ast.Rule(head, (ast.Atom("body", (), span=head.span),), span=head.span)
    schema, _ = resolve(ast.Module((rule,), span=head.span))
    if head.pred in schema.predicates:  # `tick` is not
        found = column_names(schema)[head.pred]
        assert len({name.casefold() for name in found}) == len(found) == head.arity
        assert not {"c0", "c1", "c2"} & {*found}


@pytest.mark.parametrize("end", ["csv", "jsonl", "parquet"])
def test_files(tmp_path: Path, end: str) -> None:
    rules = f"output p(hour, total), q.\np(floor(T, 1h), sum(A)) <- {BODY}.\n"
    rules += f"q(T, count()) <- {BODY}."
    (tmp_path / "a.slog").write_text(ORDER + rules)
    (tmp_path / "order.csv").write_text("T,shop,amount,n\n2026-01-01T00:10:00Z,A,1.5,2\n")
    files = [tmp_path / f"{name}.{end}" for name in "pq"]
    args = [f"--input=order={tmp_path / 'order.csv'}", "--engine=local"]
    args += (f"--output={file.stem}={file}" for file in files)
    result = CliRunner().invoke(main, ["run", str(tmp_path / "a.slog"), *args])
    assert result.exit_code == 0, result.stderr
    found = []
    for file in files:
        if end == "parquet":
            found.append(pq.read_schema(file).names)
        elif end == "csv":
            found.append(file.read_text().splitlines()[0].split(","))
        else:
            found.append(list(json.loads(file.read_text().splitlines()[0])))
    assert found == [["hour", "total"], ["T", "count"]]
