"""What `streamlog explain` says about every program, at 80 columns and without colour.

The programs are those in `rules/` and `tests/programs/`; the goldens lie below `tests/goldens/` at
the same paths. Programs for stored data are explained with `--batch`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamlog.app.cli import main

ROOT = Path(__file__).parents[1]
GOLDENS = ROOT / "tests" / "goldens"
PROGRAMS = sorted(
    path.relative_to(ROOT)
    for folder in ("rules", "tests/programs")
    for path in (ROOT / folder).rglob("*.slog")
)
VIEWS = ("contract", "strata", "bistate")


def golden_of(program: Path) -> Path:
    """tests/programs/fire/program.slog → tests/goldens/programs/fire.txt"""
    name = program.relative_to("tests") if program.parts[0] == "tests" else program
    return GOLDENS / (name.parent if name.name == "program.slog" else name).with_suffix(".txt")


def explained(program: Path, view: str) -> str:
    batch = ["--batch"] if "stored" in program.parts else []
    result = CliRunner().invoke(main, ["explain", f"--{view}", *batch, str(program)])
    assert (result.exit_code, result.stderr) == (0, "")
    return f"% --{view}\n\n{result.stdout}"


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_explain(
    program: Path, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    golden(golden_of(program), "\n".join(explained(program, view) for view in VIEWS))


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_check(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    batch = ["--batch"] if "stored" in program.parts else []
    result = CliRunner().invoke(main, ["check", *batch, str(program)])
    assert result.exit_code == 0, result.stderr


def test_no_golden_without_a_program() -> None:
    assert set(GOLDENS.rglob("*.txt")) == {golden_of(program) for program in PROGRAMS}
