"""`streamlog check`: what is wrong with a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from streamlog.app.inputs import (
    batch_option,
    compile_target,
    files_of,
    mode_of,
    targets_argument,
)
from streamlog.app.project import project
from streamlog.codes import Severity
from streamlog.diagnostics import Diagnostic, Span, did_you_mean, in_order

if TYPE_CHECKING:
    from streamlog.compiler import Compilation


def _pass_names() -> list[str]:
    from streamlog.compiler import PASSES

    return [p.name for p in PASSES]


def _known_pass(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Not a click.Choice: that would import the compiler to print the help."""
    if value is None or value in (names := _pass_names()):
        return value
    guess = did_you_mean(value, names)
    hint = f"did you mean {guess}?" if guess else f"the passes are {', '.join(names)}"
    raise click.BadParameter(f"there is no pass {value!r}; {hint}")


def _complete_pass(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(name) for name in _pass_names() if name.startswith(incomplete)]


@click.command("check")
@targets_argument
@batch_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["pretty", "json", "github", "sarif"]),
    default="pretty",
    show_default=True,
    help="The format of findings: pretty goes to stderr, the others to stdout.",
)
@click.option("--strict", is_flag=True, help="Warnings fail the check, too.")
@click.option(
    "--dump-after",
    "dump_after",
    metavar="PASS",
    callback=_known_pass,
    shell_complete=_complete_pass,
    help="Stop after this compiler pass and print its result.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    targets: Sequence[str],
    batch: bool,
    form: str,
    strict: bool,
    dump_after: str | None,
) -> None:
    """Check programs without running them.

    PATH is a file, a folder (all .slog files below it) or - for standard input.
    Without PATH it is the project that the current folder lies in. Errors fail the check; warnings
    only with --strict, or if `streamlog.toml` says `strict = true`.

    \b
    streamlog check rules/
    streamlog check --strict rules/
    streamlog check --batch history.slog
    streamlog check --format sarif rules/ > findings.sarif
    streamlog check --dump-after desugar rules/airport/pc_alarm.slog
    """
    from streamlog.analysis.suppressed import UNUSED

    if dump_after and form != "pretty":
        raise click.UsageError("--dump-after and --format both write to standard output")
    files = files_of(targets)
    own: list[Diagnostic] = []
    others: list[Diagnostic] = []
    suppressing: set[Span] = set()
    for file in files:
        compilation = compile_target(file, mode=mode_of(file, batch), until=dump_after)
        for finding in compilation.diagnostics:
            (own if finding.span.source == compilation.source else others).append(finding)
        suppressing |= {*compilation.suppressing}
        if dump_after:
            _dump(compilation, dump_after, title=file if len(files) > 1 else None)
    # A file that several programs use is compiled with each; its findings are reported once, with
    # the names that predicates have in the file itself. A comment there that allows a warning is
    # of use if it is so to one of them.
    places = {(d.code, d.span): d for d in (*reversed(others), *reversed(own))}
    found = [*own, *(d for d in others if places[d.code, d.span] is d)]
    found = [d for d in found if d.code != UNUSED or d.span not in suppressing]
    report(in_order(found), form, len(files))
    warned = {d.span.source.path for d in found if d.severity is Severity.WARNING}
    too_many = warned if strict else {path for path in warned if project(path).strict}
    ctx.exit(bool(too_many) or any(d.is_error for d in found))


def _dump(compilation: Compilation, name: str, title: str | None) -> None:
    from streamlog.app.dumps import dump

    text = dump(compilation, name)
    if text is not None:
        heading = f"% {title}\n" if title else ""
        click.echo(heading + text.rstrip("\n"))


def report(diagnostics: Sequence[Diagnostic], form: str, files: int) -> None:
    from streamlog.app.formats import FORMATTERS, summary

    if form == "pretty" and diagnostics:
        from streamlog.app.render import print_diagnostics

        print_diagnostics(diagnostics)
    elif form != "pretty" and (text := FORMATTERS[form](diagnostics, files)):
        click.echo(text)
    click.echo(summary(diagnostics, files), err=True)
