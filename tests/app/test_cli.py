"""The command line as a whole: help, version, completion, and how it ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import click
import pytest

from streamlog import __version__
from streamlog.app import check
from streamlog.app.cli import COMMANDS, main


def test_version(run) -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"streamlog {__version__}\n")


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help(run, command: str | None, option: str) -> None:
    result = run(*filter(None, [command, option]))
    assert result.exit_code == 0
    usage = f"Usage: streamlog {command}" if command else "Usage: streamlog"
    assert result.stdout.startswith(usage)
    assert "  streamlog " in result.stdout or "$(streamlog " in result.stdout  # an example
    assert all(len(line) <= 80 for line in result.stdout.split("\n"))


def test_the_help_lists_every_command_with_a_whole_sentence(run) -> None:
    lines = run("--help").stdout.split("Commands:\n")[1].strip("\n").split("\n")
    assert [line.split()[0] for line in lines] == list(COMMANDS)
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)


def test_an_unknown_command(run) -> None:
    result = run("chekc")
    assert result.exit_code == 2
    assert "there is no command `chekc`; did you mean `check`?" in result.stderr
    assert "there is no command `xyz`; the commands are check, test," in run("xyz").stderr


@pytest.mark.parametrize("command", ["run", "repl"])
def test_a_folder_is_not_a_program(run, write, command: str) -> None:
    write("airport/data/report.csv", "T\n")
    found = run(command, "airport")
    assert (found.exit_code, "it has no .slog file" in found.stderr) == (2, True)
    write("airport/airport.slog", "")
    found = " ".join(run(command, "airport").stderr.split())
    some = "name one of its programs, such as 'airport/airport.slog'"
    assert f"'airport' is a folder; {some}" in found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(run, shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert f"_STREAMLOG_COMPLETE={shell}_complete" in result.stdout


def test_completion_of_an_unknown_shell(run) -> None:
    assert run("completion", "tcsh").exit_code == 2


def complete(*words: str) -> list[str]:
    """What bash would be offered for the last of these words."""
    env = {
        **os.environ,
        "_STREAMLOG_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("streamlog", *words)),
        "COMP_CWORD": str(len(words)),
    }
    code = "from streamlog.app.cli import main; main(prog_name='streamlog')"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    return done.stdout.split()


def test_completion_at_work() -> None:
    assert complete("ch") == ["plain,check"]
    assert complete("explain", "sl040") == [f"plain,SL040{n}" for n in range(1, 8)]
    assert complete("check", "--format", "s") == ["plain,sarif"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_bash_script_is_bash(run) -> None:
    script = run("completion", "bash").stdout
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def failing(error: BaseException):
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_an_internal_error_is_admitted(run, write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.slog", "p(1).\n")
    monkeypatch.setattr(check, "compile_target", failing(ValueError("broken")))
    result = run("check", "a.slog")
    assert (result.exit_code, result.stdout) == (70, "")
    assert result.stderr.startswith("streamlog: internal error: ValueError: broken\n")
    assert "Please report it" in result.stderr
    assert "Traceback" not in result.stderr


def test_debug_shows_where_it_happened(run, write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.slog", "p(1).\n")
    monkeypatch.setattr(check, "compile_target", failing(ValueError("broken")))
    monkeypatch.setenv("STREAMLOG_DEBUG", "1")
    result = run("check", "a.slog")
    assert isinstance(result.exception, ValueError)


def test_interruption_is_quiet(run, write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.slog", "p(1).\n")
    monkeypatch.setattr(check, "compile_target", failing(KeyboardInterrupt()))
    result = run("check", "a.slog")
    assert (result.exit_code, result.output) == (130, "")


def test_a_broken_pipe_is_quiet() -> None:
    # `explain` writes more than a pipe holds, to a reader that has gone.
    code = (
        "import sys\n"
        "from streamlog.app.cli import main\n"
        "from streamlog.codes import CODES\n"
        "main(['explain', *[*CODES] * 200], prog_name='streamlog')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == ("", 141)
    process.stderr.close()


def test_commands_are_found_by_name() -> None:
    context = click.Context(main)
    assert [main.get_command(context, name).name for name in COMMANDS] == list(COMMANDS)


def test_a_poor_terminal_is_no_reason_to_fail(tmp_path) -> None:
    (tmp_path / "a.slog").write_text('p(T, "日本") <- .\n', encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "streamlog.app.cli", "check", "a.slog"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert '1 | p(T, "??") <- .' in done.stderr
