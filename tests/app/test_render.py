"""The pretty form of diagnostics, exactly, at 80 columns."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from streamlog.app.render import render_diagnostic
from streamlog.app.snippet import wrap
from streamlog.diagnostics import Diagnostic, Source, Span, finding


def at(source: Source, text: str, nth: int = 0) -> Span:
    """The nth place where the text stands."""
    start = -1
    for _ in range(nth + 1):
        start = source.text.index(text, start + 1)
    return Span(source, start, start + len(text))


def check(diagnostic: Diagnostic, expected: str, width: int = 80) -> None:
    assert render_diagnostic(diagnostic, width).plain == dedent(expected).strip("\n")


RULES = Source("rules/a.slog", "output p.\np(T, X) <- q(T, X), not p(T, X).\n")


def test_one_label() -> None:
    check(
        finding("SL0504", "`p` is read by nobody", at(RULES, "p(T, X)"), "defined here"),
        """
        warning[SL0504]: `p` is read by nobody
         --> rules/a.slog:2:1
          |
        2 | p(T, X) <- q(T, X), not p(T, X).
          | ^^^^^^^ defined here
        """,
    )


def test_two_labels_on_a_line_and_help() -> None:
    check(
        finding(
            "SL0402",
            "`p` at an instant rests on its own absence at that same instant, which no "
            "order of evaluation can give",
            at(RULES, "not p(T, X)"),
            "+0 through negation",
            related=[(at(RULES, "p(T, X)"), "this answer")],
            help=[
                "let the negation look at strictly earlier instants, which are decided by the "
                "time this one is:",
                "write\n  p(T, X) <- q(T, X), not (p(T0, X), T0 < T).",
            ],
        ),
        """
        error[SL0402]: `p` at an instant rests on its own absence at that same instant,
          which no order of evaluation can give
         --> rules/a.slog:2:21
          |
        2 | p(T, X) <- q(T, X), not p(T, X).
          | -------             ^^^^^^^^^^^ +0 through negation
          | |
          | this answer
          |
          = help: let the negation look at strictly earlier instants, which are decided
                  by the time this one is:
          = help: write
                    p(T, X) <- q(T, X), not (p(T0, X), T0 < T).
        """,
    )


def test_labels_on_several_lines_and_in_several_files() -> None:
    long = Source("b.slog", "a(T).\n" * 8 + "b(T, 1).\nx.\nx.\nb(T).\n")
    lib = Source("lib/c.slog", "% a comment\nb(T, 1, 2).")
    check(
        finding(
            "SL0201",
            "`b` has two arities",
            at(long, "b(T)"),
            "one argument",
            related=[
                (at(long, "b(T, 1)"), "two"),
                (at(lib, "b(T, 1, 2)"), "three"),
                (at(long, "a(T)"), ""),
            ],
        ),
        """
        error[SL0201]: `b` has two arities
          --> b.slog:12:1
           |
         1 | a(T).
           | ----
        ...
         9 | b(T, 1).
           | ------- two
        ...
        12 | b(T).
           | ^^^^ one argument
           |
          ::: lib/c.slog:2:1
           |
         2 | b(T, 1, 2).
           | ---------- three
        """,
    )


def test_one_line_between_two_is_shown() -> None:
    source = Source("a.slog", "a.\nb.\nc.\n")
    check(
        finding("SL0202", "twice", at(source, "c"), related=[(at(source, "a"), "")]),
        """
        error[SL0202]: twice
         --> a.slog:3:1
          |
        1 | a.
          | -
        2 | b.
        3 | c.
          | ^
        """,
    )


def test_several_lines() -> None:
    source = Source("a.slog", "p(T) <-\n    q(T),\n    r(T),\n    s(T),\n    not p(T).\n")
    check(
        finding(
            "SL0402",
            "a cycle",
            Span(source, 0, len(source.text)),  # the newline at the end is part of it
            "this rule",
            related=[(at(source, "p(T)", 1), "again"), (at(source, "q(T),\n    r(T)"), "these")],
        ),
        """
        error[SL0402]: a cycle
         --> a.slog:1:1
          |
        1 | /   p(T) <-
        2 | | /     q(T),
        3 | | |     r(T),
          | | |________- these
        4 | |       s(T),
        5 | |       not p(T).
          | |           ---- again
          | |_______________^ this rule
        """,
    )


def test_several_lines_from_the_middle_of_one() -> None:
    source = Source("a.slog", "p(T) <- not (q(T),\n  r(T),\n  a, b, c,\n  s(T)), t(T).\n")
    check(
        finding(
            "SL0302", "unbound", at(source, source.text[8 : source.text.index(", t(T)")]), "in here"
        ),
        """
        error[SL0302]: unbound
         --> a.slog:1:9
          |
        1 |   p(T) <- not (q(T),
          |  _________^
        ...|
        4 | |   s(T)), t(T).
          | |_______^ in here
        """.replace("...|", "... |"),
    )


def test_tabs_and_wide_characters_keep_the_carets_in_place() -> None:
    source = Source("a.slog", '\tp(T,\t"日本") <- q(T, "e\u0301", Y).\n')
    diagnostic = finding(
        "SL0302",
        "unbound",
        at(source, "Y"),
        "nothing binds it",
        related=[(at(source, "日本"), "s")],
    )
    check(
        diagnostic,
        """
        error[SL0302]: unbound
         --> a.slog:1:27
          |
        1 |     p(T,    "日本") <- q(T, "e\u0301", Y).
          |              ----                ^ nothing binds it
          |              |
          |              s
        """,
    )
    line, carets = render_diagnostic(diagnostic).plain.split("\n")[3:5]
    assert cell_len(line[: line.index("Y")]) == carets.index("^")
    assert cell_len(line[: line.index("日")]) == carets.index("-")


@pytest.mark.parametrize(("text", "line"), [("p(T) <- q(T)\n", 2), ("p(T) <- q(T)", 1), ("", 1)])
def test_the_end_of_the_file(text: str, line: int) -> None:
    source = Source("a.slog", text)
    last = text.split("\n")[-1]
    column = len(last)
    end = Span(source, len(text), len(text))
    lines = render_diagnostic(finding("SL0101", "unfinished", end, "expected `.`")).plain.split(
        "\n"
    )
    assert lines[1:] == [
        f" --> a.slog:{line}:{column + 1}",
        "  |",
        f"{line} | {last}".rstrip(),
        f"  | {' ' * column}^ expected `.`",
    ]


def test_long_lines_are_cut_around_the_labels() -> None:
    source = Source("a.slog", "x" * 200 + " foo " + "y" * 300 + "\tbar " + "日" * 90)
    check(
        finding(
            "SL0101", "long", at(source, "foo"), "here", related=[(at(source, "bar"), "there")]
        ),
        """
        error[SL0101]: long
         --> a.slog:1:202
          |
        1 | …xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx foo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy…
          |                                      ^^^ here
        1 | …yyyyyyyyyyyyyyyyyyyyyy bar 日日日日日日日日日日日日日日日日日日日日日日…
          |                         --- there
        """,
    )


def test_long_lines_of_wide_characters_are_cut_where_the_cells_end() -> None:
    source = Source("a.slog", "日" * 100 + "a" + "本" * 40 + "b" + "日" * 100)
    diagnostic = finding("SL0101", "wide", at(source, "a"), "A", related=[(at(source, "b"), "B")])
    lines = render_diagnostic(diagnostic).plain.split("\n")[3:]
    assert len(lines) == 4
    for line, marks, char in [(*lines[:2], "a"), (*lines[2:], "b")]:
        assert cell_len(line) <= 80
        assert cell_len(line[: line.index(char)]) == marks.index(char.upper()) - 2


def test_a_hostile_line_is_cut_too() -> None:
    # Zero-width characters take no room, but they must not all be printed.
    source = Source("a.slog", "\u0301" * 100_000 + "p" + "\t" * 100_000)
    text = render_diagnostic(finding("SL0101", "odd", at(source, "p"), "here")).plain
    assert all(cell_len(line) <= 80 for line in text.split("\n"))
    assert len(text) < 1000


def test_label_texts_that_find_no_room_beside_their_mark() -> None:
    rule = "p(T, A) <- pre_alarm(T, A), not (report(T1, A), T <= T1, other(T1, A))."
    source = Source("a.slog", rule)
    check(
        finding(
            "SL0401",
            "waits forever",
            at(source, "other(T1, A)"),
            "nothing says how late T1 can be at most",
            related=[
                (at(source, "p(T, A)"), "this answer"),
                (at(source, "T <= T1"), "this bounds it from below only"),
            ],
        ),
        """
        error[SL0401]: waits forever
         --> a.slog:1:58
          |
        1 | p(T, A) <- pre_alarm(T, A), not (report(T1, A), T <= T1, other(T1, A)).
          | -------                                         -------  ^^^^^^^^^^^^
          | |                                               |        |
          | |                                               | nothing says how late T1
          | |                                               | can be at most
          | |                                               this bounds it from below
          | |                                               only
          | this answer
        """,
    )


def test_a_program_cannot_steer_the_terminal() -> None:
    source = Source("\x1b[2J.slog", "p(\x1b[31m, \u202e, \r).\n")
    diagnostic = finding("SL0101", "odd \x1b]0;x\x07", at(source, "p"), "\x9b", help="\x00")
    text = render_diagnostic(diagnostic).plain
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "p(␛[31m, \N{REPLACEMENT CHARACTER}, ␍)." in text


def test_the_same_span_twice() -> None:
    check(
        finding(
            "SL0402",
            "a cycle",
            at(RULES, "p(T, X)"),
            "one",
            related=[(at(RULES, "p(T, X)"), "two")],
        ),
        """
        error[SL0402]: a cycle
         --> rules/a.slog:2:1
          |
        2 | p(T, X) <- q(T, X), not p(T, X).
          | ^^^^^^^ one
          | |
          | two
        """,
    )


def test_colours_do_not_change_the_text() -> None:
    text = render_diagnostic(finding("SL0101", "odd", at(RULES, "q(T, X)"), "here", help="no"))
    console = Console(force_terminal=True, color_system="standard", width=80)
    with console.capture() as capture:
        console.print(text, soft_wrap=True)
    assert "\x1b[1;31merror[SL0101]" in capture.get()
    assert "\x1b[1;31m^^^^^^^\x1b[0m \x1b[1;31mhere" in capture.get()
    assert re.sub(r"\x1b\[[0-9;]*m", "", capture.get()) == f"{text.plain}\n"


def test_narrow_terminals_wrap_words_only() -> None:
    diagnostic = finding("SL0101", "a message of some length", at(RULES, "q(T, X)"), help="a b c")
    lines = render_diagnostic(diagnostic, 20).plain.split("\n")
    assert lines[:2] == ["error[SL0101]: a", "  message of some"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("one two three", ["one two", "three"]),
        ("unbreakable words", ["unbreakable", "words"]),
        ("  indented text here", ["  indented", "  text", "  here"]),
        ("two\n\nparagraphs", ["two", "", "paragraphs"]),
        ("日本 日本 日本", ["日本 日本", "日本"]),
    ],
)
def test_wrap(text: str, lines: list[str]) -> None:
    assert wrap(text, 10) == lines


@st.composite
def diagnostics(draw: st.DrawFn) -> Diagnostic:
    sources = [
        Source(
            f"{i}.slog", draw(st.text(st.sampled_from("ab(,. \t\n\r日\u0301\x1b"), max_size=300))
        )
        for i in range(2)
    ]
    labels = []
    for _ in range(draw(st.integers(1, 5))):
        source = draw(st.sampled_from(sources))
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(source.text))] * 2)))
        text = draw(st.sampled_from(["", "here", "a longer text that may have to be wrapped"]))
        labels.append((Span(source, start, end), text))
    (span, text), *related = labels
    return finding("SL0101", "message", span, text, related=related, help="some help")


@given(diagnostics(), st.integers(20, 100))
@settings(max_examples=300, deadline=None)
def test_anything_can_be_rendered(diagnostic: Diagnostic, width: int) -> None:
    lines = render_diagnostic(diagnostic, width).plain.split("\n")
    assert all(line.isprintable() for line in lines)
    assert any("^" in line for line in lines)
    shown = {line.split(" |")[0].strip() for line in lines}
    for label in diagnostic.labels:
        assert str(label.span.source.position(label.span.start)[0]) in shown
    said = " ".join(" ".join(lines).replace("|", " ").split())
    for label in diagnostic.labels:
        assert label.text.split(" ")[0] in said
