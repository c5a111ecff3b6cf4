"""`streamlog explain`: what a code means, and what the compiler knows about a program."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import click
from attrs import asdict
from click.shell_completion import CompletionItem

from streamlog.app.inputs import STDIN, batch_option, compile_target, files_of, mode_of
from streamlog.codes import CODES, Code
from streamlog.diagnostics import did_you_mean, in_order


def _targets(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> tuple[Code | str, ...]:
    return tuple(map(_target, values))


def _target(value: str) -> Code | str:
    """A code, or a file or folder. What exists as a file is meant as a file."""
    if value == STDIN or Path(value).exists():
        return value
    if code := CODES.get(value.upper()):
        return code
    if re.fullmatch(r"sl\w*", value, re.IGNORECASE):
        guess = did_you_mean(value.upper(), CODES)
        hint = f"; did you mean {guess}?" if guess else ""
        raise click.BadParameter(f"there is no code {value.upper()}{hint}")
    raise click.BadParameter(f"{value!r} is not a file, a folder or a code")


def _complete_target(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    codes = [c for c in CODES.values() if incomplete and c.code.startswith(incomplete.upper())]
    if codes:
        return [CompletionItem(c.code, help=c.title) for c in codes]
    return [CompletionItem(incomplete, type="file")]


@click.command("explain")
@click.argument(
    "targets",
    metavar="TARGET...",
    nargs=-1,
    required=True,
    callback=_targets,
    shell_complete=_complete_target,
)
@click.option("--contract", is_flag=True, help="Delay, release and state (the default).")
@click.option("--bistate", is_flag=True, help="The program in terms of new and old facts.")
@click.option("--strata", is_flag=True, help="The order of evaluation.")
@click.option("--plan", is_flag=True, help="Joins, indexes and what each rule waits for.")
@click.option("--sql", is_flag=True, help="The queries that Spark runs.")
@click.option("--graph", type=click.Choice(["mermaid", "dot"]), help="The dependencies as a graph.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Text for people, or JSON for programs.",
)
@batch_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    targets: Sequence[Code | str],
    graph: str | None,
    form: str,
    batch: bool,
    **views: bool,
) -> None:
    """Explain a program, or a code of the compiler.

    TARGET is a file, a folder (all .slog files below it), - for standard input,
    or a code such as SL0401.

    \b
    streamlog explain rules/airport/pc_alarm.slog
    streamlog explain --graph mermaid rules/airport/pc_alarm.slog
    streamlog explain --format json rules/ > contracts.json
    streamlog explain SL0401
    """
    wanted = [name for name, given in {**views, "graph": graph}.items() if given]
    if len(wanted) > 1:
        raise click.UsageError(f"--{wanted[0]} and --{wanted[1]} cannot be combined")
    if graph and form == "json":
        raise click.UsageError(f"--graph {graph} cannot be combined with --format json")
    view = wanted[0] if wanted else "contract"

    codes = [t for t in targets if isinstance(t, Code)]
    paths = [t for t in targets if isinstance(t, str)]
    if codes and paths:
        raise click.UsageError("codes and programs cannot be explained together")
    if codes:
        _explain_codes(codes, form)
    else:
        ctx.exit(not _explain_programs(files_of(paths), view, graph, form, batch))


def _explain_codes(codes: Sequence[Code], form: str) -> None:
    if form == "json":
        pages = [{**asdict(code), "severity": str(code.severity)} for code in codes]
        click.echo(json.dumps({"codes": pages}, indent=2))
        return
    from streamlog.app.render import console, render_page

    out = console()
    for place, code in enumerate(codes):
        if place:
            out.print()
        out.print(render_page(code, out.width))


def _explain_programs(
    files: Sequence[str], view: str, graph: str | None, form: str, batch: bool
) -> bool:
    """Whether every program could be explained; the findings of the others are printed."""
    from streamlog.app import show
    from streamlog.app.render import console, print_diagnostics
    from streamlog.compiler import Program

    compilations = [compile_target(file, mode=mode_of(file, batch)) for file in files]
    accepted = [c for c in compilations if isinstance(c, Program)]
    if form == "json":
        programs = [{"path": c.source.path, view: show.data(c, view)} for c in accepted]
        click.echo(json.dumps({"programs": programs}, indent=2))
    else:
        out = console()
        for place, compilation in enumerate(accepted):
            if place:
                out.print()
            if len(files) > 1:
                # A comment, since the bistate program is a program.
                out.print(f"% {compilation.source.path}", markup=False)
            out.print(show.view(compilation, view, graph, out.width))
    errors = in_order(d for c in compilations for d in c.diagnostics if d.is_error)
    print_diagnostics(errors)
    return not errors
