"""Texts that tests compare with files: `UPDATE_GOLDENS=1 pytest` writes the files anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
# Commands run in this process, unless a test says otherwise: Spark takes seconds to start.
os.environ.setdefault("STREAMLOG_ENGINE", "local")
# A .slog file here is what some test reads, not a suite of its own.
collect_ignore_glob = ["*.slog"]

Golden = Callable[[Path, str], None]
UPDATE = os.environ.get("UPDATE_GOLDENS", "") not in ("", "0")


@pytest.fixture
def golden() -> Golden:
    """Compare a text with the file that holds what it should be."""

    def check(path: Path, text: str) -> None:
        if UPDATE:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"there is no {path.name}: run with UPDATE_GOLDENS=1 and read it"
        assert text == path.read_text(encoding="utf-8")

    return check


def pytest_report_header() -> str:
    """The seeds of the random tests; each test's name has its own."""
    given = {k: v for k, v in os.environ.items() if k.startswith("STREAMLOG_")}
    named = " ".join(f"{k}={v}" for k, v in sorted(given.items())) or "the defaults"
    return f"random programs: {named}; seeds stand in the names of the tests"
