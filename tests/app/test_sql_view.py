"""`explain --sql`: the queries that Spark runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlglot import parse

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "rules").rglob("*.slog"))

PROGRAM = """\
stream order(T: time, id: string, n: int).
stream paid(T: time, id: string).
table part(whole: string, piece: string).
first(T, I) <- order(T, I, _), not (order(T0, I, _), T0 < T).
unpaid(T, I) <- order(T, I, N), N > 2, not (paid(T1, I), T <= T1, T1 <= T + 1h).
total(T, sum(N)) <- order(T, _, N).
within(X, Y) <- part(X, Y).
within(X, Z) <- within(X, Y), part(Y, Z).
loud(T, I) <- order(T, I, _).
loud(T, J) <- paid(T, I), J = upper(I).
again(T, I) <- order(T, I, _), not (again(T0, I), T0 < T, T <= T0 + 1h).
"""


def test_a_program_with_everything(run, write, golden) -> None:
    write("a.slog", PROGRAM)
    result = run("explain", "--sql", "a.slog")
    assert (result.exit_code, result.stderr) == (0, "")
    golden(Path(__file__).with_name("sql.txt"), result.stdout)


def test_stored_data_have_no_slices(run, write) -> None:
    write("a.slog", "p(T, X) <- q(T, X, _).\n")
    assert run("explain", "--sql", "--batch", "a.slog").stdout == (
        "-- p(T, X) <- q(T, X, _).\nSELECT DISTINCT\n  g0.c0 AS c0,\n  g0.c1 AS c1\nFROM q AS g0;\n"
    )


def test_types_that_only_the_data_tell(run, write) -> None:
    write("a.slog", "p(T) <- q(T, X, Y), X < Y.\n")
    assert run("explain", "--sql", "a.slog").stdout == (
        "-- p(T) <- q(T, X, Y), X < Y.\n"
        "-- no SQL until the data tell more: `X < Y` compares values of unknown type\n"
    )


def test_as_json(run, write) -> None:
    write("a.slog", "p(T) <- q(T).\np(T) <- r(T, X), matches(X, X).\n")
    (program,) = json.loads(run("explain", "--sql", "--format", "json", "a.slog").stdout)[
        "programs"
    ]
    one, other = program["sql"]
    assert list(one) == ["predicate", "rules", "note", "sql"]
    assert (one["predicate"], one["rules"], one["note"]) == ("p", ["p(T) <- q(T)."], None)
    assert one["sql"].startswith("SELECT\n  g0.c0 AS c0\nFROM q AS g0")
    assert other["sql"] is None
    assert other["note"].endswith("regular expressions differ between engines")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_every_program_is_a_script(run, path: Path) -> None:
    first, second = (run("explain", "--sql", "--batch", str(path)) for _ in range(2))
    assert (first.exit_code, first.stdout) == (0, second.stdout)
    parse(first.stdout, "spark")
