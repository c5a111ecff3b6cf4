"""`streamlog new`: a folder with a worked example."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

# The one file whose name is the project's.
PROGRAM = "program.slog"


@click.command("new")
@click.argument("name")
def command(name: str) -> None:
    """Create a folder with a worked example.

    The folder NAME gets a program with its tests, some data to run it on and a README.

    \b
    streamlog new airport
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise click.UsageError(
            f"{name!r} cannot be a project's name: "
            "use letters, digits, - and _, beginning with a letter"
        )
    folder = Path(name)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise click.UsageError(f"'{name}' already exists, and streamlog new overwrites nothing")
    _copy(files("streamlog.app") / "template", folder, name)
    check, explain = f"streamlog check {name}", f"streamlog explain {name}/{name}.slog"
    click.echo(
        f"created {name}/ with {name}.slog, its README.md and data/\n"
        "\n"
        "next:\n"
        f"  {check:{len(explain)}}   check the program for errors\n"
        f"  {explain}   how late is each answer, and what is kept?"
    )


def _copy(template: Traversable, folder: Path, name: str) -> None:
    folder.mkdir(exist_ok=True)
    for entry in sorted(template.iterdir(), key=lambda e: e.name):
        if entry.is_dir():
            _copy(entry, folder / entry.name, name)
            continue
        target = folder / (f"{name}.slog" if entry.name == PROGRAM else entry.name)
        text = entry.read_text(encoding="utf-8").replace("{{name}}", name)
        target.write_text(text, encoding="utf-8")
