"""`streamlog run`: a program over files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from streamlog.app.inputs import TARGET, compile_target
from streamlog.app.limits import limit_options, limits_of
from streamlog.diagnostics import did_you_mean

if TYPE_CHECKING:
    from streamlog.compiler import Program

ENGINES = ("spark", "local")
KINDS = ("csv", "jsonl", "parquet")
STRATEGIES = ("kernel", "fixpoint", "graph")
EVERY = 10_000
_SPARK_ONLY = (
    "follow",
    "files_per_batch",
    "kind",
    "master",
    "conf",
    "packages",
    "strategy",
)


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
@click.option("--strict", is_flag=True, help="Stop at the first row that is rejected.")
@click.option(
    "--every",
    metavar="N",
    type=click.IntRange(min=1),
    default=EVERY,
    show_default=True,
    help="Local: evaluate whenever so many rows have been read.",
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
    spark = {name: options.pop(name) for name in _SPARK_ONLY}
    options["limits"] = limits_of(options)
    places = (*options["inputs"], *options["outputs"], options["rejects"], options["late"])
    with _hiding([place for place in places if place]):
        if engine == "spark":
            from streamlog.app.run_spark import run_on_spark

            ctx.exit(run_on_spark(compilation, **options, **spark))
        if given := [name for name, value in spark.items() if value]:
            raise click.UsageError(f"--{given[0].replace('_', '-')} is for --engine spark")
        ctx.exit(_run_locally(compilation, options))


def _run_locally(compilation: Program, options: Mapping[str, Any]) -> int:
    from streamlog.app.run_local import LocalRun
    from streamlog.runtime.envelope import CheckpointError
    from streamlog.runtime.executor import LimitError
    from streamlog.runtime.functions import EvaluationError
    from streamlog.runtime.lock import Locked
    from streamlog.runtime.sources import SourceError

    try:
        return 0 if LocalRun(compilation, **options).go() else 1
    except (SourceError, CheckpointError, Locked) as error:
        raise click.UsageError(str(error)) from None
    except (LimitError, EvaluationError) as error:
        click.echo(f"streamlog: {error}", err=True)
        return 1


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


def pairs(
    given: Sequence[str], option: str, known: Sequence[str], *, once: bool = False
) -> list[tuple[str, str]]:
    """The names and places of an option; `once`: each name at most once."""
    found: list[tuple[str, str]] = []
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise click.UsageError(f"{option} takes NAME=PATH, not '{text}'")
        if name not in known:
            near = did_you_mean(name, known)
            hint = f"did you mean '{near}'?" if near else f"there is {', '.join(known) or 'none'}"
            raise click.UsageError(f"{option}: the program has no '{name}' to use here; {hint}")
        if once and name in dict(found):
            raise click.UsageError(f"{option} {name} is given twice")
        found.append((name, path))
    return found
