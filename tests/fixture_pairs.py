"""`tests/fixtures/<name>.txt` holds titled pairs of a program and what becomes of it.

# a title
the program
---
the text

`UPDATE_GOLDENS=1 pytest -n0` writes the texts anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent / "fixtures"
UPDATE = os.environ.get("UPDATE_GOLDENS", "") not in ("", "0")
_PAIR = re.compile(r"^# (.+)\n((?:.*\n)+?)---\n((?:(?!# ).*\n)*)", re.MULTILINE)


def pairs(name: str) -> Iterator[tuple[str, str, str]]:
    """Title, program and text."""
    text = (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")
    found = _PAIR.findall(text)
    assert len(found) == len(re.findall("^# ", text, re.MULTILINE))
    for title, program, expected in found:
        yield title, program, expected.strip()


def params(*names: str) -> list[object]:
    return [
        pytest.param(name, title, program, expected, id=f"{name}: {title}")
        for name in names
        for title, program, expected in pairs(name)
    ]


def compare(name: str, title: str, found: str, expected: str) -> None:
    if UPDATE:
        path = FIXTURES / f"{name}.txt"
        parts = [
            f"# {t}\n{program}---\n{found.strip() if t == title else text}\n"
            for t, program, text in pairs(name)
        ]
        path.write_text("\n".join(parts), encoding="utf-8")
        expected = found.strip()
    assert found.strip() == expected
