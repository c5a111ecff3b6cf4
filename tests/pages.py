"""README.md, docs/ and demos/ as sessions: their blocks, what commands and Python print, and what
should stand there. What a block is for stands behind its fence:

    slog                    compiles without errors (so does a block without a language)
    slog batch              the same over stored data, as with --batch
    slog fragment           only has to be statements
    slog SL0401             gives this code, and no other error
    slog file=a/b.slog      is also written to that file, for `use` and for commands further down
    console                 each `$ streamlog …` prints what stands below it; so do `$ cat …` and
                            `$ python …`
    console spark           the same where Spark is the engine, as it is for users
    python                  is run; blocks of a page see each other's names
    mermaid                 is a diagram; with explain=a/b.slog, the graph of that program
    ebnf                    uses no name that it does not define
    bash                    is what a shell can read
    text                    is not checked; with file=a/b.csv it is written, too; with
                            kernel=a/b.slog it is the code that the kernel generates
    text printed            is what the Python above it has printed

A page is one session. Those with Python or with Spark are replayed by tests/spark, the others by
test_docs.py. UPDATE_GOLDENS=1 writes what is printed now into the pages.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen
from click.testing import CliRunner

from streamlog.app.cli import main
from streamlog.compiler import compile_file
from streamlog.kernel import Kernel

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [
    ROOT / "README.md",
    *DOCS,
    *sorted((ROOT / "docs").glob("*/README.md")),
    *sorted((ROOT / "demos").glob("**/README.md")),
]
UPDATE = bool(os.environ.get("UPDATE_GOLDENS"))

# ------------------------------------------------------------------------------------- blocks


@frozen
class Block:
    """A fenced block: what stands behind the fence, and its lines from `first` up to `last`."""

    page: Path
    words: tuple[str, ...]
    first: int  # counted from one, without the fences
    last: int
    text: str
    heading: str  # the one above it
    lead: str  # the paragraph above it

    @property
    def language(self) -> str:
        return self.words[0] if self.words else "slog"

    @property
    def flags(self) -> tuple[str, ...]:
        return tuple(w for w in self.words[1:] if "=" not in w)

    def option(self, name: str) -> str | None:
        return next((w.split("=")[1] for w in self.words[1:] if w.startswith(f"{name}=")), None)

    @property
    def needs_spark(self) -> bool:
        return self.language == "python" or "spark" in self.flags

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.first}"


def blocks_of(page: Path) -> Iterator[Block]:
    heading, lead = "", ""
    words: tuple[str, ...] | None = None
    inside: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if words is None:
            fence = re.match(r"\s*(```+|~~~+)(.*)", line)
            if fence:
                assert fence[0].startswith("```") and fence[1] == "```", (
                    f"{page}:{number}: indented"
                )
                words, inside = tuple(fence[2].split()), []
            elif line.startswith("#"):
                heading = line.lstrip("# ")
            elif line.strip():
                lead = line
        elif line == "```":
            text = "".join(f"{one}\n" for one in inside)
            yield Block(page, words, number - len(inside), number, text, heading, lead)
            words = None
        else:
            inside.append(line)
    assert words is None, f"{page}: a block never ends"


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def write_files(folder: Path, before: Block) -> None:
    """The named files that stand above a block."""
    for block in blocks_of(before.page):
        if block.first >= before.first:
            return
        write_file(folder, block)


def write_file(folder: Path, block: Block) -> None:
    if name := block.option("file"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")


# ----------------------------------------------------------------------------------- sessions


def needs_spark(page: Path) -> bool:
    return any(b.needs_spark for b in BLOCKS if b.page == page)


def replay(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files stay, and commands see what earlier ones have done. A demo's page finds the demo's
    files."""
    if page.parent.parent.name == "demos":
        shutil.copytree(
            page.parent, folder, ignore=shutil.ignore_patterns("out"), dirs_exist_ok=True
        )
    monkeypatch.chdir(folder)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    wrong: list[str] = []
    lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    for old, now in reversed(list(_made(page, folder, monkeypatch))):
        if without_seconds(now.text) != without_seconds(old.text):
            wrong.insert(0, f"{old.name} should read\n{now.text}")
            lines[old.first - 1 : old.last - 1] = now.text.splitlines(keepends=True)
    if UPDATE:
        page.write_text("".join(lines), encoding="utf-8")
    elif wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def without_seconds(text: str) -> str:
    """How long Spark took is different each time."""
    return re.sub(r"^(Spark: .*?)[\d.]+ s$", r"\1… s", text, flags=re.MULTILINE)


def _made(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Block, Block]]:
    """The blocks whose text commands make, and as they should be."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in blocks_of(page):
        write_file(folder, block)
        explained = block.option("explain")
        if block.language == "python":
            printed = run_python(block, names)
            continue
        if block.language == "console":
            with monkeypatch.context() as patch:
                if "spark" in block.flags:
                    patch.setenv("STREAMLOG_ENGINE", "spark")
                now = transcript(block.text)
        elif block.language == "mermaid" and explained:
            now = run(f"streamlog explain --graph mermaid {explained}")
        elif kernel := block.option("kernel"):
            now = Kernel(compile_file(Path(kernel)).closed, {}).source
        elif "printed" in block.flags:
            now = printed
        else:
            continue
        yield block, evolve(block, text=now)


def transcript(text: str) -> str:
    """The commands of a block, each with what it prints now."""
    commands = [line for line in text.split("\n") if line.startswith("$ ")]
    assert commands, "a console block without a command"
    assert text.startswith("$ "), "output without a command"
    printed = (f"{command}\n{run(command[2:]).strip(chr(10))}\n" for command in commands)
    return "\n".join(printed)


def run(command: str) -> str:
    """What a command prints at 80 columns without colour, both streams together."""
    program, *args = shlex.split(command)
    match program:
        case "cat":
            return "".join(Path(name).read_text(encoding="utf-8") for name in args)
        case "python":
            return run_script(args)
        case "streamlog":
            typed = None
            if "<" in args:
                *args, _, name = args
                typed = Path(name).read_text(encoding="utf-8")
            result = CliRunner().invoke(main, args, input=typed, prog_name="streamlog")
            fine = result.exit_code in (0, 1)
            assert fine, f"`{command}` ends with {result.exit_code}: {result.output}"
            return without_blanks(result.output)
    raise AssertionError(f"only streamlog, python and cat can be run here, not `{command}`")


def run_script(args: list[str]) -> str:
    """In this process, so that it finds the Spark session that is there."""
    out = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(out):
        patch.setattr(sys, "argv", args)
        runpy.run_path(args[0], run_name="__main__")
    return without_blanks(out.getvalue())


def run_python(block: Block, names: dict[str, Any]) -> str:
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(block.text, block.name, "exec"), names)
    return without_blanks(out.getvalue())


def without_blanks(text: str) -> str:
    """Blanks at the ends of lines are nothing that a page can show."""
    return "".join(f"{line.rstrip()}\n" for line in text.rstrip("\n").split("\n"))
