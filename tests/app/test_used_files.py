"""What commands call the predicates of files that are used under an alias."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

AUTH = """export failed.
stream login(T: int, user: string) slack 2.
table known(user: string).
failed(T, U) <- tried(T, U), tried(T0, U), T - 9 <= T0, T0 < T.
tried(T, U) <- login(T, U), not known(U).
"""
MAIN = 'use "auth.slog" as auth.\noutput auth.failed, alarm.\nalarm(T) <- auth.failed(T, _).\n'


@pytest.fixture
def program(write) -> Path:
    write("auth.slog", AUTH)
    write("known.csv", "user\nann\n")
    write("login.csv", "T,user\n1,bob\n2,ann\n3,ann\n4,bob\n")
    return write("main.slog", MAIN)


def test_inputs_and_outputs(run, program: Path, tmp_path: Path) -> None:
    inputs = ("--input", "auth.login=login.csv", "--input", "auth.known=known.csv")
    options = (*inputs, "--engine", "local", "--checkpoint", "cp")
    outputs = ("--output", "auth.failed=auth.failed.jsonl", "--output", "alarm=alarm.csv")
    found = run("run", "main.slog", *options, *outputs)
    assert found.exit_code == 0
    assert (tmp_path / "auth.failed.jsonl").read_text() == '{"T": 4, "U": "bob"}\n'
    assert run("run", "main.slog", *options, *outputs).exit_code == 0  # resumed
    assert (tmp_path / "alarm.csv").read_text() == "T\n4\n"
    assert run("run", "main.slog", "--engine", "local", "--input", "login=login.csv").exit_code == 2


def test_a_slip_in_an_input_is_told(run, program: Path) -> None:
    found = run("run", "main.slog", "--engine", "local", "--input", "auth.logn=login.csv")
    assert "did you mean 'auth.login'?" in " ".join(found.stderr.split())


def test_an_export_does_not_change_the_program_of_a_checkpoint(run, write, program: Path) -> None:
    inputs = ("--input", "auth.login=login.csv", "--empty", "auth.known", "--output", "alarm=a.csv")
    outputs = ("--output", "auth.failed=b.csv", "--engine", "local", "--checkpoint", "cp")
    assert run("run", "main.slog", *inputs, *outputs).exit_code == 0
    write("auth.slog", AUTH.replace("export failed.", "export failed, tried."))
    assert run("run", "main.slog", *inputs, *outputs).exit_code == 0
    write("auth.slog", AUTH.replace("9", "8"))
    assert "program" in run("run", "main.slog", *inputs, *outputs).stderr


def test_findings_and_pictures(run, write, program: Path) -> None:
    assert '"auth.tried" -> "auth.failed"' in run("explain", "--graph", "dot", "main.slog").stdout
    assert '["auth.tried"]' in run("explain", "--graph", "mermaid", "main.slog").stdout
    kept = json.loads(run("explain", "--format", "json", "main.slog").stdout)
    assert "auth.login" in json.dumps(kept)
    write("main.slog", MAIN.replace("auth.failed(T, _)", "auth.tried(T, _)"))
    (found,) = json.loads(run("check", "--format", "json", "main.slog").stdout)["diagnostics"]
    assert found["code"] == "SL0209"
    assert "SL0209" in run("check", "--format", "sarif", "main.slog").stdout


def test_findings_of_a_used_file_are_reported_once(run, write, program: Path) -> None:
    write("auth.slog", AUTH.replace("T - 9 <= T0, ", "").replace("T0 < T", "T0 < T, T0 != 7"))
    alone = run("check", "auth.slog").stderr
    assert "every fact of `tried` is kept forever" in alone
    together = run("check", ".").stderr
    assert together == alone.replace("checked 1 file", "checked 2 files")
    assert "every fact of `auth.tried` is kept forever" in run("check", "main.slog").stderr


def test_the_standard_form(run, write) -> None:
    text = 'use   "auth.slog"   as auth .\nexport  p,q.\nextend auth.failed.\n'
    path = write("a.slog", text + "auth.failed( T,U ) <- not  auth.on,auth.p(T,U).\n")
    assert run("fmt", "a.slog").exit_code == 0
    assert path.read_text() == (
        'use "auth.slog" as auth.\nexport p, q.\nextend auth.failed.\n'
        "auth.failed(T, U) <- not auth.on, auth.p(T, U).\n"
    )


def test_a_session(run, program: Path) -> None:
    typed = """.load main.slog
.load auth.login=login.csv
.load auth.known=known.csv
.end
?auth.tried(T, U).
.why auth.failed(4, bob)
late(T, U) <- auth.failed(T, U), T > 3.
?late(T, U).
private(T) <- auth.tried(T, _).
use "auth.slog" as a.
again(T, U) <- a.failed(T, U).
?again(T, U).
.save all.slog
"""
    found = run("repl", input=typed).stdout
    assert "├── auth.tried(4, bob)" in found
    assert "`tried` is private to `auth.slog`" in found
    assert found.count("1 answer\nT   U\n───────\n4   bob\n") == 2
    assert run("check", "all.slog").exit_code == 0
    assert run("repl", "all.slog", input="?again(T, U).\n").exit_code == 0


def test_completion(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document
    from rich.console import Console

    from streamlog.app.repl_session import Session
    from streamlog.app.repl_shell import Shell
    from streamlog.app.repl_terminal import Words

    monkeypatch.chdir(program.parent)
    shell = Shell(Console(quiet=True), Session())
    shell.load("main.slog")

    def completed(before: str) -> list[str]:
        found = Words(shell).get_completions(Document(before), CompleteEvent())
        return [c.text for c in found]

    names = ["auth.failed", "auth.known", "auth.login", "auth.tried"]
    assert completed("p(T) <- q(T), auth.") == completed("p(T).au") == names
    assert completed("?auth.l") == ["auth.login"]
