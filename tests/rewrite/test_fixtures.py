"""Each rewrite on small programs: `tests/fixtures/<pass>.txt` holds input and expected text.

# a title
the program
---
what `check --dump-after <pass>` prints for it
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamlog.app.dumps import DUMPS
from streamlog.compiler import compile_source
from streamlog.diagnostics import Source

FIXTURES = Path(__file__).parents[1] / "fixtures"
REWRITES = ("bistate", "close", "constants", "desugar", "open_predicates", "plan")
NO_PROGRAM = ("open_predicates", "plan")  # shown in words
_PAIR = re.compile(r"^# (.+)\n((?:.*\n)+?)---\n((?:(?!# ).*\n)*)", re.MULTILINE)


def pairs() -> Iterator[object]:
    for name in REWRITES:
        text = (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")
        found = _PAIR.findall(text)
        assert len(found) == len(re.findall("^# ", text, re.MULTILINE))
        for title, program, expected in found:
            yield pytest.param(name, program, expected.strip(), id=f"{name}: {title}")


PAIRS = tuple(pairs())


@pytest.mark.parametrize(("name", "program", "expected"), PAIRS)
def test_pass(name: str, program: str, expected: str) -> None:
    compilation = compile_source(Source("fixture", program), until=name)
    assert compilation.ok
    assert (DUMPS[name](compilation) or "").strip() == expected


@pytest.mark.parametrize(("name", "program", "expected"), PAIRS)
def test_expected_text_is_a_program(name: str, program: str, expected: str) -> None:
    if name not in NO_PROGRAM:
        assert compile_source(Source("expected", expected + "\n")).ok


def test_every_fixture_is_read() -> None:
    assert {p.stem for p in FIXTURES.glob("*.txt")} == set(REWRITES)
