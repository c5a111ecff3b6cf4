"""docs/papers.md has a row for everything that is numbered in the five papers, and tells the truth
about where it lives; docs/time-contract.md names every program that keeps something forever."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from attrs import frozen

from streamlog.compiler import compile_file

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers.md"
CONTRACT = ROOT / "docs" / "time-contract.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"


def numbered(kind: str, first: int, last: int) -> list[str]:
    return [f"{kind} {n}" for n in range(first, last + 1)]


# What is numbered in each paper, in the paper's order and words.
NUMBERED = {
    "Streamlog": ["Figure 1", *numbered("Example", 1, 12), "Theorem 1"],
    "TSA": [
        *numbered("Definition", 1, 9),
        "Proposition 10",
        *numbered("Definition", 11, 19),
        *numbered("Proposition", 20, 23),
        *numbered("Definition", 24, 27),
        "Proposition 28",
    ],
    "Event-Mill": [
        *numbered("Definition", 1, 19),
        *numbered("Proposition", 20, 22),
        *numbered("Definition", 23, 26),
        "Proposition 27",
        "Table 1",
        # The commands of the manual, and its two programs, by their sections.
        "2.3 clear",
        "2.4 compile",
        "2.5 load",
        "2.6 list specs",
        "2.7 remove spec",
        "2.8 clear specs",
        "2.9 init",
        "2.10 list progs",
        "2.11 run",
        "2.12 remove prog",
        "2.13 clear progs",
        "2.14 uninstall",
        "2.15 quit",
        "3.1 init",
        "3.2 start",
        "3.3 stop",
        "3.4 quit",
        "4.5.4 parse",
        "4.5.5 write",
        "4.6.3 read",
        "4.6.4 print",
        "5.1 variables",
        "5.2 inject",
        "5.3 pause",
        "6, hello world",
        "7, access control",
    ],
    "Garbage collection": [
        *numbered("Definition", 1, 10),
        "Lemma 1",
        *numbered("Definition", 11, 16),
        *numbered("Figure", 1, 13),
    ],
    "CTA": [
        *numbered("Definition", 1, 18),
        *numbered("Lemma", 1, 2),
        "Theorem 1",
        *numbered("Table", 1, 4),
        *numbered("Figure", 1, 4),
        "Figure A.5",
        *("Q0", "Q1", "Q2", "Q3", "Q4", "Q4′", "Q4″", "Q5", "Q6"),
        *("A1", "A2", "A3"),
    ],
}
COUNTED = re.compile(
    r"(Definition|Proposition|Theorem|Lemma|Example|Figure|Table) [A\d.]+|[QA]\d\W?"
)


@frozen
class Item:
    paper: str
    name: str
    what: str
    status: str
    where: str

    @property
    def paths(self) -> list[str]:
        return paths_in(self.where)


def paths_in(text: str) -> list[str]:
    """What is written as code and looks like a path: `rules/metro/fire.slog`, `docs/`."""
    return re.findall(r"`([\w.]+/[\w./]*)`", text)


def rows_below(page: Path, heading: str) -> list[list[str]]:
    """The cells of the table rows in a section, headings and rules left out."""
    text = page.read_text(encoding="utf-8")
    section = re.split(r"^#+ ", text.partition(f"# {heading}\n")[2], flags=re.M)[0]
    lines = [line for line in section.split("\n") if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[1:]]


ITEMS = [Item(paper, *cells) for paper in NUMBERED for cells in rows_below(PAGE, paper)]


@pytest.mark.parametrize("paper", NUMBERED)
def test_everything_numbered_has_a_row(paper: str) -> None:
    names = [item.name for item in ITEMS if item.paper == paper]
    assert len(names) == len(set(names))
    assert [name for name in NUMBERED[paper] if name not in names] == []
    counted = [name for name in names if COUNTED.fullmatch(name)]
    assert [name for name in counted if name not in NUMBERED[paper]] == []


@pytest.mark.parametrize("item", ITEMS, ids=lambda i: f"{i.paper}: {i.name}")
def test_a_row_says_where_or_why_not(item: Item) -> None:
    assert item.what
    if item.status == "done":
        # Some are said by what runs: a command, or the same as the row above.
        assert item.paths or re.search(r"`|the same", item.where)
    else:
        assert item.status == "not yet"
        assert len(item.where) > 5


def test_every_path_exists() -> None:
    for page in (PAGE, CONTRACT, ARCHITECTURE):
        named = paths_in(page.read_text(encoding="utf-8"))
        assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_counts_are_right() -> None:
    done = sum(item.status == "done" for item in ITEMS)
    counts = f"{len(ITEMS)} rows, {done} done, {len(ITEMS) - done} not yet"
    assert counts in PAGE.read_text(encoding="utf-8")


# ------------------------------------------------------------------------- kept forever


def keeps_for_ever() -> set[str]:
    """The programs in rules/ whose state grows without bound, by their contract."""
    programs = (p for p in (ROOT / "rules").rglob("*.slog") if "stored" not in p.parts)
    return {
        str(path.relative_to(ROOT))
        for path in programs
        if any(p.kept.is_unbounded for p in compile_file(path).contract.predicates)
    }


def test_what_is_kept_forever_is_documented() -> None:
    rows = rows_below(CONTRACT, "What is kept forever, and why")
    assert rows
    named = {path for programs, *_ in rows for path in paths_in(programs)}
    assert named == keeps_for_ever()
    assert all(len(reason) > 20 for *_, reason in rows)
