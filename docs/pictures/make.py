"""Makes the picture of the README by running the commands that it shows.

python docs/pictures/make.py
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
DEMO = HERE.parents[1] / "demos" / "01_first_alarm"
WIDTH = 106
COMMANDS = (
    "streamlog explain alarm.slog",
    "streamlog run alarm.slog --engine local",
)


def printed(command: str) -> str:
    """All that a command writes to a terminal with colours."""
    program, *args = shlex.split(command)
    assert program == "streamlog"
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM")}
    done = subprocess.run(
        [sys.executable, "-m", "streamlog.app.cli", *args],
        cwd=DEMO,
        env={**env, "FORCE_COLOR": "1", "TERM": "xterm-256color"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


def picture() -> str:
    console = Console(
        record=True, file=io.StringIO(), width=WIDTH, force_terminal=True, color_system="truecolor"
    )
    for number, command in enumerate(COMMANDS):
        if number:
            console.print()
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        console.print(Text.from_ansi(printed(command).rstrip()))
    svg = console.export_svg(title="streamlog", unique_id="first-alarm")
    # A font that would be fetched from elsewhere whenever the picture is shown.
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.S)


if __name__ == "__main__":
    (HERE / "first_alarm.svg").write_text(picture(), encoding="utf-8")
