"""Every block in README.md, docs/ and demos/ is compiled or run, and every link leads somewhere.

`pages.py` says what blocks there are. Pages that need Spark are replayed by tests/spark.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from pages import BLOCKS, DOCS, PAGES, ROOT, Block, needs_spark, replay, write_files

from streamlog.analysis.builtins import (
    AGGREGATE_SIGNATURES,
    FUNCTIONS,
    GOALS,
    OPERATORS,
)
from streamlog.codes import CODES
from streamlog.compiler import Mode, compile_source
from streamlog.diagnostics import Diagnostic, Source
from streamlog.syntax.ast import Type
from streamlog.syntax.declare import STREAM_OPTIONS
from streamlog.syntax.literals import UNITS
from streamlog.syntax.parse import parse
from streamlog.syntax.scan import KEYWORDS, RESERVED

LANGUAGE = ROOT / "docs" / "language.md"
DIAGNOSTICS = ROOT / "docs" / "diagnostics.md"
KNOWN = {"slog", "console", "mermaid", "ebnf", "bash", "text", "python"}
FLAGS = {"batch", "fragment", "spark", "printed"}
DIAGRAMS = ("flowchart", "graph", "sequenceDiagram", "stateDiagram-v2", "gantt", "timeline")


def blocks(*languages: str) -> pytest.MarkDecorator:
    found = [b for b in BLOCKS if b.language in languages]
    return pytest.mark.parametrize("block", found, ids=[b.name for b in found])


def test_every_block_says_what_it_is() -> None:
    assert [b.name for b in BLOCKS if b.language not in KNOWN] == []
    unknown = {w for b in BLOCKS for w in b.flags} - FLAGS - CODES.keys()
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


@pytest.mark.parametrize(
    "page", [p for p in PAGES if not needs_spark(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_commands(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replay(page, tmp_path, monkeypatch)


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
