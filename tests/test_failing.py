"""Each code has programs that give it, with the exact text a user reads.

`failing/SL0401_negated.slog` gives SL0401; `SL0401_negated.txt` is what `streamlog check` prints.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamlog.app.cli import main
from streamlog.codes import CODES, Code
from streamlog.compiler import compile_source
from streamlog.diagnostics import Source

FOLDER = Path(__file__).parent / "failing"
PROGRAMS = sorted(FOLDER.glob("*.slog"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_text(
    program: Path, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    result = CliRunner().invoke(main, ["check", program.name])
    code = program.stem.split("_")[0]
    assert f"[{code}]" in result.stderr
    assert result.stdout == ""
    golden(program.with_suffix(".txt"), f"{result.stderr}exit code {result.exit_code}\n")


def test_every_code_has_a_program() -> None:
    assert {p.stem.split("_")[0] for p in PROGRAMS} == set(CODES)


def test_no_text_without_a_program() -> None:
    assert {p.stem for p in FOLDER.glob("*.txt")} == {p.stem for p in PROGRAMS}


def codes_given(text: str, folder: Path) -> list[str]:
    return [d.code for d in compile_source(Source("page", text), root=folder).diagnostics]


@pytest.mark.parametrize("code", CODES.values(), ids=lambda c: c.code)
def test_page(code: Code, tmp_path: Path) -> None:
    """The bad program gives the code, the good one gives nothing at all."""
    assert code.code in codes_given(code.bad, tmp_path)
    assert codes_given(code.good, tmp_path) == []
    assert code.bad != code.good


def test_every_page_has_a_code() -> None:
    pages = Path(__file__).parents[1] / "streamlog" / "pages"
    assert {p.name for p in pages.iterdir()} == {f"{code}.md" for code in CODES}
