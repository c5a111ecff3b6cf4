"""`streamlog repl`: rules, facts and queries, typed or piped in.

On a terminal it is a line editor (`repl_terminal`). Piped input is read line by line; results go
to standard output, without colour at 80 columns. With --echo each input is shown too, so that the
output is a transcript that can be run again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from streamlog.app.inputs import one_file, python_option
from streamlog.app.limits import limit_options, limits_of

if TYPE_CHECKING:
    from rich.console import Console

    from streamlog.app.repl_shell import Shell

PROMPT = "streamlog> "
MORE = "      ...> "


@click.command("repl")
@click.argument("program", metavar="[FILE]", required=False, type=click.Path(), callback=one_file)
@click.option("--echo", is_flag=True, help="Print piped input too, as a transcript.")
@python_option
@limit_options
@click.pass_context
def command(
    ctx: click.Context, /, program: str | None, echo: bool, allow_python: bool, **limits: Any
) -> None:
    """Try rules, facts and queries as you type them.

    FILE is a program to begin with. Rules and declarations take effect at once; facts arrive
    when they are typed; answers are shown as soon as they are certain. `.help` lists the
    commands.

    \b
    streamlog repl
    streamlog repl rules/airport/pc_alarm.slog
    streamlog repl < session.txt
    """
    from streamlog.app.render import console
    from streamlog.app.repl_session import INTERACTIVE, Session
    from streamlog.app.repl_shell import Shell

    out = console()
    shell = Shell(out, Session(limits_of(limits, INTERACTIVE), allow_python=allow_python))
    if program is not None:
        shell.load(program)
    if sys.stdin.isatty() and sys.stdout.isatty():
        from streamlog.app.repl_terminal import converse

        converse(shell)
    else:
        lines = (line.rstrip("\r\n") for line in sys.stdin)
        play(shell, lines, out if echo else None)
    ctx.exit(1 if shell.could_not_load else 0)


def play(shell: Shell, lines: Iterable[str], echo: Console | None = None) -> None:
    """Take the lines of a script, several where a statement needs them."""
    for text in inputs(lines):
        if echo is not None:
            for number, line in enumerate(text.split("\n")):
                prompt = MORE if number else PROMPT
                echo.print(f"{prompt}{line}".rstrip(), markup=False)
        if not shell.take(text):
            return


def inputs(lines: Iterable[str]) -> Iterator[str]:
    """Lines put together to inputs. A command cuts an unfinished statement short."""
    from streamlog.app.repl_session import is_complete
    from streamlog.app.repl_shell import is_command

    pending: list[str] = []
    for line in lines:
        if pending and is_command(line):
            yield "\n".join(pending)
            pending = []
        pending.append(line)
        text = "\n".join(pending)
        if is_complete(text):
            yield text
            pending = []
    if pending:
        yield "\n".join(pending)
