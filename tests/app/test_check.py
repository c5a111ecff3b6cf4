"""`streamlog check`: what it reads, prints and returns."""

from __future__ import annotations

import json

import pytest

GOOD = "output p.\np(T, X) <- q(T, X).\n"
BAD = "p(T) <- .\n"
UNREAD = "output p.\np(T, X) <- q(T, X).\nunread(T, X) <- q(T, X).\n"
BLOCKING = "output p.\np(T, X) <- q(T, X), not (q(T1, X), T1 > T).\n"


def test_a_good_program(run, write) -> None:
    write("a.slog", GOOD)
    result = run("check", "a.slog")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "checked 1 file: no findings\n"


def test_an_error(run, write) -> None:
    write("a.slog", BAD)
    result = run("check", "a.slog")
    assert (result.exit_code, result.stdout) == (1, "")
    lines = result.stderr.split("\n")
    assert lines[0].startswith("error[SL0101]: ")
    assert lines[1].startswith(" --> a.slog:1:")
    assert "1 | p(T) <- ." in lines
    assert lines[-3:] == ["", "checked 1 file: 1 error", ""]


def test_warnings_do_not_fail(run, write) -> None:
    write("a.slog", UNREAD)
    result = run("check", "a.slog")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning[SL0504]: ")
    assert result.stderr.endswith("\nchecked 1 file: 1 warning\n")


def test_batch_accepts_what_a_stream_refuses(run, write) -> None:
    write("a.slog", BLOCKING)
    refused = run("check", "a.slog")
    assert refused.exit_code == 1
    assert "error[SL0401]" in refused.stderr
    accepted = run("check", "--batch", "a.slog")
    assert accepted.exit_code == 0
    assert accepted.stderr.startswith("note[SL0401]: ")
    assert accepted.stderr.endswith("\nchecked 1 file: 1 note\n")


def test_folders_are_searched_in_order(run, write) -> None:
    for name in ("z.slog", "b/y.slog", "a/x.slog", "a/notes.txt", ".venv/hidden.slog"):
        write(f"rules/{name}", BAD)
    result = run("check", "--format", "json", "rules")
    found = json.loads(result.stdout)
    paths = [d["labels"][0]["path"] for d in found["diagnostics"]]
    assert list(dict.fromkeys(paths)) == ["rules/a/x.slog", "rules/b/y.slog", "rules/z.slog"]
    assert result.stderr.startswith("checked 3 files: ")


def test_a_file_named_twice_is_checked_once(run, write) -> None:
    write("rules/a.slog", GOOD)
    result = run("check", "rules/a.slog", "rules", "rules/a.slog")
    assert result.stderr == "checked 1 file: no findings\n"


def test_standard_input(run) -> None:
    result = run("check", "-", input=BAD)
    assert result.exit_code == 1
    assert " --> <stdin>:1:" in result.stderr
    assert run("check", "-", input=b"\xef\xbb\xbf" + GOOD.encode()).exit_code == 0


def test_standard_input_that_is_no_text(run) -> None:
    result = run("check", "-", input=b"\xff\xfe")
    assert result.exit_code == 2
    assert "standard input is not UTF-8" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["missing.slog"], "Path 'missing.slog' does not exist"),
        ([], "Missing argument 'PATH...'"),
        (["empty"], "there is no .slog file below 'empty'"),
        (["a.slog", "--format", "xml"], "'xml' is not one of"),
        (["a.slog", "--dump-after", "desugr"], "no pass 'desugr'; did you mean desugar?"),
        (["a.slog", "--dump-after", "nonsense"], "the passes are parse, load, desugar, "),
        (["a.slog", "--dump-after", "parse", "--format", "json"], "both write to standard output"),
    ],
)
def test_misuse(run, write, tmp_path, args: list[str], message: str) -> None:
    write("a.slog", GOOD)
    (tmp_path / "empty").mkdir()
    result = run("check", *args)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_dump_after(run, write) -> None:
    write("a.slog", GOOD)
    result = run("check", "--dump-after", "parse", "a.slog")
    assert result.exit_code == 0
    assert result.stdout == GOOD
    assert result.stderr == "checked 1 file: no findings\n"


def test_dump_after_names_each_of_several_files(run, write) -> None:
    write("a.slog", GOOD)
    write("b.slog", GOOD)
    result = run("check", "--dump-after", "parse", "a.slog", "b.slog")
    assert result.stdout == f"% a.slog\n{GOOD}% b.slog\n{GOOD}"


def test_machine_formats_go_to_stdout(run, write) -> None:
    write("a.slog", BAD)
    for form in ("json", "github", "sarif"):
        result = run("check", "--format", form, "a.slog")
        assert result.exit_code == 1
        assert "SL0101" in result.stdout
        assert "SL0101" not in result.stderr


def test_github_says_nothing_when_there_is_nothing(run, write) -> None:
    write("a.slog", GOOD)
    assert run("check", "--format", "github", "a.slog").stdout == ""


def test_no_color(run, write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.slog", BAD)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[1;31m" in run("check", "a.slog").stderr
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;31m" not in run("check", "a.slog").stderr
