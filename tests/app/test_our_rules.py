"""The programs in rules/ as a team would keep them: no warnings, metadata at every rule."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from streamlog.compiler import Mode, Program, compile_file
from streamlog.syntax.ast import Rule
from streamlog.syntax.metadata import metadata

ROOT = Path(__file__).parents[2] / "rules"
FILES = sorted(ROOT.rglob("*.slog"))
STORED = [path for path in FILES if path.parent.name == "stored"]


def test_no_warnings(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one command, as the project says which programs are for stored data."""
    monkeypatch.chdir(ROOT)
    result = run("check", "--strict")
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    assert f"checked {len(FILES)} files" in result.stderr and STORED


@pytest.fixture(scope="module")
def programs() -> list[Program]:
    modes = {True: Mode.BATCH, False: Mode.STREAM}
    found = [compile_file(path, mode=modes[path in STORED]) for path in FILES]
    return [program for program in found if isinstance(program, Program)]


def test_every_rule_has_an_id_of_its_own(programs: list[Program]) -> None:
    assert len(programs) == len(FILES)
    rules = [s for p in programs for s in p.parsed.statements if isinstance(s, Rule)]
    ids = Counter(metadata(rule).get("id") for rule in rules)
    assert [id for id, times in ids.items() if id is None or times > 1] == []


def test_every_answer_has_a_severity_tags_and_an_owner(programs: list[Program]) -> None:
    assert [
        rule.span.place
        for program in programs
        for rule in program.parsed.statements
        if isinstance(rule, Rule)
        and rule.head.pred in program.contract.outputs
        and not {"severity", "tags", "owner"} <= metadata(rule).keys()
    ] == []
