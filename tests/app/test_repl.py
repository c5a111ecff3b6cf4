"""The REPL: transcripts below `repl/`, and what a transcript cannot show.

A transcript is what `streamlog repl --echo < script` prints. Its inputs are run again and must
give the same; `UPDATE_GOLDENS=1` writes it anew.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from streamlog.app.cli import main
from streamlog.app.repl import MORE, PROMPT, inputs, play
from streamlog.app.repl_session import Answers, Refused, Session, is_complete
from streamlog.app.repl_shell import Shell
from streamlog.kernel import Kernel
from streamlog.runtime.executor import LimitError

TRANSCRIPTS = sorted((Path(__file__).parent / "repl").glob("*.txt"))
FIRST = "first(T, X) <- msg(T, X), not previous(T, X).\nprevious(T, X) <- msg(T0, X), T0 < T.\n"


def typed(transcript: str) -> str:
    prompts = (PROMPT, MORE)
    lines = (
        line[len(PROMPT) :] if line.startswith(prompts) else ""
        for line in transcript.splitlines()
        if line.startswith(prompts) or line == PROMPT.strip()
    )
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda p: p.stem)
def test_transcript(path: Path, golden: Callable[[Path, str], None], run) -> None:
    result = run("repl", "--echo", input=typed(path.read_text(encoding="utf-8")))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    golden(path, result.stdout)


@pytest.fixture
def shell() -> Shell:
    return Shell(Console(width=80, highlight=False))


@pytest.fixture
def say(shell: Shell, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """What the shell prints for an input."""

    def say(text: str) -> str:
        capsys.readouterr()
        shell.take(text)
        return capsys.readouterr().out

    return say


# ---------------------------------------------------------------------------- piped input


def test_without_echo_only_results_are_printed(run) -> None:
    result = run("repl", input=f"{FIRST}msg(1, red).\n?first(1, red).\n")
    assert result.stdout == "first: 1 new answer\nT   X\n───────\n1   red\ntrue\n"
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_program_to_begin_with(run, write) -> None:
    write("first.slog", FIRST + "msg(3, blue).\nmsg(1, red).\n?first(T, red).\n")
    result = run("repl", "first.slog", input="?first(T, X).\n")
    assert result.stdout.count("1   red") == 2
    assert "late" not in result.stdout
    assert result.exit_code == 0


@pytest.mark.parametrize("given", [["nowhere.slog"], ["wrong.slog"], []])
def test_a_file_that_cannot_be_loaded_is_told_by_the_exit_code(run, write, given) -> None:
    write("wrong.slog", "p(T) <- q(X).\n")
    result = run("repl", *given, input="" if given else ".load wrong.slog\n?x(T).\n")
    assert result.exit_code == 1
    assert "error[SL0" in result.stdout


def test_the_last_line_needs_no_end(run) -> None:
    assert "error[SL0101]" in run("repl", input="p(T) <- q(T)").stdout
    assert run("repl", input="q(1).\n?q(T).").stdout == "1 answer\nT\n─\n1\n"


def test_windows_line_ends(run) -> None:
    assert run("repl", input="q(1).\r\n?q(1).\r\n").stdout == "true\n"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["p(1).", "p(2)."], ["p(1).", "p(2)."]),
        (["p(T) <-", "  q(T)."], ["p(T) <-\n  q(T)."]),
        (["p(T) <-", ".facts"], ["p(T) <-", ".facts"]),
        (["p(1)", "."], ["p(1)\n."]),
        (["/* a", ". */", "p(1)."], ["/* a\n. */", "p(1)."]),
        (['test "a" {', "p(1).", "}", "?p(X)."], ['test "a" {\np(1).\n}', "?p(X)."]),
        (["p(1)"], ["p(1)"]),
        ([""], [""]),
    ],
)
def test_lines_are_put_together(lines: list[str], found: list[str]) -> None:
    assert list(inputs(lines)) == found


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("p(1).", True),
        ("p(1)", False),
        ('p("a.', True),
        ('p("a."', False),
        ("p(1). % and", True),
        ("% a comment", True),
        ("p(1.5", False),
        ("?p(X", False),
        ('test "a" { p(1).', False),
        (".help", True),
    ],
)
def test_completeness(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


# ------------------------------------------------------------------- what must not be lost


def answers(session: Session, text: str) -> list[tuple[str, list[object], bool]]:
    return [
        (said.pred, list(said.rows), said.gone)
        for said in session.enter(text)
        if isinstance(said, Answers)
    ]


def test_a_refused_statement_changes_nothing() -> None:
    session = Session()
    list(session.enter(FIRST))
    before = session.state
    with pytest.raises(Refused):
        list(session.enter("first(T) <- msg(T, X)."))
    assert session.state is before
    assert answers(session, "msg(1, red).") == [("first", [(1, "red")], False)]


def test_several_statements_are_taken_together_or_not_at_all() -> None:
    session = Session()
    with pytest.raises(Refused):
        list(session.enter("msg(1, red). p(T) <- msg(T)."))
    assert session.state.events == ()


def test_answers_are_shown_once_and_taken_back_when_the_program_changes() -> None:
    session = Session()
    assert answers(session, "p(T, X) <- q(T, X), not r(X). table r(x: string).") == []
    assert answers(session, "q(1, a). q(1, b).") == [("p", [(1, "a"), (1, "b")], False)]
    assert answers(session, "s(T, X) <- q(T, X).") == [("s", [(1, "a"), (1, "b")], False)]
    assert answers(session, "r(a).") == [("p", [(1, "a")], True)]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), LimitError("stopped after 1 rows: x")])
def test_an_evaluation_that_is_stopped_is_forgotten(say, monkeypatch, error) -> None:
    say(FIRST)
    say("msg(1, red).")

    def stopped(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "step", stopped)
        said = say("msg(2, blue).")
    assert "stopped" in said
    assert "the session is as it was before" in " ".join(said.split())
    assert say("?msg(T, X).") == "1 answer\nT   X\n───────\n1   red\n"
    assert "2   green" in say("msg(2, green).")


def test_a_rule_that_is_stopped_leaves_the_engine_as_it_was(shell, say, monkeypatch) -> None:
    say(FIRST)
    say("msg(1, red).")
    engine = shell.session.engine

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "step", stopped)
        say("p(T) <- msg(T, X).")
    assert shell.session.engine is engine
    assert "no predicate `p`" in say("?p(T).")


def test_facts_go_to_the_engine_at_hand(shell, say) -> None:
    say(FIRST)
    say("msg(1, red).")
    engine = shell.session.engine
    say("msg(2, blue).")
    assert shell.session.engine is engine


def test_a_limit_can_be_raised(say) -> None:
    say("p(T, X, 1) <- q(T, X). p(T, X, N) <- p(T, X, M), N = M + 1, N < 60.")
    say(".limit rounds 10")
    assert "`.limit rounds N`" in say("q(1, a).")
    say(".limit rounds 100")
    assert "59 new answers" in say("q(1, a).")


# ----------------------------------------------------------------------- files and folders


def test_what_is_saved_can_be_loaded(say, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.slog").write_text("% a comment\n" + FIRST)
    say(".load first.slog")
    say("msg(1, red).")
    assert say(".save all.slog") == "saved to all.slog\n"
    assert (tmp_path / "all.slog").read_text() == f"% a comment\n{FIRST}\nmsg(1, red).\n"
    say("msg(2, blue).")
    assert say(".save all.slog") == "saved to all.slog\n"
    (tmp_path / "other.slog").write_text("")
    assert "already exists" in say(".save other.slog")
    say(".clear")
    assert "2 new answers" in say(".load all.slog")
    assert "'nowhere/all.slog': no such file or directory" in say(".save nowhere/all.slog")


def test_rows_of_files(say, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "near.csv").write_text("a,b\ngate1,gate2\n")
    (folder / "p.slog").write_text(
        'table near(a: string, b: string) from "near.csv".\n'
        'stream seen(T: int, a: string) from "seen.csv".\n'
        "p(T, B) <- seen(T, A), near(A, B).\n"
    )
    (folder / "seen.csv").write_text("T,a\n1,gate1\nnever,gate1\n2,gate3\n")
    assert say(".load program/p.slog") == "the rows of `seen` arrive with `.load`\n"
    said = say(".load program/seen.csv")
    assert "1   gate2" in said
    assert "rejected seen program/seen.csv:3: column `T`: 'never' is not a valid int" in said
    assert said.endswith("2 rows of seen\n")
    assert "is defined by rules" in say(".load program/seen.csv p")
    assert "no predicate `x`" in say(".load x=program/seen.csv")
    assert "one program, or any number of data files" in say(".load program/seen.csv x")
    assert "there is no file 'none.csv'" in say(".load none.csv")


ALARM = """
stream pre(T: int, area: string) slack 1 idle 3 from "data/pre.csv".
stream report(T: int, area: string) slack 1 idle 3 from "data/report.csv".
output alarm.
alarm(T, A) <- pre(T, A), not (report(T1, A), T <= T1, T1 <= T + 5).
"""


@pytest.mark.parametrize(
    "command",
    [
        ".load",
        ".load data",
        ".load data/pre.csv data/report.csv",
        ".load report=data/report.csv pre=data/pre.csv",
    ],
)
def test_rows_of_several_streams_are_merged_by_time(say, tmp_path, monkeypatch, command) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "program" / "data"
    folder.mkdir(parents=True)
    (folder.parent / "alarm.slog").write_text(ALARM)
    (folder / "pre.csv").write_text("T,area\n1,a\n2,b\n30,c\n")
    (folder / "report.csv").write_text("T,area\n3,a\n29,x\n")
    (folder / "notes.txt").write_text("not data")
    said = say(".load program/alarm.slog")
    assert said == "the rows of `pre` and `report` arrive with `.load`\n"
    said = say(command)
    assert "late" not in said
    assert "2   b" in said and "1   a" not in said
    assert "3 rows of pre" in said and "2 rows of report" in said


def test_a_folder_without_rows_of_the_program(say, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "other.csv").write_text("T\n1\n")
    assert "no stream names a file" in say(".load")
    assert "no file in 'data' has the name of a predicate" in say(".load data")


def test_rows_of_a_table(say, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more.csv").write_text("a\nred\n")
    say("table loud(a: string). p(T, X) <- msg(T, X), loud(X). msg(1, red).")
    assert "1   red" in say(".load more.csv loud")


def test_a_program_uses_files_beside_it(say, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "lib.slog").write_text(FIRST)
    (tmp_path / "sub" / "p.slog").write_text('use "lib.slog".\nmsg(1, red).\n')
    assert "1   red" in say(".load sub/p.slog")
    say(".save all.slog")
    assert "previous(T, X) <-" in (tmp_path / "all.slog").read_text()


def test_a_question_without_its_mark(say) -> None:
    say(FIRST)
    assert "a question begins with `?`: `?first(T, X).`" in say("first(T, X).")


# -------------------------------------------------------------------- the terminal's parts


def test_completion(shell, say, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.slog").write_text("")
    say(FIRST)
    assert ("first", "derived") in list(shell.words("?fi"))
    assert ("not", "keyword") in list(shell.words("p(T) <- q(T), n"))
    assert ("none", "keyword") in list(shell.words("p(T) <- q(T, X), X != n"))
    assert ("since", "keyword") in list(shell.words("state burning(A) s"))
    assert ("during", "keyword") in list(shell.words("p(T) <- q(S, E), (S, E) du"))
    assert "during" not in dict(shell.words("p(T) <- du"))
    say("state seen(X) since msg(_, X) for at most 5.")
    assert ("seen", "state") in list(shell.words("?se"))
    assert ".facts" in dict(shell.words(".fa"))
    assert "first" in dict(shell.words(".facts f"))
    assert "a.slog" in dict(shell.words(".load a"))


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("?fi", ["first"]),
        (".fa", [".facts"]),
        ("?first(T, X), prev", ["previous"]),
        ("p(T, med", ["median"]),
        ("p(T) <- q(T, X), betw", ["between"]),
        ("p(date_t", ["date_trunc"]),
        ("stream s(T: ti", ["time"]),
        ("stream s(T: time(m", ["ms"]),
        (".load a", []),
    ],
)
def test_completions(shell, say, before: str, found: list[str], tmp_path, monkeypatch) -> None:
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from streamlog.app.repl_terminal import Words

    monkeypatch.chdir(tmp_path)
    say(FIRST)
    completions = Words(shell).get_completions(Document(before), CompleteEvent())
    assert [c.text for c in completions] == found


def coloured(text: str) -> list[tuple[str, str]]:
    """The pieces of an input with the names of their styles, line by line."""
    from prompt_toolkit.document import Document
    from prompt_toolkit.lexers import PygmentsLexer

    from streamlog.app.repl_terminal import InputLexer

    document = Document(text)
    line = PygmentsLexer(InputLexer).lex_document(document)
    pieces = [
        piece for number in range(document.line_count) for piece in [*line(number), ("", "\n")]
    ]
    return [(style.removeprefix("class:pygments."), part) for style, part, *_ in pieces[:-1]]


def test_colours_keep_the_text() -> None:
    text = 'output p. p(T, "a") <- q(T, 5s), % why\n  not r(@2026-01-01).\n/* half'
    assert "".join(part for _, part in coloured(text)) == text
    styles = {part: style for style, part in coloured(text)}
    assert styles["output"] == "keyword.declaration"
    assert styles["not"] == "operator.word"
    assert styles["% why"] == "comment.single"
    assert styles["/* half"] == "comment.multiline"


@pytest.mark.parametrize("text", [".why p(1)", ".help", "  .facts p"])
def test_a_command_has_a_colour_of_its_own(text: str) -> None:
    pieces = coloured(text)
    assert "".join(part for _, part in pieces) == text
    assert ("keyword.pseudo", text.split()[0]) in pieces


@pytest.mark.parametrize("no_color", ["", "1"])
def test_colours_reach_the_terminal_unless_they_are_unwanted(
    shell, tmp_path, monkeypatch, no_color: str
) -> None:
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output.vt100 import Vt100_Output

    from streamlog.app.repl_terminal import converse

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("NO_COLOR", no_color)
    screen = io.StringIO()
    output = Vt100_Output(screen, lambda: Size(24, 80), term="xterm", enable_cpr=False)
    with create_pipe_input() as piped, create_app_session(input=piped, output=output):
        piped.send_text("table p(x: int).\r.quit\r")
        converse(shell)
    colours = {style.split(";")[1] for style in re.findall(r"\x1b\[(0;3\d)", screen.getvalue())}
    assert colours == (set() if no_color else {"32", "34", "35"})


def test_history(monkeypatch, tmp_path) -> None:
    from streamlog.app import repl_terminal

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert repl_terminal.history_path() == tmp_path / "streamlog" / "history"
    repl_terminal.history().append_string("p(1).")
    assert "+p(1)." in (tmp_path / "streamlog" / "history").read_text()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "streamlog" / "history"))
    repl_terminal.history().append_string("p(2).")  # a folder that cannot be


@pytest.fixture
def converse(shell: Shell, tmp_path, monkeypatch) -> Iterator[Callable[[str], str]]:
    """Type keys into the line editor."""
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    from streamlog.app.repl_terminal import converse

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def type_in(keys: str) -> str:
        with (
            create_pipe_input() as piped,
            create_app_session(input=piped, output=DummyOutput()),
            shell.out.capture() as printed,
        ):
            piped.send_text(keys)
            converse(shell)
        return printed.get()

    return type_in


def test_the_line_editor(converse) -> None:
    printed = converse("q(1,\ra).\r?q(T, X).\rhalf\x03.quit\r")
    assert printed.endswith("1 answer\nT   X\n─────\n1   a\n")


def test_ctrl_d_leaves(converse) -> None:
    assert converse("\x04").startswith("streamlog ")


def test_a_command_cuts_an_unfinished_statement_short(converse) -> None:
    assert "error[SL0101]" in converse("q(1\r.quit\r")


def test_play_stops_at_quit(shell) -> None:
    with shell.out.capture() as printed:
        play(shell, ["q(1).", ".quit", "?q(T)."])
    assert printed.get() == ""


def test_help_names_the_repl() -> None:
    assert "repl " in CliRunner().invoke(main, ["--help"]).stdout
