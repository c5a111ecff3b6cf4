"""The command line. Each command is a module of its own, imported only when it is asked for."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from streamlog import __version__
from streamlog.app.interrupts import INTERRUPTED

# In the order of the help: what people use most comes first.
COMMANDS = (
    "check",
    "test",
    "repl",
    "explain",
    "diff",
    "docs",
    "run",
    "upgrade",
    "instance",
    "catalog",
    "fmt",
    "new",
    "completion",
)

MISUSE = 2
EX_SOFTWARE = 70
BROKEN_PIPE = 141


class App(click.Group):
    """Finds its commands in the modules named after them, and ends quietly or honestly."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"streamlog.app.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from streamlog.diagnostics import did_you_mean

        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = did_you_mean(name, COMMANDS)
            hint = f"did you mean `{near}`?" if near else f"the commands are {', '.join(COMMANDS)}"
            ctx.fail(f"there is no command `{name}`; {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # a terminal without ≤ gets a ?, not a traceback
                stream.reconfigure(errors="replace")
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # a reader that has gone away is noticed here, not at exit
            return result
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            # What is still buffered must go somewhere when Python flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(BROKEN_PIPE)
        except OSError as error:  # a full disk or a forbidden file is not our bug
            place = f"{error.filename}: " if error.filename else ""
            click.echo(f"streamlog: {place}{error.strerror or error}", err=True)
            ctx.exit(MISUSE)
        except Exception as error:
            if os.environ.get("STREAMLOG_DEBUG"):
                raise
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            click.echo(
                f"streamlog: internal error: {what}\n"
                "This is a bug in streamlog. Please report it with the program that caused it;\n"
                "STREAMLOG_DEBUG=1 shows where it happened.",
                err=True,
            )
            ctx.exit(EX_SOFTWARE)


@click.group(cls=App, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="streamlog", message="%(prog)s %(version)s")
def main() -> None:
    """Rules over timestamped event streams, with a contract about time.

    \b
    streamlog new airport             start a project with a worked example
    streamlog check airport           check every program for errors
    streamlog test airport            run the tests of every program
    streamlog explain airport         how late is each answer, and what is kept?
    streamlog run airport.slog        compute the answers
    streamlog explain SL0401          explain a diagnostic code

    Exit codes: 0 success, 1 findings, 2 usage error. NO_COLOR turns colours off.
    """


if __name__ == "__main__":
    main()
