"""`streamlog run`: a program over files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from click.core import ParameterSource

from streamlog.app.inputs import TARGET, compile_target
from streamlog.app.limits import limit_options, limits_of

ENGINES = ("spark", "local")
KINDS = ("csv", "jsonl", "parquet")
STRATEGIES = ("kernel", "fixpoint", "graph")
EVERY = 10_000
# What only one engine has a use for.
_LOCAL = ("every",)
_SPARK = ("follow", "files_per_batch", "kind", "master", "conf", "packages", "strategy")


@click.command("run")
@click.argument("program", metavar="FILE", type=TARGET)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="spark",
    show_default=True,
    envvar="STREAMLOG_ENGINE",
    show_envvar=True,
    help="What runs it: Spark, or this process alone, without Java.",
)
@click.option("--batch", is_flag=True, help="Accept what only a query over stored data can answer.")
@click.option(
    "--input",
    "inputs",
    metavar="NAME=PATH",
    multiple=True,
    help="Rows of a stream or table: .csv, .jsonl or .parquet; on Spark also hdfs:// and the like, "
    "or kafka://HOST:PORT/TOPIC. Goes before the program's `from`.",
)
@click.option(
    "--output",
    "outputs",
    metavar="NAME=PATH",
    multiple=True,
    help="Where an output's answers go instead of standard output: places as for --input.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="How answers are written to standard output.",
)
@click.option("--no-header", is_flag=True, help="Columns of the input files count by position.")
@click.option(
    "--checkpoint",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Save the state there, and go on from it after an interruption.",
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
@click.option("--rejects", metavar="PATH", help="Keep bad rows.")
@click.option("--late", metavar="PATH", help="Keep late rows.")
@click.option(
    "--follow", is_flag=True, help="Spark: inputs are folders being filled; run until interrupted."
)
@click.option(
    "--files-per-batch",
    metavar="N",
    type=click.IntRange(min=1),
    help="Spark: take at most so many new files of a folder at a time, the oldest first.",
)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    help="Spark: the files that will come into a folder that is empty yet.",
)
@click.option("--master", metavar="URL", help="Spark: where it runs.  [default: local[*]]")
@click.option("--conf", metavar="KEY=VALUE", multiple=True, help="Spark: a setting.")
@click.option("--packages", metavar="COORDINATES", multiple=True, help="Spark: from Maven.")
@click.option(
    "--strategy",
    type=click.Choice(STRATEGIES),
    help="Spark: how recursive rules are evaluated, instead of by the cost rule.",
)
@limit_options
@click.pass_context
def command(ctx: click.Context, /, program: str, engine: str, batch: bool, **options: Any) -> None:
    """Run a program over files.

    On Spark files are read whole, so no row of them is late. With --follow the files of folders
    are taken as they come. With --engine local the rows of all files are taken in the order of
    their times, as if they had arrived together; each file keeps its own order, so within one a
    row can be late. Answers go to standard output, figures to standard error. With --checkpoint,
    output files hold every answer exactly once, however often the run is interrupted; standard
    output may repeat some after an interruption.

    \b
    streamlog run airport.slog
    streamlog run airport.slog --input report=today.jsonl --format csv
    streamlog run airport.slog --engine local --output pc_alarm=out.parquet
    streamlog run airport.slog --follow --input report=in --output pc_alarm=out
    streamlog run a.slog --follow --input r=kafka://host:9092/r --format csv
    streamlog run --batch history.slog --format csv > answers.csv
    """
    from streamlog.compiler import Mode, Program

    compilation = compile_target(program, mode=Mode.BATCH if batch else Mode.STREAM)
    if not isinstance(compilation, Program):
        from streamlog.app.check import report

        report(compilation.diagnostics, "pretty", 1)
        ctx.exit(1)
    other, foreign = ("local", _LOCAL) if engine == "spark" else ("spark", _SPARK)
    for name in foreign:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} is for --engine {other}")
    options["limits"] = limits_of(options)
    places = (*options["inputs"], *options["outputs"], options["rejects"], options["late"])
    with _hiding([place for place in places if place]):
        from streamlog.app.run_base import Options, execute

        if engine == "spark":
            from streamlog.app.run_spark import SparkRun

            ctx.exit(execute(SparkRun, compilation, Options(**options)))
        from streamlog.app.run_local import LocalRun

        ctx.exit(execute(LocalRun, compilation, Options(**options)))


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
