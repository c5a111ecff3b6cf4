"""What rows are dealt out by, all rules of a program being one part: `fixtures/pivot.txt`."""

from __future__ import annotations

import pytest
from fixture_pairs import compare, params

from streamlog.compiler import compile_source, the
from streamlog.diagnostics import Source
from streamlog.plan.parts import part
from streamlog.plan.pivot import MOST_KERNELS, ROWS_A_KERNEL, find, how_many


@pytest.mark.parametrize(("name", "title", "program", "expected"), params("pivot"))
def test_pivot(name: str, title: str, program: str, expected: str) -> None:
    compilation = compile_source(Source("fixture", program))
    assert compilation.ok, compilation.diagnostics
    plan, closed = the(compilation.plan), the(compilation.closed)
    schema, types = the(closed.schema), the(closed.types)
    defined = {r.rule.head.pred for r in plan.rules}
    whole = part(plan, [c for c in plan.components if c.preds[0] in defined])
    pivot = find(whole, schema.is_temporal, types.column)
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


def test_the_cost_rule() -> None:
    assert how_many(ROWS_A_KERNEL - 1, cores=4) == 1
    assert how_many(3 * ROWS_A_KERNEL, cores=4) == 3
    assert how_many(10**9, cores=4) == 4
    assert how_many(None, cores=4) == 4
    assert how_many(None, cores=10**4) == MOST_KERNELS
