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
    from streamlog.runtime.checkpoint import Stored

START = "start"


@click.command("upgrade")
@click.argument("checkpoint")
@click.argument("program", metavar="NEW", type=TARGET, callback=one_file)
@click.option("--plan", is_flag=True, help="Print what would become of it, and change nothing.")
@click.option(
    "--since",
    metavar="TIME",
    help="Read the input files again, for rows from this time on; `start`: for all rows.",
)
@click.option(
    "--incomplete",
    metavar="NAME",
    multiple=True,
    help="Give the answers of this output from where the old ones end, though they may be wrong "
    "as long as they are not known to be complete.",
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
@click.option(
    "--output",
    "outputs",
    metavar="NAME=PATH",
    multiple=True,
    help="Of an instance: a place for each new output.",
)
@click.option("--registry", metavar="DIR", envvar="STREAMLOG_REGISTRY", hidden=True)
@python_option
@click.pass_context
def command(ctx: click.Context, /, checkpoint: str, program: str, **options: Any) -> None:
    """Go on with another version of a program.

    CHECKPOINT is the folder of a run with --engine local, or the name of an instance, which is
    stopped meanwhile if it runs; NEW is the program to go on with. What
    means the same goes on in the state that it has. What is new or means something else is worked
    out from the rows that are still known, and answers are given from the time on from which they
    are certain to be complete. Nothing is released twice, and nothing that was released is taken
    back. The table says what becomes of each predicate.

    \b
    streamlog upgrade state new.slog --plan
    streamlog upgrade state new.slog
    streamlog upgrade state new.slog --since 2026-11-15T08:00:00Z
    """
    if not Path(checkpoint).is_dir():
        _of_instance(ctx, checkpoint, program, options)
        return
    new = compiled_or_exit(ctx, program)
    _of_folder(ctx, Path(checkpoint), new, options)
    what = "nothing was changed" if options["plan"] else "the next run goes on with it"
    click.echo(f"{what}: `streamlog run {program} --engine local --checkpoint {checkpoint} …`")


def _of_folder(ctx: click.Context, folder: Path, new: Program, options: dict[str, Any]) -> Upgrade:
    from streamlog import prepared
    from streamlog.app.run_base import misuse
    from streamlog.control.upgrade import old_program
    from streamlog.runtime import checkpoint as checkpoints
    from streamlog.runtime.lock import locked

    allowed = options["allow_python"]
    old = compiled_or_exit(ctx, options["old"]) if options["old"] else None
    with misuse(), locked(folder):
        found = checkpoints.read(folder)
        if found is None:
            raise click.UsageError(f"there is no checkpoint in '{folder}'")
        before = old_program(found, old and prepared(old, "stop", allowed), allowed)
        skips = "stop" if before.errors is None else "skip"
        made = _upgrade(before, prepared(new, skips, allowed), found, options)
        print_plan(made)
        if not options["plan"]:
            made.write(folder)
    return made


def _of_instance(ctx: click.Context, name: str, program: str, options: dict[str, Any]) -> None:
    """A version is known before the checkpoint is one of it: so there is always a version that is
    that of the checkpoint."""
    from streamlog.app import instance
    from streamlog.app.places import pairs
    from streamlog.control import registry as instances

    known = instance.found(options["registry"], name)
    if known.engine != "local":
        raise click.UsageError(f"'{name}' runs on Spark: only --engine local can be upgraded")
    new = compiled_or_exit(ctx, program)
    pairs(options["outputs"], "--output", new.contract.outputs, once=True)
    outputs = {text.partition("=")[0]: text for text in known.version.outputs}
    for text in options["outputs"]:
        place, _, path = text.partition("=")
        outputs[place] = f"{place}={Path(path).absolute()}"
    outputs = {n: text for n, text in outputs.items() if n in new.contract.outputs}
    if missing := [n for n in new.contract.outputs if n not in outputs]:
        raise click.UsageError(f"`{missing[0]}` is new: say where with --output {missing[0]}=PATH")
    inputs = tuple(i for i in known.version.inputs if i.partition("=")[0] in new.schema.inputs)
    ran = False
    with instance.refusing():
        if not options["plan"]:
            ran = instances.stop(known)
            instances.add_version(known, new, inputs, tuple(outputs.values()))
        try:
            _of_folder(ctx, known.state, new, options)
        finally:
            if ran:
                instance.start_again(instance.found(options["registry"], name))
    done = "nothing was changed" if options["plan"] else f"{name} is upgraded"
    click.echo(f"{done}{', and runs again' if ran else ''}")


def compiled_or_exit(ctx: click.Context, path: str) -> Program:
    from streamlog.app.inputs import mode_of
    from streamlog.compiler import Program, focused

    compilation = compile_target(path, mode=mode_of(path, batch=False))
    if not isinstance(compilation, Program):
        from streamlog.app.check import report

        report(compilation.diagnostics, "pretty", 1)
        ctx.exit(1)
    return focused(compilation)


def _upgrade(old: Program, new: Program, found: Any, options: dict[str, Any]) -> Upgrade:
    from streamlog.app.places import check_known, pairs
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
    incomplete = options["incomplete"]
    check_known(incomplete, "--output", new.contract.outputs)
    allowed = options["allow_python"]
    return upgrade(found, old, new, rows, allow_python=allowed, since=at, incomplete=incomplete)


def upgraded(
    found: Stored, folder: Path, program: Program, tables: dict[str, list[Any]], allowed: bool
) -> Stored | None:
    """A checkpoint, though it be of another version of the program, as one of this."""
    from streamlog.control.upgrade import old_program, upgrade
    from streamlog.runtime.checkpoint import read
    from streamlog.runtime.envelope import fingerprint

    if found.program == fingerprint(program):
        return found
    old = old_program(found, None, allowed)
    made = upgrade(found, old, program, tables, allow_python=allowed)
    print_plan(made, to_errors=True)
    made.write(folder)
    return read(folder)


# ------------------------------------------------------------------------------------ printing


def print_plan(made: Upgrade, *, to_errors: bool = False) -> None:
    from rich.text import Text

    from streamlog.app.formats import count
    from streamlog.app.render import console
    from streamlog.app.snippet import visible
    from streamlog.app.tables import flat, plain_table

    out = console(stderr=to_errors)
    table = plain_table("predicate", "state", "answers")
    errors = made.engine.program.errors or ()
    told = [entry for entry in made.change.entries if entry.name not in errors]
    entries = sorted(told, key=lambda e: (not e.is_output, e.name))
    for entry in entries:
        table.add_row(*map(Text, (entry.name, entry.fate.value, _answers(entry, made))))
    out.print(flat(table, out.width))
    for entry in entries:
        for reason in _reasons(entry, made):
            out.print(Text(visible(f"`{entry.name}`: {reason}")))
    for name, rows in sorted(made.dropped.items()):
        lost = f"{count(rows, 'row')} of {name} lost before evaluation: its columns are others"
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
    if entry.fate is Fate.UNCHANGED and entry.answers == BEGIN:
        return "go on"
    doubt = ", perhaps wrong" if entry.answers < entry.warm.at else ""
    if entry.answers == BEGIN:
        return f"all{doubt}"
    if doubt:
        return f"from {_at(entry.answers, entry, made)} on{doubt}"
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
