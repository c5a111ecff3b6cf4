"""`streamlog docs`: pages about the programs of a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamlog.app.inputs import STDIN, compile_target, files_of, targets_argument

if TYPE_CHECKING:
    from streamlog.compiler import Compilation


@click.command("docs")
@targets_argument
@click.option(
    "--output",
    metavar="FOLDER",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the pages go; pages of the same name are replaced.",
)
@click.pass_context
def command(ctx: click.Context, /, targets: Sequence[str], output: Path) -> None:
    """Write pages about programs, in Markdown.

    PATH is a file or a folder (all .slog files below it); without PATH it is the project that the
    current folder lies in. There is a page for each program, with its contract, its graph, its
    predicates with their rules and annotations, and its tests; and an index of all programs,
    annotated rules and predicates. What only complete, stored data can answer is described as
    such.

    \b
    streamlog docs rules --output site
    """
    from streamlog.app.formats import count
    from streamlog.app.render import print_diagnostics
    from streamlog.app.rule_pages import Page, index, page
    from streamlog.diagnostics import in_order

    files = files_of(targets)
    if STDIN in files:
        raise click.UsageError("standard input has no place among the pages")
    pages = [Page.of(file, _compiled(file)) for file in files]
    for one in pages:
        _write(output / one.place, page(one))
    _write(output / "index.md", index(pages))
    click.echo(f"wrote {count(len(pages) + 1, 'page')} to {output}", err=True)
    errors = in_order(d for p in pages for d in p.program.diagnostics if d.is_error)
    print_diagnostics(errors)
    ctx.exit(bool(errors))


def _compiled(file: str) -> Compilation:
    from streamlog.analysis.refusals import STREAM_ONLY
    from streamlog.compiler import Mode

    program = compile_target(file, mode=Mode.STREAM)
    if program.ok or not {d.code for d in program.diagnostics if d.is_error} <= STREAM_ONLY:
        return program
    stored = compile_target(file, mode=Mode.BATCH)
    return stored if stored.ok else program


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
