"""Running the command line in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streamlog.app.cli import main

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run streamlog in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STREAMLOG_DEBUG", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def run(*args: str, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(main, args, input=input, prog_name="streamlog")

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file below that folder."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    return write


@pytest.fixture
def repository() -> Path:
    return Path(__file__).parents[2]
