"""The files around the package say what is true."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
from pathlib import Path

import pytest

from streamlog.app.cli import COMMANDS
from streamlog.compiler import PASSES


def commands(readme: str) -> list[str]:
    return re.findall(r"^```bash\n(.*?)^```$", readme, re.M | re.S)


def test_the_readme_has_two_commands_of_one_line(repository: Path) -> None:
    found = commands((repository / "README.md").read_text(encoding="utf-8"))
    assert len(found) == 2
    assert all(command.count("\n") == 1 for command in found)


def test_the_readme_shows_what_its_program_prints(run, write, repository: Path) -> None:
    """On standard output; figures and messages would make the page long."""
    readme = (repository / "README.md").read_text(encoding="utf-8")
    program = re.search(r"^```slog\n(.*?)^```$", readme, re.M | re.S)
    shown = re.search(r"^```text\n(.*?)^```$", readme, re.M | re.S)
    assert program is not None
    assert shown is not None
    write("alarm.slog", program[1])
    lines = re.findall(r"^\$ streamlog (.*)$", shown[1], re.M)
    printed = (f"$ streamlog {line}\n{run(*line.split()).stdout}" for line in lines)
    assert "\n".join(printed) == shown[1]


def test_the_picture_in_the_readme_is_what_the_commands_print(repository: Path) -> None:
    made = runpy.run_path(str(repository / "docs" / "pictures" / "make.py"))
    kept = repository / "docs" / "pictures" / "first_alarm.svg"
    assert f"]({kept.relative_to(repository)})" in (repository / "README.md").read_text("utf-8")
    # `python docs/pictures/make.py` makes it anew.
    assert made["picture"]() == kept.read_text(encoding="utf-8")


def test_the_page_of_commands_is_complete(repository: Path) -> None:
    page = (repository / "docs" / "commands.md").read_text(encoding="utf-8")
    assert sorted(set(re.findall(r"^\| `streamlog (\w+)", page, re.M))) == sorted(COMMANDS)


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
