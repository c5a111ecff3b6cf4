"""`run --log json`: messages as JSON Lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RULES = "stream s(T: int, A: string).\noutput p.\np(T, A) <- s(T, A).\n"


def run(folder: Path, *args: str) -> tuple[str, list[dict[str, str]]]:
    command = [sys.executable, "-m", "streamlog.app.cli", "run", "p.slog", "--engine", "local"]
    done = subprocess.run(
        [*command, "--log", "json", *args], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout, [json.loads(line) for line in done.stderr.splitlines()]


def test_every_line_is_an_object(write, tmp_path: Path) -> None:
    write("p.slog", RULES)
    write("s.csv", 'T,A\n1,a\nsoon,"say ""no"""\n0,\u00e4\n')
    answers, found = run(tmp_path, "--input", "s=s.csv", "--format", "csv")
    assert answers == "T,A\n1,a\n"
    assert all(entry.keys() == {"at", "level", "message"} for entry in found)
    told = [(entry["level"], entry["message"].split(":")[0]) for entry in found]
    assert ("warning", "rejected s s.csv") in told and ("warning", "late s") in told
    assert ("info", "state") in told


def test_errors_too(write, tmp_path: Path) -> None:
    write("p.slog", RULES)
    _, found = run(tmp_path, "--input", "s=nothing.csv")
    assert ("error", "Error: there is no file 'nothing.csv' for `s`") in [
        (entry["level"], entry["message"]) for entry in found
    ]
