"""The files around the package say what is true."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from streamlog.compiler import PASSES


def commands(readme: str) -> list[str]:
    return re.findall(r"^```bash\n(.*?)^```$", readme, re.M | re.S)


def test_the_readme_has_two_commands_of_one_line(repository: Path) -> None:
    found = commands((repository / "README.md").read_text(encoding="utf-8"))
    assert len(found) == 2
    assert all(command.count("\n") == 1 for command in found)


def test_the_contract_in_the_readme_is_that_of_its_program(run, repository: Path) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    program = re.search(r"^```\n(.*?)^```$", readme, re.M | re.S)
    contract = re.search(r"^```text\n(.*?)^```$", readme, re.M | re.S)
    assert program is not None
    assert contract is not None
    assert run("explain", "-", input=program[1]).stdout == contract[1]


def test_ci_runs_the_test_command_of_the_readme(repository: Path) -> None:
    script = repository / ".ci" / "run"
    assert os.access(script, os.X_OK)
    shown = subprocess.run([script, "--show"], capture_output=True, text=True, check=True).stdout
    assert shown == commands((repository / "README.md").read_text(encoding="utf-8"))[1]


@pytest.mark.parametrize("tool", ["ruff check", "ruff format --check", "mypy", "pytest"])
def test_the_test_command_runs_every_tool(repository: Path, tool: str) -> None:
    assert (
        f".venv/bin/{tool}" in commands((repository / "README.md").read_text(encoding="utf-8"))[1]
    )


def test_contributors_are_told_the_passes(repository: Path) -> None:
    passes = " → ".join(p.name for p in PASSES)
    assert f"`{passes}`" in (repository / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/diagnostics.md"]
)
def test_links_lead_somewhere(repository: Path, name: str) -> None:
    page = repository / name
    links = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_the_licence_is_whole(repository: Path) -> None:
    text = (repository / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert [f"{n}. " for n in range(1, 10) if f"\n   {n}. " not in text] == []
