"""Every block in README.md, docs/ and demos/ is compiled or run, and every link leads somewhere.

What a block is for stands behind its fence:

    slog                    compiles without errors (so does a block without a language)
    slog batch              the same over stored data, as with --batch
    slog fragment           only has to be statements
    slog SL0401             gives this code, and no other error
    slog file=a/b.slog      is also written to that file, for `use` and for commands further down
    console                 each `$ streamlog …` prints what stands below it; so does `$ cat …`
    mermaid                 is a diagram; with explain=a/b.slog, the graph of that program
    ebnf                    uses no name that it does not define
    bash                    is what a shell can read
    text                    is not checked; with file=a/b.csv it is written, too; with
                            kernel=a/b.slog it is the code that the kernel generates

UPDATE_GOLDENS=1 writes what the commands print now into the pages.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen
from click.testing import CliRunner

from streamlog.analysis.builtins import (
    AGGREGATE_SIGNATURES,
    FUNCTIONS,
    GOALS,
    OPERATORS,
)
from streamlog.app.cli import main
from streamlog.codes import CODES
from streamlog.compiler import Mode, compile_file, compile_source
from streamlog.diagnostics import Diagnostic, Source
from streamlog.kernel import Kernel
from streamlog.syntax.ast import Type
from streamlog.syntax.declare import STREAM_OPTIONS
from streamlog.syntax.literals import UNITS
from streamlog.syntax.parse import parse
from streamlog.syntax.scan import KEYWORDS, RESERVED

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [
    ROOT / "README.md",
    *DOCS,
    *sorted((ROOT / "docs").glob("*/README.md")),
    *sorted((ROOT / "demos").glob("*/README.md")),
]
LANGUAGE = ROOT / "docs" / "language.md"
DIAGNOSTICS = ROOT / "docs" / "diagnostics.md"
UPDATE = bool(os.environ.get("UPDATE_GOLDENS"))
KNOWN = {
    "slog",
    "console",
    "mermaid",
    "ebnf",
    "bash",
    "text",
    "python",
}  # tests/spark runs the last
DIAGRAMS = ("flowchart", "graph", "sequenceDiagram", "stateDiagram-v2", "gantt", "timeline")


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


def blocks(*languages: str) -> pytest.MarkDecorator:
    found = [b for b in BLOCKS if b.language in languages]
    return pytest.mark.parametrize("block", found, ids=[b.name for b in found])


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


def test_every_block_says_what_it_is() -> None:
    assert [b.name for b in BLOCKS if b.language not in KNOWN] == []
    unknown = {w for b in BLOCKS for w in b.flags} - {"batch", "fragment"} - CODES.keys()
    assert unknown == set()


# ----------------------------------------------------------------------------------- programs


@blocks("slog")
def test_programs(block: Block, tmp_path: Path) -> None:
    source = Source(block.name, block.text)
    if "fragment" in block.flags:
        assert _told(parse(source)[1]) == []
        return
    write_files(tmp_path, block)
    mode = Mode.BATCH if "batch" in block.flags else Mode.STREAM
    found = compile_source(source, mode=mode, root=tmp_path).diagnostics
    if block.page == DIAGNOSTICS:
        # These come in pairs, below the code's own heading.
        gives = block.heading.split(":")[0] in {d.code for d in found}
        assert gives is block.lead.startswith("Gives this code"), _told(found)
        return
    expected = set(block.flags) & CODES.keys()
    assert {d.code for d in found if d.is_error or d.code in expected} == expected, _told(found)


def _told(diagnostics: tuple[Diagnostic, ...]) -> list[str]:
    return [
        f"{d.code} at line {d.span.source.position(d.span.start)[0]}: {d.message}"
        for d in diagnostics
    ]


# ----------------------------------------------------------------------------------- commands


def run(command: str) -> str:
    """What a command prints at 80 columns without colour, both streams together."""
    program, *args = shlex.split(command)
    if program == "cat":
        return "".join(Path(name).read_text(encoding="utf-8") for name in args)
    assert program == "streamlog", f"only streamlog and cat can be run here, not `{command}`"
    result = CliRunner().invoke(main, args, prog_name="streamlog")
    assert result.exit_code in (0, 1), f"`{command}` ends with {result.exit_code}: {result.output}"
    # Blanks at the ends of lines are nothing a page can show.
    return "".join(f"{line.rstrip()}\n" for line in result.output.rstrip("\n").split("\n"))


def transcript(text: str) -> str:
    """The commands of a block, each with what it prints now."""
    commands = [line for line in text.split("\n") if line.startswith("$ ")]
    assert commands, "a console block without a command"
    assert text.startswith("$ "), "output without a command"
    printed = (f"{command}\n{run(command[2:]).strip(chr(10))}\n" for command in commands)
    return "\n".join(printed)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is one session: files stay, and commands see what earlier ones have done. A demo's
    page finds the demo's files."""
    if page.parent.parent.name == "demos":
        shutil.copytree(page.parent, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    wrong: list[str] = []
    lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    for block in reversed(run_session(page, tmp_path, wrong)):
        lines[block.first - 1 : block.last - 1] = block.text.splitlines(keepends=True)
    if UPDATE and wrong:
        page.write_text("".join(lines), encoding="utf-8")
        return
    assert wrong == []


def run_session(page: Path, folder: Path, wrong: list[str]) -> list[Block]:
    """The blocks whose text commands make, with their present text."""
    made = []
    for block in blocks_of(page):
        write_file(folder, block)
        explained = block.option("explain")
        if block.language == "console":
            now = transcript(block.text)
        elif block.language == "mermaid" and explained:
            now = run(f"streamlog explain --graph mermaid {explained}")
        elif kernel := block.option("kernel"):
            now = Kernel(compile_file(Path(kernel)), {}).source
        else:
            continue
        if now != block.text:
            wrong.append(f"{block.name} should read\n{now}")
        made.append(
            Block(block.page, block.words, block.first, block.last, now, block.heading, block.lead)
        )
    return made


# ------------------------------------------------------------------------------- other blocks


@blocks("mermaid")
def test_diagrams(block: Block) -> None:
    first, *rest = block.text.split("\n")
    assert first.split()[0] in DIAGRAMS
    assert any(line.strip() for line in rest)


@blocks("ebnf")
def test_grammars_define_what_they_use(block: Block) -> None:
    without_texts = re.sub(r'"[^"]*"|\'[^\']*\'|\(\*.*?\*\)|\?[^?]*\?', " ", block.text)
    defined = set(re.findall(r"^(\w+)\s*=", without_texts, re.M))
    used = set(re.findall(r"\b[a-z]\w*\b", without_texts))
    assert used - defined == set()
    start = re.match(r"\w+", block.text)
    assert start is not None
    assert defined - set(re.findall(r"\b\w+\b(?!\s*=[^=])", without_texts)) - {start[0]} == set()


@blocks("bash")
def test_shell_commands(block: Block) -> None:
    subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)


# ------------------------------------------------------------------------------ the reference


def test_the_reference_names_everything() -> None:
    text = LANGUAGE.read_text(encoding="utf-8")
    words = {
        *KEYWORDS,
        *RESERVED,
        *FUNCTIONS,
        *GOALS,
        *AGGREGATE_SIGNATURES,
        *STREAM_OPTIONS,
        *UNITS,
        *map(str, Type),
    }
    assert {w for w in words if not re.search(rf"`[^`\n]*(?<![a-z_]){w}\b[^`\n]*`", text)} == set()


def test_the_type_table_is_that_of_the_compiler() -> None:
    text = LANGUAGE.read_text(encoding="utf-8")
    types = "|".join(map(str, Type))
    table = re.findall(rf"`({types}) (\S+) ({types})` → ({types})", text)
    taken = [(str(s[0]), op, str(s[1]), str(s[2])) for op, all_ in OPERATORS.items() for s in all_]
    assert sorted(table) == sorted(taken)


# -------------------------------------------------------------------------------------- links


def prose(page: Path) -> str:
    """The page without its blocks and code, where brackets mean something else."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", lambda m: m[0] if m[0].startswith("`SL") else "``", text)


def anchors(page: Path) -> set[str]:
    """GitHub's names for the headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_can_be_reached() -> None:
    readme = prose(ROOT / "README.md")
    assert [p.name for p in DOCS if f"](docs/{p.name})" not in readme] == []
