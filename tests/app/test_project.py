"""`streamlog.toml`: settings, and where commands find them."""

from __future__ import annotations

from pathlib import Path

import pytest

PROGRAM = """
use "lib/streams.slog" as in.
output seen.

seen(T, X) <- in.msg(T, X), limit(X), X > 1.

test "more than one" {
    in.msg(1, 2).
    limit(2).
    end.
    expect seen(1, 2).
}
"""
UNREAD = "output o.\no(T) <- s(T).\np(T) <- s(T).\n"


@pytest.fixture
def project(write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """We stand in one of its folders."""
    write("streamlog.toml", '[run]\nengine = "local"\n[run.inputs]\nlimit = "data/limit.csv"\n')
    write("lib/streams.slog", "stream msg(T: int, n: int).\n")
    write("rules/deep/a.slog", "table limit(n: int).\n" + PROGRAM)
    write("data/limit.csv", "n\n2\n3\n")
    write("data/msg.csv", "T,n\n1,2\n5,4\n")
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path / "rules")
    monkeypatch.delenv("STREAMLOG_ENGINE", raising=False)
    return tmp_path


def test_commands_find_the_root(run, project: Path) -> None:
    assert run("check").stderr == "checked 2 files: no findings\n"
    assert run("test").stdout == "deep/a.slog: 1 passed\n1 passed\n".replace(
        "deep", "../rules/deep"
    )
    assert run("fmt", "--check").stderr == "2 files already in the standard form\n"
    assert run("check", "deep").exit_code == 0
    assert run("docs", "--output", "site").stderr == "wrote 3 pages to site\n"


def test_a_run_takes_its_engine_and_inputs(run, write, project: Path) -> None:
    """The table's rows are the project's; those of `in.msg` have to be given."""
    missing = run("run", "deep/a.slog")
    assert "stream `in.msg` has no rows" in " ".join(missing.output.split())
    found = run("run", "deep/a.slog", "--input", "in.msg=../data/msg.csv", "--format", "csv")
    assert (found.stdout, "state:" in found.stderr) == ("T,X\n1,2\n", True)
    write("other.csv", "n\n4\n")
    other = ("--input", "limit=../other.csv", "--format", "csv")
    found = run("run", "deep/a.slog", "--input", "in.msg=../data/msg.csv", *other)
    assert found.stdout == "T,X\n5,4\n"
    (project / "streamlog.toml").write_text(
        '[run]\nengine = "local"\n[run.inputs]\nin.msg = "data/msg.csv"\n"limit" = "data/limit.csv"'
    )
    assert run("run", "deep/a.slog", "--format", "csv").stdout == "T,X\n1,2\n"


def test_the_command_line_decides(run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "streamlog.toml").write_text('[run]\nengine = "spark"\n')
    given = ("--input", "in.msg=../data/msg.csv", "--empty", "limit")
    assert run("run", "deep/a.slog", "--engine", "local", *given).exit_code == 0
    monkeypatch.setenv("STREAMLOG_ENGINE", "local")
    assert run("run", "deep/a.slog", *given).exit_code == 0


def test_strict(run, write, project: Path) -> None:
    write("rules/unread.slog", UNREAD)
    assert run("check").exit_code == 0
    (project / "streamlog.toml").write_text("[check]\nstrict = true\n")
    found = run("check", "unread.slog")
    assert (found.exit_code, "warning[SL0504]" in found.stderr) == (1, True)
    assert run("check", "deep").exit_code == 0


def test_programs_for_stored_data(run, project: Path) -> None:
    (project / "streamlog.toml").write_text('batch = ["history/*.slog"]\n')
    (project / "history").mkdir()
    text = "stream s(T: int).\np(T) <- s(T), s(U), T < U.\ns(1). s(2).\n"
    stored, live = project / "history" / "last.slog", project / "live.slog"
    for place in (stored, live):
        place.write_text(text)
    result = run("check", str(stored))
    assert (result.exit_code, result.stderr) == (0, "checked 1 file: no findings\n")
    assert run("explain", str(stored)).stdout.startswith("Blocking: for stored data only.")
    result = run("run", "--engine", "local", str(stored), "--format", "csv")
    assert result.stdout == "T\n1\n"
    assert run("check", str(live)).exit_code == 1
    (project / "streamlog.toml").write_text("batch = true\n")
    assert "`batch` is a list of patterns" in run("check", str(stored)).stderr


def test_strict_is_a_matter_of_the_project_of_a_file(run, write, project: Path) -> None:
    write("a/streamlog.toml", "[check]\nstrict = true\n")
    write("a/fine.slog", "")
    write("b/unread.slog", UNREAD)
    assert run("check", "../a", "../b").exit_code == 0
    assert run("check", "--strict", "../a", "../b").exit_code == 1
    write("a/unread.slog", UNREAD)
    assert run("check", "../a", "../b").exit_code == 1


def test_warnings_that_a_project_allows(run, write, project: Path) -> None:
    write("rules/unread.slog", UNREAD + 'test "nothing" {\n    end.\n}\n')
    allow = '[check]\nstrict = true\n[check.allow]\nSL0504 = "they are being written"\n'
    (project / "streamlog.toml").write_text(allow)
    found = run("check", "unread.slog")
    assert (found.exit_code, found.stderr) == (0, "checked 1 file: no findings\n")
    assert run("test", "unread.slog").stderr == ""
    assert run("check", "-", input=UNREAD).exit_code == 0
    write("rules/wrong.slog", "p(X) <- q(Y).\n")
    assert run("check", "wrong.slog").exit_code == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[chek]", "unknown key `chek`; did you mean `check`?"),
        ("x = 1", "unknown key `x`; it can have batch, run, check"),
        ("[check]\nstrikt = true", "unknown key `strikt` in `[check]`; did you mean `strict`?"),
        ("[check]\nstrict = 1", "`check.strict` is true or false, not 1"),
        ('[run]\nengine = "duck"', "`run.engine` is 'spark' or 'local', not 'duck'"),
        ('run = "spark"', "`run` is a table: write `[run]` on a line of its own"),
        ('[run]\ninputs = "a.csv"', "`run.inputs` is a table"),
        ("[run.inputs]\nlimit = 3", "the input `limit` is a path in quotes"),
        ("[run", "it is not TOML: "),
        ('[check.allow]\nSL9999 = "x"', "there is no code `SL9999`"),
        ('[check.allow]\nSL0401 = "x"', "`SL0401` is an error; only warnings can be allowed"),
        ('[check.allow]\nSL0504 = " "', "say why `SL0504` is allowed"),
    ],
)
def test_what_is_wrong_with_it(run, project: Path, text: str, message: str) -> None:
    (project / "streamlog.toml").write_text(text + "\n")
    for command in (["check"], ["run", "deep/a.slog"]):
        found = run(*command)
        assert found.exit_code == 2
        assert f"Error: ../streamlog.toml: {message}" in " ".join(found.stderr.split())


def test_outside_of_a_project(run, tmp_path: Path) -> None:
    found = run("check")
    assert found.exit_code == 2
    assert "Missing argument 'PATH...': this folder does not lie in a project" in found.stderr
