"""`streamlog test`: do the programs do what their tests say?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve

from streamlog.app.formats import count
from streamlog.app.inputs import STDIN, batch_option, files_of, python_option, targets_argument
from streamlog.app.java import NoSparkError, on_spark
from streamlog.app.limits import limit_options, limits_of
from streamlog.app.matching import ExpressionError, Matches, matcher

if TYPE_CHECKING:
    from rich.console import Console

    from streamlog.app.ruletest import Results

__test__ = False  # not one of pytest's


def _matcher(ctx: click.Context, param: click.Parameter, value: str | None) -> Matches:
    try:
        return (lambda name: True) if value is None else matcher(value)
    except ExpressionError as error:
        raise click.BadParameter(str(error)) from None


@click.command("test")
@targets_argument
@click.option(
    "-k",
    "chosen",
    metavar="EXPR",
    callback=_matcher,
    help="Only tests whose file and name match, as in 'alarm and not late'.",
)
@click.option("--update", "updating", is_flag=True, help="Rewrite expectations that fail.")
@click.option(
    "--junit",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Also write the results as JUnit XML.",
)
@click.option("--coverage", is_flag=True, help="Say which parts of rules no test would miss.")
@click.option(
    "--coverage-json",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write the coverage as JSON.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="What evaluates the rules. Spark takes about a second for every step of a test.",
)
@batch_option
@click.option("--no-shuffle", is_flag=True, help="Run tests in the written order only.")
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="The seed of the other orders of arrival that are tried.",
)
@python_option
@limit_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    targets: Sequence[str],
    chosen: Matches,
    updating: bool,
    junit: Path | None,
    coverage: bool,
    coverage_json: Path | None,
    engine: str,
    batch: bool,
    no_shuffle: bool,
    seed: int,
    allow_python: bool,
    **limits: Any,
) -> None:
    """Run the tests that programs contain.

    PATH is a file, a folder (all .slog files below it) or - for standard input; without PATH it
    is the project that the current folder lies in. The tests of files that a program uses are
    run, too, those of each file on their own. A test that passes is also run in other orders of
    arrival, as far as the streams' slack allows them: the answers must be the same. Exit code 2
    means that no test was found. The tests of a program that `check` refuses fail, unless they
    expect that (`rejected SL0401.`).

    \b
    streamlog test rules/
    streamlog test rules/ -k 'alarm and not late'
    streamlog test --coverage rules/
    streamlog test --update rules/airport/pc_alarm.slog
    """
    from streamlog.app.render import console, print_diagnostics
    from streamlog.app.ruletest import Options, run_suite, suite_of
    from streamlog.app.ruleupdate import update

    files = files_of(targets)
    rewritten = files_of(targets, to_write=True) if updating else ()
    if updating and STDIN in files:
        raise click.UsageError("--update cannot rewrite standard input")
    chosen_limits = limits_of(limits)
    options = Options(not no_shuffle, seed, limits=chosen_limits, allow_python=allow_python)
    if engine == "spark" and (coverage or coverage_json):
        raise click.UsageError("coverage runs tests for each part of a rule: use --engine local")
    if engine == "spark":
        try:
            options = evolve(options, executor=on_spark(chosen_limits.memory))
        except NoSparkError as error:
            raise click.UsageError(str(error)) from None
    out = console()
    results: list[Results] = []
    known = {Path(file).resolve() for file in files}
    for file in files:
        found = run_suite(suite_of(file, batch=batch), options, chosen)
        if file in rewritten and (changed := update(found.verdicts)):
            click.echo(f"updated {count(changed, 'expectation')} of {file}", err=True)
            found = run_suite(suite_of(file, batch=batch), options, chosen)
        for path in found.suite.used:
            if Path(path).resolve() not in known:
                known.add(Path(path).resolve())
                files.append(path)
        results.append(found)
        if not found.empty:
            print_diagnostics(d for d in found.suite.stream.diagnostics if not d.is_error)
        _print(out, found)
    if junit:
        from streamlog.app.junit import write_junit

        write_junit(junit, results)
    if all(r.empty for r in results):
        raise click.UsageError(_nothing(results))
    from streamlog.app.verdicts import render_counts

    out.print(render_counts(results))
    if coverage or coverage_json:
        from streamlog.app import coverage as covering

        covered = covering.coverage(results, options)
        if coverage_json:
            text = json.dumps(covering.as_data(covered), indent=2)
            coverage_json.write_text(f"{text}\n", encoding="utf-8")
        if coverage:
            out.print(covering.render(covered, out.width))
    ctx.exit(not all(r.passed for r in results))


def _print(out: Console, found: Results) -> None:
    """A line for the file, and below it what failed."""
    from rich.text import Text

    from streamlog.app.snippet import visible
    from streamlog.app.verdicts import FAILED, render_counts, render_problems, render_refusal

    if found.empty:
        return
    out.print(Text.assemble(visible(found.suite.path), ": ", render_counts([found])))
    for verdict in found.verdicts:
        if not verdict.passed:
            out.print()
            out.print(Text.assemble(("FAILED ", FAILED), visible(verdict.test.name)))
            out.print(render_problems(verdict, out.width))
    if found.refusal:
        out.print()
        out.print(render_refusal(found.refusal, out.width))
    if not found.passed:
        out.print()


def _nothing(results: Sequence[Results]) -> str:
    if any(r.suite.tests for r in results):
        return "no test matches the expression after -k"
    return f"there is no test in {count(len(results), 'file')}"
