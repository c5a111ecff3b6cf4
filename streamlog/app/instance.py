"""`streamlog instance`: programs that run for a long time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from streamlog.app.inputs import TARGET, one_file
from streamlog.app.project import ENGINES

if TYPE_CHECKING:
    from streamlog.control.registry import Instance

_LONGEST_PAUSE = 60.0
_ENOUGH = 60.0  # seconds after which a run counts as one that works

_registry = click.option(
    "--registry",
    metavar="DIR",
    envvar="STREAMLOG_REGISTRY",
    show_envvar=True,
    help="The folder of instances.  [default: .streamlog of the project]",
)
_name = click.argument("name")


@click.group("instance")
def command() -> None:
    """Run programs for a long time.

    An instance is a folder below .streamlog with a copy of its program, its checkpoint and its
    log. `streamlog upgrade NAME NEW.slog` goes on with another version of the program.

    \b
    streamlog instance create alarms a.slog --input p=in --output q=q.csv
    streamlog instance start alarms
    streamlog instance list
    streamlog instance logs alarms
    streamlog instance stop alarms
    """


@contextmanager
def refusing() -> Iterator[None]:
    from streamlog.app.run_base import misuse
    from streamlog.control.registry import RegistryError

    try:
        with misuse():
            yield
    except RegistryError as error:
        raise click.UsageError(str(error)) from None


def found(registry: str | None, name: str) -> Instance:
    from streamlog.control.registry import instance, registry_of

    with refusing():
        return instance(registry_of(registry), name)


@command.command("create")
@_name
@click.argument("program", metavar="FILE", type=TARGET, callback=one_file)
@click.option("--engine", type=click.Choice(ENGINES), default="local", show_default=True)
@click.option("--input", "inputs", metavar="NAME=PATH", multiple=True, help="As for `run`.")
@click.option("--output", "outputs", metavar="NAME=PATH", multiple=True, help="As for `run`.")
@click.option("--empty", metavar="NAME", multiple=True, help="As for `run`.")
@click.option("--rejects", metavar="PATH", help="As for `run`.")
@click.option("--late", metavar="PATH", help="As for `run`.")
@click.option("--log", type=click.Choice(["text", "json"]), help="As for `run`.")
@click.option("--metrics", metavar="PORT", type=click.IntRange(1, 65535), help="As for `run`.")
@click.option("--master", metavar="URL", help="Spark: as for `run`.")
@_registry
@click.pass_context
def create(
    ctx: click.Context, /, name: str, program: str, registry: str | None, **options: Any
) -> None:
    """Copy a program, and what it reads and writes, into a new instance."""
    from streamlog.app.places import check_known, pairs
    from streamlog.app.upgrade import compiled_or_exit
    from streamlog.control import registry as instances

    made = compiled_or_exit(ctx, program)
    more = [part for n in options["empty"] for part in ("--empty", n)]
    check_known(options["empty"], "--empty", made.schema.inputs)
    if options["master"]:
        if options["engine"] != "spark":
            raise click.UsageError("--master is for --engine spark")
        more += ["--master", options["master"]]
    if options["metrics"]:
        more += ["--metrics", str(options["metrics"])]
    if options["log"]:
        more += ["--log", options["log"]]
    for option in ("rejects", "late"):
        if options[option]:
            more += [f"--{option}", _absolute(options[option])]
    inputs = pairs(options["inputs"], "--input", made.schema.inputs)
    outputs = pairs(options["outputs"], "--output", made.contract.outputs, once=True)
    if missing := [n for n in made.contract.outputs if n not in dict(outputs)]:
        raise click.UsageError(
            f"an instance needs a place for each output: --output {missing[0]}=PATH"
        )
    with refusing():
        instances.create(
            instances.registry_of(registry),
            name,
            made,
            options["engine"],
            [f"{n}={_absolute(place)}" for n, place in inputs],
            [f"{n}={_absolute(place)}" for n, place in outputs],
            more,
        )
    click.echo(f"created {name}: `streamlog instance start {name}` starts it")


def _absolute(place: str) -> str:
    """Where a run finds it from any folder."""
    from streamlog.runtime.addresses import is_address
    from streamlog.runtime.data_files import STANDARD

    if place in STANDARD:
        raise click.UsageError(f"an instance has no standard input or output: '{place}'")
    return place if is_address(place) else str(Path(place).absolute())


@command.command("start")
@_name
@_registry
def start(name: str, registry: str | None) -> None:
    """Start an instance in the background.

    After a crash the run is started again.
    """
    known = found(registry, name)
    start_again(known)
    click.echo(f"started {name}")


def start_again(known: Instance) -> None:
    if known.pids:
        raise click.UsageError(f"'{known.name}' is running already")
    command = [sys.executable, "-m", "streamlog.app.cli", "instance", "run", known.name]
    command += ["--registry", str(known.folder.parent.absolute())]
    with known.log.open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    for _ in range(600):
        if known.pids or process.poll() is not None:
            break
        time.sleep(0.05)
    if process.poll() is not None and process.returncode:
        lines = known.log.read_text(encoding="utf-8", errors="replace").splitlines()
        raise click.ClickException(f"'{known.name}' did not start: {lines[-1] if lines else ''}")
    process.returncode = 0  # it goes on by itself: nobody waits for it


@command.command("run")
@_name
@_registry
@click.pass_context
def run(ctx: click.Context, /, name: str, registry: str | None) -> None:
    """Run an instance in the foreground.

    This is what a service manager does. After a crash the run is started again.
    """
    from streamlog.runtime.lock import locked

    known = found(registry, name)
    with refusing(), locked(known.folder):
        ctx.exit(_supervise(known))


def _supervise(known: Instance) -> int:
    """Until the run ends by itself, or is asked to."""
    asked, pause = Event(), 1.0
    children: list[subprocess.Popen[bytes]] = []

    def end(*_: object) -> None:
        asked.set()
        for child in children:
            child.terminate()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    while True:
        began = time.monotonic()
        command = [sys.executable, "-m", "streamlog.app.cli", "run", *known.arguments()]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=_environment())
        children[:] = [child]
        if asked.is_set():
            child.terminate()
        code = child.wait()
        if asked.is_set() or code in (0, 2):
            return 0 if asked.is_set() else code
        pause = 1.0 if time.monotonic() - began > _ENOUGH else pause
        click.echo(f"{known.name} ended with {code}; starting it again in {pause:g} s", err=True)
        if asked.wait(pause):
            return 0
        pause = min(2 * pause, _LONGEST_PAUSE)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1"}


@command.command("stop")
@_name
@_registry
def stop(name: str, registry: str | None) -> None:
    """Stop an instance.

    Another start goes on where it was.
    """
    from streamlog.control import registry as instances

    with refusing():
        was = instances.stop(found(registry, name))
    click.echo(f"stopped {name}" if was else f"{name} was not running")


@command.command("status")
@_name
@_registry
def status(name: str, registry: str | None) -> None:
    """Print where an instance is, by its last checkpoint."""
    from rich.text import Text

    from streamlog.app.render import console
    from streamlog.app.snippet import visible
    from streamlog.app.tables import flat, plain_table
    from streamlog.control.status import facts

    out = console()
    table = plain_table("", "")
    table.show_header = False
    with refusing():
        for what, value in facts(found(registry, name)):
            table.add_row(what, Text(visible(value)))
    out.print(flat(table, out.width))


@command.command("list")
@_registry
def list_(registry: str | None) -> None:
    """List all instances."""
    from rich.text import Text

    from streamlog.app.render import console
    from streamlog.app.tables import flat, plain_table
    from streamlog.control.registry import instances, registry_of

    out = console()
    with refusing():
        known = instances(registry_of(registry))
    if not known:
        click.echo("no instances")
        return
    table = plain_table("instance", "program", "version", "engine", "state")
    for each in known:
        version = each.version
        state = "running" if each.pids else "stopped"
        cells = (each.name, version.main, str(version.number), each.engine, state)
        table.add_row(*map(Text, cells))
    out.print(flat(table, out.width))


@command.command("logs")
@_name
@click.option("-n", "count", default=50, show_default=True, help="How many of the last lines.")
@_registry
def logs(name: str, count: int, registry: str | None) -> None:
    """Print what an instance has printed."""
    from streamlog.control.registry import last_lines

    for line in last_lines(found(registry, name).log, count):
        click.echo(line)


@command.command("remove")
@_name
@_registry
def remove(name: str, registry: str | None) -> None:
    """Delete an instance that is stopped.

    Its checkpoint, versions and log are deleted; its outputs stay.
    """
    from streamlog.control import registry as instances

    with refusing():
        instances.remove(found(registry, name))
    click.echo(f"removed {name}")
