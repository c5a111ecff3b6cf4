"""What rows are dealt out by, all rules of a program being one part: `fixtures/pivot.txt`."""

from __future__ import annotations

import pytest
from fixture_pairs import compare, params

from streamlog.compiler import compile_source
from streamlog.diagnostics import Source
from streamlog.plan.parts import part
from streamlog.plan.pivot import MOST_KERNELS, ROWS_A_KERNEL, Pivot, find, how_many
from streamlog.plan.steps import Plan


def pivot_of(text: str) -> tuple[Plan, Pivot | None]:
    compilation = compile_source(Source("fixture", text))
    assert compilation.ok, compilation.diagnostics
    plan, closed = compilation.closed.plan, compilation.closed
    schema, types = closed.schema, closed.types
    defined = {r.rule.head.pred for r in plan.rules}
    whole = part(plan, [c for c in plan.components if c.preds[0] in defined])
    return whole, find(whole, schema.is_temporal, types.column)


@pytest.mark.parametrize(("name", "title", "program", "expected"), params("pivot"))
def test_pivot(name: str, title: str, program: str, expected: str) -> None:
    whole, pivot = pivot_of(program)
    if pivot is None:
        lines = ["none"]
    else:
        lines = [
            f"{pred} by column {pivot.columns[pred] + 1}"
            if pred in pivot.columns
            else f"{pred} to all"
            for pred in sorted(whole.arity)
        ]
    compare(name, title, "\n".join(lines), expected)


def test_many_rules_that_have_none_are_soon_given_up() -> None:
    rules = [
        f"p{i}(T, X, Y) <- s(T, X, Y), not (p{i}(T0, X, Y), T0 < T, T <= T0 + 5)."
        for i in range(40)
    ]
    turned = "z(T, X, Y) <- s(T, X, Y). z(T, X, Y) <- z(T, Y, X)."
    text = "\n".join(["stream s(T: int, x: string, y: string).", *rules])
    assert pivot_of(text)[1] is not None
    assert pivot_of(f"{text}\n{turned}")[1] is None


def test_the_cost_rule() -> None:
    assert how_many(ROWS_A_KERNEL - 1, cores=4) == 1
    assert how_many(3 * ROWS_A_KERNEL, cores=4) == 3
    assert how_many(10**9, cores=4) == 4
    assert how_many(None, cores=4) == 4
    assert how_many(None, cores=10**4) == MOST_KERNELS
