"""`streamlog run`: a program over files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamlog.app.inputs import (
    STDIN,
    TARGET,
    batch_option,
    compile_target,
    mode_of,
    one_file,
    python_option,
)
from streamlog.app.limits import limit_options, limits_of
from streamlog.app.project import ENGINES, Project, project

if TYPE_CHECKING:
    from streamlog.compiler import Program

EVERY = 10_000  # rows between two steps of the local engine
# What only one engine has a use for.
_LOCAL = ("every", "profile", "withheld", "upgrade", "metrics")
_SPARK = ("partition", "files_per_batch", "kind", "master", "conf", "packages")


@click.command("run")
@click.argument("program", metavar="FILE", type=TARGET, callback=one_file)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="spark",
    show_default=True,
    envvar="STREAMLOG_ENGINE",
    show_envvar=True,
    help="What evaluates the program: Spark, or this process alone, without Java.",
)
@batch_option
@click.option(
    "--input",
    "inputs",
    metavar="NAME=PATH",
    multiple=True,
    help="Read the rows of a stream or table here: a .csv, .csv.gz, .jsonl, .jsonl.gz or .parquet "
    "file, a folder of them, a pattern such as 'logs/2026-*.csv', or standard input in CSV or JSON "
    "Lines: `-`, `jsonl:-`; on Spark also hdfs://…, "
    "kafka://HOST:PORT/TOPIC, jdbc:…?table=NAME or delta:PATH. Overrides the program's `from`.",
)
@click.option(
    "--empty",
    metavar="NAME",
    multiple=True,
    help="This stream or table has no rows. Without this, an input that rules read and that has "
    "rows from nowhere is an error.",
)
@click.option(
    "--output",
    "outputs",
    metavar="NAME=PATH",
    multiple=True,
    help="Write the answers of an output here, not to standard output; places as for --input. With "
    "`-` or `jsonl:-`, standard output has the lines of this output and nothing else.",
)
@click.option(
    "--partition",
    metavar="NAME=COLUMN",
    multiple=True,
    help="Spark: partition the folder of Parquet files of an output by this column.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="The format of answers on standard output.",
)
@click.option(
    "--no-header",
    is_flag=True,
    help="CSV files have no header: columns are found by position.",
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Save the state in this folder, and resume from it after an interruption.",
)
@click.option(
    "--upgrade",
    is_flag=True,
    help="Local: if the checkpoint is that of another version of the program, upgrade it first, as "
    "`streamlog upgrade` does.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Fail if a row is rejected: exit with 1, print no answers and replace no output; only "
    "--rejects and --late are written. With --checkpoint or --follow, stop after the batch that "
    "has the row.",
)
@click.option(
    "--every",
    metavar="N",
    type=click.IntRange(min=1),
    default=EVERY,
    show_default=True,
    help="Local: evaluate after every N rows read.",
)
@click.option(
    "--profile",
    is_flag=True,
    help="Local: print at the end what each rule took, the most expensive first.",
)
@click.option("--rejects", metavar="PATH", help="Write rejected rows here, with the reasons.")
@click.option("--late", metavar="PATH", help="Write late rows here.")
@python_option
@click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="What a division by zero, a number beyond 64 bits and the like do: stop the run, or leave "
    "out the solution of the rule and count it, if no negation or aggregate rests on it.",
)
@click.option(
    "--errors", metavar="PATH", help="With --on-error skip: write what was left out here."
)
@click.option(
    "--withheld",
    metavar="PATH",
    help="Local, after an upgrade: write answers here that are earlier than what is known to be "
    "complete.",
)
@click.option(
    "--follow",
    is_flag=True,
    help="Read rows as they come, until interrupted: on Spark the files of folders as they appear, "
    "with --engine local also lines that are added to files, and standard input.",
)
@click.option(
    "--log",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How messages are written to standard error: as text for people, or a JSON object a line.",
)
@click.option(
    "--metrics",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Local, with --follow: serve figures for Prometheus at http://127.0.0.1:PORT/metrics, and "
    "/health; 0 chooses a port.",
)
@click.option(
    "--files-per-batch",
    metavar="N",
    type=click.IntRange(min=1),
    help="Spark: read at most N new files of a folder in a batch, oldest first.",
)
@click.option(
    "--kind",
    type=click.Choice(["csv", "jsonl", "parquet"]),
    help="Spark: the format of the files to come, for a folder that is still empty.",
)
@click.option("--master", metavar="URL", help="Spark: the master.  [default: local[*]]")
@click.option("--conf", metavar="KEY=VALUE", multiple=True, help="Spark: a configuration setting.")
@click.option(
    "--packages", metavar="COORDINATES", multiple=True, help="Spark: packages to load from Maven."
)
@click.option(
    "--strategy",
    type=click.Choice(["kernel", "fixpoint", "graph"]),
    help="Overrides the cost rule. On Spark, how to evaluate recursive rules; with --engine local, "
    "`kernel` evaluates large files row by row too.",
)
@limit_options
@click.pass_context
def command(ctx: click.Context, /, program: str, engine: str, batch: bool, **options: Any) -> None:
    """Run a program over files.

    On Spark, complete files are read at once, so no row is late. With --engine local, the rows of
    all files are merged by timestamp, as if they had arrived together; each file keeps its own
    order, so a row can be late within its file. Answers go to standard output, figures to
    standard error. With --checkpoint, output files contain every answer exactly once, however
    often the run is interrupted; standard output may repeat some answers after an interruption.

    \b
    streamlog run airport.slog
    streamlog run airport.slog --input report=today.jsonl --format csv
    streamlog run airport.slog --engine local --output pc_alarm=out.parquet
    streamlog run airport.slog --follow --input report=in --output pc_alarm=out
    streamlog run a.slog --follow --input r=kafka://host:9092/r --format csv
    streamlog run a.slog --engine local --input r=- --output p=- < rows.csv
    streamlog run a.slog --engine local --follow --input r=log.csv --format csv
    streamlog run --batch history.slog --format csv > answers.csv
    """
    from streamlog.compiler import Program
    from streamlog.runtime.data_files import STANDARD

    if options.pop("log") == "json":
        from streamlog.app.log import log_as_json

        log_as_json()
    given = [text.partition("=")[2] for text in options["inputs"]]
    if program == STDIN and any(place in STANDARD for place in given):
        raise click.UsageError("standard input cannot be both the program and an input")
    compilation = compile_target(program, mode=mode_of(program, batch))
    if not isinstance(compilation, Program):
        from streamlog.app.check import report

        report(compilation.diagnostics, "pretty", 1)
        ctx.exit(1)
    if compilation.diagnostics:
        from streamlog.app.render import print_diagnostics

        print_diagnostics(compilation.diagnostics)
    settings = project(Path.cwd() if program == STDIN else program)
    if ctx.get_parameter_source("engine") is ParameterSource.DEFAULT:
        engine = settings.engine or engine
    options["inputs"] = (*options["inputs"], *_of_project(settings, compilation, options))
    other, foreign = ("local", _LOCAL) if engine == "spark" else ("spark", _SPARK)
    for name in foreign:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} is for --engine {other}")
    if engine == "local" and options["strategy"] not in (None, "kernel"):
        raise click.UsageError(f"--strategy {options['strategy']} is for --engine spark")
    if options["metrics"] is not None and not options["follow"]:
        raise click.UsageError("--metrics is for --follow")
    if options["errors"] and options["on_error"] != "skip":
        raise click.UsageError("--errors is for --on-error skip")
    options["limits"] = limits_of(options)
    places = (*options["inputs"], *options["outputs"], options["rejects"], options["late"])
    places = (*places, options["errors"], options["withheld"])
    with _hiding([place for place in places if place]):
        from streamlog.app.run_base import Options, execute

        if engine == "spark":
            from streamlog.app.run_spark import SparkRun

            ctx.exit(execute(SparkRun, compilation, Options(**options)))
        if options["follow"]:
            from streamlog.app.run_following import FollowingRun

            ctx.exit(execute(FollowingRun, compilation, Options(**options)))
        from streamlog.app.run_local import LocalRun

        ctx.exit(execute(LocalRun, compilation, Options(**options)))


def _of_project(
    settings: Project, program: Program, options: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Where a project has the rows of inputs that the command says nothing of. Its names may be
    those of other programs."""
    given = {*options["empty"], *(text.partition("=")[0] for text in options["inputs"])}
    for name, place in settings.inputs.items():
        if name in program.schema.inputs and name not in given:
            yield f"{name}={place}"


@contextmanager
def _hiding(places: Sequence[str]) -> Iterator[None]:
    """No message repeats what may be a password in an address."""
    from streamlog.runtime.addresses import redacted

    try:
        yield
    except click.UsageError as error:
        raise click.UsageError(redacted(error.message, places), error.ctx) from None
    except click.exceptions.Exit:
        raise
    except Exception as error:
        message = redacted(str(error), places)
        if message == str(error):
            raise
        raise RuntimeError(message) from None
