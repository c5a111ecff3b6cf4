"""`streamlog fmt`: one way to write a program."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path

import click
from attrs import frozen

from streamlog.app.formats import count
from streamlog.app.inputs import STDIN, STDIN_NAME, decoded, files_of, targets_argument
from streamlog.diagnostics import Diagnostic, Source, Span, finding, in_order


@frozen
class Formatted:
    """A file's standard form; without one, `text` is what the file holds."""

    source: Source
    original: bytes
    text: str
    errors: tuple[Diagnostic, ...] = ()

    @property
    def changed(self) -> bool:
        return self.text.encode() != self.original


@click.command("fmt")
@targets_argument
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; print what would change.")
@click.pass_context
def command(ctx: click.Context, targets: Sequence[str], check: bool, diff: bool) -> None:
    """Write programs in the standard form, in place.

    PATH is a file, a folder (all .slog files below it) or - for standard input,
    whose standard form goes to standard output; without PATH it is the project that
    the current folder lies in. Comments stay. A file with syntax
    errors is reported and left as it is, and so is a link in a folder that leads out
    of it.

    \b
    streamlog fmt rules/
    streamlog fmt --check --diff rules/
    streamlog fmt - < draft.slog
    """
    errors: list[Diagnostic] = []
    changed = unchanged = 0
    files = files_of(targets, to_write=not (check or diff))
    for file in files:
        formatted = format_file(file)
        errors += formatted.errors
        if formatted.errors:
            continue
        changed += formatted.changed
        unchanged += not formatted.changed
        if diff:
            click.echo(_diff(formatted), nl=False)
        elif file == STDIN and not check:
            click.echo(formatted.text.encode(), nl=False)  # UTF-8 whatever the terminal's is
        elif formatted.changed and not check:
            replace_file(Path(file), formatted.text)
            click.echo(f"formatted {file}", err=True)
        if check and formatted.changed:
            click.echo(f"would format {formatted.source.path}", err=True)
    if errors:
        from streamlog.app.render import print_diagnostics

        print_diagnostics(in_order(errors))
    if files != [STDIN]:
        click.echo(_summary(changed, unchanged, len(errors), dry=check or diff), err=True)
    ctx.exit(bool(errors) or (check and changed > 0))


def format_file(path: str) -> Formatted:
    """The standard form of a file, or why it has none."""
    from streamlog.syntax.format import format_source
    from streamlog.syntax.parse import parse

    original = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    name = STDIN_NAME if path == STDIN else path
    try:
        source = Source(name, decoded(original))
    except UnicodeDecodeError as error:
        source = Source(name, "")
        reason = f"`{name}` is not UTF-8 text (byte {error.start})"
        return Formatted(source, original, "", (finding("SL0107", reason, Span(source, 0, 0)),))
    module, diagnostics = parse(source)
    if errors := tuple(d for d in diagnostics if d.is_error):
        return Formatted(source, original, source.text, errors)
    text = format_source(source, module)
    # Cheap insurance against a slip in the formatter: people's files are at stake.
    if parse(Source(source.path, text))[0] != module:
        raise RuntimeError(f"the standard form of {path} would mean something else")
    return Formatted(source, original, text)


def replace_file(path: Path, text: str) -> None:
    """At once or not at all, with the old permissions; a link stays a link."""
    from streamlog.runtime.replacing import Replacing

    with Replacing() as files:
        files.beside(path).write_text(text, encoding="utf-8", newline="")
        files.commit([path])


def _diff(formatted: Formatted) -> str:
    path = formatted.source.path
    before, after = formatted.original.decode(), formatted.text
    lines = unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), path, path
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _summary(changed: int, unchanged: int, errors: int, *, dry: bool) -> str:
    parts = []
    if changed:
        parts.append(f"{count(changed, 'file')} {'would change' if dry else 'changed'}")
    if unchanged:
        parts.append(f"{count(unchanged, 'file')} already in the standard form")
    if errors:
        parts.append(count(errors, "error"))
    return ", ".join(parts)
