"""`streamlog upgrade`: a checkpoint goes on with another version of its program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamlog.app.inputs import TARGET, compile_target, one_file, python_option

if TYPE_CHECKING:
    from streamlog.compiler import Program
    from streamlog.control.change import Entry
    from streamlog.control.upgrade import Upgrade

START = "start"


@click.command("upgrade")
@click.argument("checkpoint", type=click.Path(exists=True, file_okay=False))
@click.argument("program", metavar="NEW", type=TARGET, callback=one_file)
@click.option("--plan", is_flag=True, help="Print what would become of it, and change nothing.")
@click.option(
    "--since",
    metavar="TIME",
    help="Read the input files again, for rows from this time on; `start`: for all rows.",
)
@click.option(
    "--input",
    "inputs",
    metavar="NAME=PATH",
    multiple=True,
    help="Where the rows of a table are, as for `run`. Streams go on where they are.",
)
@click.option(
    "--old",
    metavar="FILE",
    type=TARGET,
    help="The program of a checkpoint that an earlier streamlog made.",
)
@python_option
@click.pass_context
def command(ctx: click.Context, /, checkpoint: str, program: str, **options: Any) -> None:
    """Go on with another version of a program.

    CHECKPOINT is the folder of a run with --engine local, NEW the program to go on with. What
    means the same goes on in the state that it has. What is new or means something else is worked
    out from the rows that are still known, and answers are given from the time on from which they
    are certain to be complete. Nothing is released twice, and nothing that was released is taken
    back. The table says what becomes of each predicate.

    \b
    streamlog upgrade state new.slog --plan
    streamlog upgrade state new.slog
    streamlog upgrade state new.slog --since 2026-11-15T08:00:00Z
    """
    from streamlog import prepared
    from streamlog.app.run_base import misuse
    from streamlog.control.upgrade import old_program
    from streamlog.runtime import checkpoint as checkpoints
    from streamlog.runtime.lock import locked

    folder, allowed = Path(checkpoint), options["allow_python"]
    new = _compiled(ctx, program)
    old = _compiled(ctx, options["old"]) if options["old"] else None
    with misuse(), locked(folder):
        found = checkpoints.read(folder)
        if found is None:
            raise click.UsageError(f"there is no checkpoint in '{checkpoint}'")
        before = old_program(found, old and prepared(old, "stop", allowed), allowed)
        skips = "stop" if before.errors is None else "skip"
        made = _upgrade(before, prepared(new, skips, allowed), found, options)
        print_plan(made)
        if not options["plan"]:
            made.write(folder)
    what = "nothing was changed" if options["plan"] else "the next run goes on with it"
    click.echo(f"{what}: `streamlog run {program} --engine local --checkpoint {checkpoint} …`")


def _compiled(ctx: click.Context, path: str) -> Program:
    from streamlog.app.inputs import mode_of
    from streamlog.compiler import Program, focused

    compilation = compile_target(path, mode=mode_of(path, batch=False))
    if not isinstance(compilation, Program):
        from streamlog.app.check import report

        report(compilation.diagnostics, "pretty", 1)
        ctx.exit(1)
    return focused(compilation)


def _upgrade(old: Program, new: Program, found: Any, options: dict[str, Any]) -> Upgrade:
    from streamlog.app.places import pairs
    from streamlog.control.upgrade import upgrade
    from streamlog.runtime.executor import BEGIN
    from streamlog.runtime.ingest import Checker
    from streamlog.runtime.missing_inputs import check_inputs
    from streamlog.runtime.sources import Input, declared_inputs, read
    from streamlog.runtime.values import to_time

    tables = [name for name in new.schema.inputs if name not in new.schema.streams]
    given = pairs(options["inputs"], "--input", tables, once=False)
    named = {name for name, _ in given}
    sources = [Input.at(name, place, True) for name, place in given]
    sources += (i for i in declared_inputs(new) if i.pred in tables and i.pred not in named)
    known = {i["pred"] for i in found.extra.get("files", ())} & {*tables} - {
        s.pred for s in sources
    }
    sources += (
        Input.at(i["pred"], i["path"], i["header"])
        for i in found.extra.get("files", ())
        if i["pred"] in known
    )
    check_inputs(new, {*new.schema.streams, *(s.pred for s in sources)}, "give --input {name}=PATH")
    rows: dict[str, list[Any]] = {}
    for source in sources:
        checker = Checker(new, source.pred)
        rows.setdefault(source.pred, []).extend(read(source, checker))
    since = options["since"]
    at = None if since is None else BEGIN if since == START else to_time(since)
    return upgrade(found, old, new, rows, allow_python=options["allow_python"], since=at)


# ------------------------------------------------------------------------------------ printing


def print_plan(made: Upgrade, *, to_errors: bool = False) -> None:
    from rich.text import Text

    from streamlog.app.render import console
    from streamlog.app.snippet import visible
    from streamlog.app.tables import flat, plain_table

    out = console(stderr=to_errors)
    table = plain_table("predicate", "state", "answers")
    entries = sorted(made.change.entries, key=lambda e: (not e.is_output, e.name))
    for entry in entries:
        table.add_row(entry.name, entry.fate.value, _answers(entry, made))
    out.print(flat(table, out.width))
    for entry in entries:
        for reason in _reasons(entry, made):
            out.print(Text(visible(f"`{entry.name}`: {reason}")))
    for name, rows in sorted(made.dropped.items()):
        lost = f"{rows:,} rows of {name} that wait are lost: its columns are others"
        click.echo(f"warning: {lost}", err=to_errors)


def _at(time: int, entry: Entry, made: Upgrade) -> str:
    from streamlog.runtime.values import moment

    return moment(time, made.engine.clock(entry.name))


def _answers(entry: Entry, made: Upgrade) -> str:
    from streamlog.control.change import Fate
    from streamlog.control.layers import NEVER
    from streamlog.runtime.executor import BEGIN

    if entry.fate is Fate.REMOVED:
        return "end"
    if not entry.is_output:
        return ""
    if entry.answers == BEGIN:
        return "go on" if entry.fate is Fate.UNCHANGED else "all"
    return "none" if entry.answers >= NEVER else f"from {_at(entry.answers, entry, made)} on"


def _reasons(entry: Entry, made: Upgrade) -> Iterator[str]:
    """Why an output does not give all answers."""
    from streamlog.control.layers import NEVER
    from streamlog.runtime.executor import BEGIN

    because, at = entry.warm.because, entry.warm.at
    if not entry.is_output:
        return
    if because is None or at < entry.answers:
        if entry.answered > BEGIN:
            yield "what is earlier has been answered by the old rules"
        return
    place, since = because.rule.span.place, _at(because.since, entry, made)
    if because.since >= NEVER:
        yield f"never complete, because `{because.pred}` never is ({place})"
    elif at >= NEVER:
        yield (
            f"never complete, because {place} looks back at all of `{because.pred}`, which is "
            f"known from {since} on: with --since its source is read again"
        )
    else:
        why = f"because `{because.pred}` is known from {since} on ({place})"
        yield f"complete from {_at(at, entry, made)} on, {why}"
