"""Each rewrite on small programs: `tests/fixtures/<pass>.txt` holds input and expected text.

# a title
the program
---
what `check --dump-after <pass>` prints for it
"""

from __future__ import annotations

import pytest
from fixture_pairs import FIXTURES, compare, params

from streamlog.app.dumps import dump
from streamlog.compiler import compile_source
from streamlog.diagnostics import Source
from streamlog.plan.rewrites import REWRITES as PLAN_REWRITES

REWRITES = ("bistate", "close", "constants", "desugar", "open_predicates", "plan")
NO_PROGRAM = ("open_predicates", "plan")  # shown in words
ELSEWHERE = {"pivot", "sql", "strategies"}  # not of a pass: tests/plan
PAIRS = params(*REWRITES)


@pytest.mark.parametrize(("name", "title", "program", "expected"), PAIRS)
def test_pass(name: str, title: str, program: str, expected: str) -> None:
    compilation = compile_source(Source("fixture", program), until=name)
    assert compilation.ok
    compare(name, title, dump(compilation, name) or "", expected)


@pytest.mark.parametrize(("name", "title", "program", "expected"), PAIRS)
def test_expected_text_is_a_program(name: str, title: str, program: str, expected: str) -> None:
    if name not in NO_PROGRAM:
        assert compile_source(Source("expected", expected + "\n")).ok


def test_every_fixture_is_read() -> None:
    assert {p.stem for p in FIXTURES.glob("*.txt")} == {*REWRITES, *ELSEWHERE}


def test_every_rewrite_of_the_plan_has_a_pair() -> None:
    shown = {title.split(":")[0] for name, title, *_ in (p.values for p in PAIRS) if name == "plan"}
    assert {r.name for r in PLAN_REWRITES} <= shown
