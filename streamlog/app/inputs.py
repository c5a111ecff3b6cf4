"""The files a command works on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamlog.codes import Severity
from streamlog.diagnostics import Source

if TYPE_CHECKING:
    from streamlog.compiler import Compilation, Mode

STDIN = "-"
STDIN_NAME = "<stdin>"

# What `check` and `fmt` take; click refuses what does not exist.
TARGET = click.Path(exists=True, allow_dash=True)

batch_option = click.option(
    "--batch", is_flag=True, help="Accept rules that only complete, stored data can answer."
)


python_option = click.option(
    "--allow-python",
    is_flag=True,
    envvar="STREAMLOG_ALLOW_PYTHON",
    show_envvar=True,
    help="Execute the Python files from which the program has functions.",
)


def targets_argument(command: Any) -> Any:
    """The PATHs of a command; without any, the project that the current folder lies in."""

    def chosen(
        ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
    ) -> tuple[str, ...]:
        if value or ctx.resilient_parsing:
            return value
        from streamlog.app.project import project_here

        here = project_here()
        if here is None:
            raise click.UsageError(
                "Missing argument 'PATH...': this folder does not lie in a project"
            )
        return (here,)

    return click.argument("targets", metavar="[PATH]...", nargs=-1, type=TARGET, callback=chosen)(
        command
    )


def one_file(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A program, or standard input; of a folder, which programs there are."""
    if value is None or value == STDIN or not Path(value).is_dir():
        return value
    programs = list(islice(_below(value), 4))
    some = " or ".join(f"'{path}'" for path in programs[:3])
    hint = f"name one of its programs, such as {some}" if programs else "it has no .slog file"
    raise click.BadParameter(f"'{value}' is a folder; {hint}")


def files_of(targets: Iterable[str], *, to_write: bool = False) -> list[str]:
    """The files named, and all `*.slog` files below the folders named, each once; `to_write`:
    without links that lead out of their folder, which somebody may have put there."""
    found: dict[str, None] = {}
    for target in targets:
        if target == STDIN or not Path(target).is_dir():
            found[target] = None
            continue
        below = list(_below(target))
        if not below:
            raise click.UsageError(f"there is no .slog file below '{target}'")
        for path in below:
            if to_write and leads_out(Path(path), Path(target)):
                click.echo(f"{path} is a link that leads out of {target}: left unchanged", err=True)
            else:
                found[path] = None
    return list(found)


def leads_out(path: Path, folder: Path) -> bool:
    """Whether a file found in a folder is a link to one elsewhere."""
    return not path.resolve().is_relative_to(folder.resolve())


def _below(folder: str) -> Iterator[str]:
    """Sorted; hidden folders (.venv, .git and the like) are passed over."""
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        yield from (str(Path(path, name)) for name in sorted(names) if name.endswith(".slog"))


def compile_target(path: str, *, mode: Mode, until: str | None = None) -> Compilation:
    """Compile a file, or standard input as if it lay in the current folder. What the project
    allows is not among the findings."""
    from attrs import evolve

    from streamlog.app.project import project
    from streamlog.compiler import compile_file, compile_source
    from streamlog.syntax.root import project_of

    here = Path.cwd()
    settings = project(here if path == STDIN else path)
    known = path != STDIN and settings.is_stored(path)  # that it is for stored data
    if path != STDIN:
        compiled = compile_file(Path(path), mode=mode, until=until)
    else:
        root = project_of(here) or here
        compiled = compile_source(read_stdin(), mode=mode, root=root, until=until)
    left = tuple(
        d
        for d in compiled.diagnostics
        if d.is_error or not (d.code in settings.allowed or (known and d.severity is Severity.NOTE))
    )
    return compiled if left == compiled.diagnostics else evolve(compiled, diagnostics=left)


def mode_of(path: str, batch: bool) -> Mode:
    """Of a program: for stored data if somebody says so, or its project does."""
    from streamlog.app.project import project
    from streamlog.compiler import Mode

    stored = batch or (path != STDIN and project(path).is_stored(path))
    return Mode.BATCH if stored else Mode.STREAM


def read_stdin() -> Source:
    try:
        return Source(STDIN_NAME, decoded(sys.stdin.buffer.read()))
    except UnicodeDecodeError as error:
        raise click.UsageError(f"standard input is not UTF-8 text (byte {error.start})") from None


def decoded(data: bytes) -> str:
    """As Python reads a text file: without a byte-order mark, with one kind of line end."""
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
