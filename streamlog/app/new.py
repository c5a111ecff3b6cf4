"""`streamlog new`: a folder with a worked example."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamlog.syntax.root import PROJECT

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

# The one file whose name is the project's.
PROGRAM = "program.slog"


@click.command("new")
@click.argument("name")
def command(name: str) -> None:
    """Create a project with a worked example.

    The folder NAME gets a program with its tests, some data to run it on, a README and a
    streamlog.toml, whose folder is the root of the project.

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
    steps = {
        f"streamlog test {name}": "do its tests pass?",
        f"streamlog run {name}/{name}.slog": "its answers, from the rows in data/",
        f"streamlog explain {name}/{name}.slog": "how late is each answer, and what is kept?",
    }
    width = max(map(len, steps))
    click.echo(
        f"created {name}/ with {name}.slog, its README.md, data/ and {PROJECT}, which makes it a "
        "project\n\nnext:\n"
        + "\n".join(f"  {step:{width}}   {what}" for step, what in steps.items())
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
