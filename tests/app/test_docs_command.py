"""`streamlog docs`: pages about programs, whose links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

PROGRAM = """\
% Guessed passwords: *too many* wrong ones.
% Or so.

% A note.
use "lib/logins.slog".
output guessed.

@id "AUTH-1"
@severity high
@tags login, "a|b"
@owner team_a
guessed(T, U) <- login(T, U, true), wrong(T1, U), T1 < T, T1 >= T - 10min.

test "a guess" {
    login(@2026-11-15T08:00:00Z, ann, false).
    login(@2026-11-15T08:01:00Z, ann, true).
    end.
    expect guessed(@2026-11-15T08:01:00Z, ann).
}
"""
LIBRARY = """\
stream login(T: time, user: string, ok: bool) slack 5s.
wrong(T, U) <- login(T, U, false).
"""


@pytest.fixture
def pages(run, write, tmp_path: Path):
    write("rules/auth.slog", PROGRAM)
    write("rules/lib/logins.slog", LIBRARY)
    result = run("docs", "rules", "--output", "site")
    assert (result.exit_code, result.stderr) == (0, "wrote 3 pages to site\n")
    return tmp_path / "site"


def test_the_page_of_a_program(pages: Path) -> None:
    text = (pages / "rules" / "auth.md").read_text()
    assert text.startswith(
        "# rules/auth.slog\n\n[All programs](../index.md)\n\n"
        "Guessed passwords: \\*too many\\* wrong ones.\nOr so.\n\n## Contract\n\n"
        "Non-blocking. No answer waits for later events. State is bounded.\n"
    )
    assert "| [`login`](#predicate-login) | stream |  |  | nothing |" in text
    assert "```mermaid\nflowchart LR\n" in text
    assert (
        "### Predicate guessed\n\nColumns: `T: time`, `U: string`\n\n"
        "Reads: [`login`](#predicate-login), [`wrong`](#predicate-wrong)\n\n"
        "id: AUTH-1 · severity: high · tags: login, a\\|b · owner: team\\_a\n\n"
        "```slog\nguessed(T, U) <-"
    ) in text
    assert "from rules/lib/logins.slog\n\n```slog\nwrong(T, U) <-" in text
    assert '## Tests\n\na guess:\n\n```slog\ntest "a guess" {\n' in text


def test_the_index(pages: Path) -> None:
    text = (pages / "index.md").read_text()
    assert "| [rules/auth.slog](rules/auth.md) |" in text
    assert (
        "| AUTH-1 | high | login, a\\|b | team\\_a | [`guessed`](rules/auth.md#predicate-guessed) "
        "| [rules/auth.slog](rules/auth.md) |"
    ) in text
    places = "[rules/auth.slog](rules/auth.md#predicate-wrong)<br>"
    assert f"| `wrong` | {places}[rules/lib/logins.slog]" in text


def test_every_link_of_the_pages_about_our_rules(
    run, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    site = tmp_path / "site"
    result = run("docs", "rules", "--output", str(site))
    assert result.exit_code == 0, result.stderr
    pages = sorted(site.rglob("*.md"))
    assert len(pages) == len(list((repository / "rules").rglob("*.slog"))) + 1
    broken = []
    for page in pages:
        for link in re.findall(
            r"\]\(([^)]+)\)", re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        ):
            path, _, anchor = link.partition("#")
            target = page.parent / unquote(path) if path else page
            if not target.is_file() or (anchor and unquote(anchor) not in anchors(target)):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert broken == []


def anchors(page: Path) -> set[str]:
    """As GitHub makes them from headings."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_predicates_of_a_file_under_an_alias(run, write, tmp_path: Path) -> None:
    write("rules/lib/logins.slog", f"export wrong.\n{LIBRARY}")
    write("rules/p.slog", 'use "lib/logins.slog" as logins.\np(T) <- logins.wrong(T, _).\n')
    assert run("docs", "rules", "--output", "site").exit_code == 0
    page = tmp_path / "site" / "rules" / "p.md"
    assert "### Predicate logins.wrong\n" in page.read_text()
    assert "[`logins.wrong`](#predicate-loginswrong)" in page.read_text()
    assert "predicate-loginswrong" in anchors(page)


def test_timelines(run, write, tmp_path: Path) -> None:
    stream = "stream q(T: time, S: time) progress T slack 5s, S slack 1s."
    write("p.slog", f"{stream}\np(T) <- q(T, _).\n")
    assert run("docs", "p.slog", "--output", "site").exit_code == 0
    text = (tmp_path / "site" / "p.md").read_text()
    assert f"```slog\n{stream}\n```" in text and "Predicate q.S" not in text


def test_refused_and_stored(run, write, tmp_path: Path) -> None:
    write("wrong.slog", "p(T) <- q(U).\n")
    write("stored.slog", "next(T, U) <- at(T), at(U), U > T.\n")
    result = run("docs", ".", "--output", "site")
    assert result.exit_code == 1
    assert "error[SL0306]" in result.stderr
    assert "This program is refused:\n\n- SL03" in (tmp_path / "site" / "wrong.md").read_text()
    assert "for stored data only" in (tmp_path / "site" / "stored.md").read_text()


def test_a_file_from_elsewhere(run, write, tmp_path: Path, monkeypatch) -> None:
    write("there/p.slog", "p(T) <- q(T).\n")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert run("docs", "../there/p.slog", "--output", "site").exit_code == 0
    assert (here / "site" / "p.md").is_file()
    assert run("docs", "-", "--output", "site", input="p(T) <- q(T).").exit_code == 2
