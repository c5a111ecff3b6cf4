"""How Spark would evaluate each component, and why: `fixtures/strategies.txt`."""

from __future__ import annotations

from itertools import pairwise

import pytest
from fixture_pairs import compare, params

from streamlog.app import show
from streamlog.compiler import compile_source
from streamlog.diagnostics import Source


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
