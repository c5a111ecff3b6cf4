"""How Spark would evaluate each component, and why: `fixtures/strategies.txt`."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import pytest
from fixture_pairs import compare, params

from streamlog.app import show
from streamlog.compiler import compile_source
from streamlog.diagnostics import Source
from streamlog.plan.parts import Strategy
from streamlog.plan.recognise import recursions
from streamlog.plan.sql import Context
from streamlog.plan.strategies import SMALL, choose


@pytest.mark.parametrize(("name", "title", "program", "expected"), params("strategies"))
def test_strategies(name: str, title: str, program: str, expected: str) -> None:
    compilation = compile_source(Source("fixture", program))
    assert compilation.ok, compilation.diagnostics
    lines = show.plan(compilation).split("\n")
    on_spark = [
        line
        for line, below in pairwise(lines)
        if below.startswith("  on Spark: ") or line.startswith(("  on Spark: ", "  with Graph"))
    ]
    compare(name, title, "\n".join(on_spark), expected)


# ------------------------------------------------------------------------------ by the rows

PATHS = """
table link(a: int, b: int).
reach(X, Y) <- link(X, Y).
reach(X, Z) <- reach(X, Y), link(Y, Z).
"""
# Two predicates call each other: no path that GraphFrames could follow.
MUTUAL = """
table link(a: int, b: int).
reach(X, Y) <- link(X, Y).
reach(X, Z) <- even(X, Y), link(Y, Z).
even(X, Z) <- reach(X, Y), link(Y, Z).
"""


@pytest.mark.parametrize(
    ("program", "wanted", "rows", "strategy", "reason"),
    [
        (PATHS, None, 7, "kernel", "recursive, about 7 rows: no more than 1,000,000"),
        (PATHS, None, SMALL, "kernel", "recursive, about 1,000,000 rows: no more than 1,000,000"),
        (
            PATHS,
            None,
            SMALL + 1,
            "fixpoint",
            "recursive, about 1,000,001 rows: more than 1,000,000",
        ),
        (
            PATHS,
            None,
            inf,
            "fixpoint",
            "recursive, over a number of rows that Spark cannot estimate",
        ),
        (PATHS, None, None, "kernel", "recursive, batch by batch"),
        (PATHS, "fixpoint", 7, "fixpoint", "asked for"),
        (PATHS, "kernel", inf, "kernel", "asked for"),
        (PATHS, "graph", 7, "graph", "asked for: closure of link, from column 1 to column 2"),
        (
            MUTUAL,
            "graph",
            7,
            "kernel",
            "recursive, about 7 rows: no more than 1,000,000; "
            "not path-shaped: `even` and `reach` call each other",
        ),
    ],
)
def test_the_rows_and_the_wish_decide(
    program: str, wanted: str | None, rows: float | None, strategy: str, reason: str
) -> None:
    compilation = compile_source(Source("fixture", program))
    closed, plan = compilation.closed, compilation.closed.plan
    found = recursions(plan, closed.schema, closed.types)
    context = Context(plan, closed.types, closed.times)
    chosen = choose(context, Strategy(wanted) if wanted else None, rows, found)["reach"]
    assert (chosen.strategy.value, chosen.reason) == (strategy, reason)
