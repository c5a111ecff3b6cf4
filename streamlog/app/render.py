"""Diagnostics as people read them, and the console they are printed on."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from streamlog.app.snippet import Row, mark, snippet, visible, wrap
from streamlog.codes import Code, Severity
from streamlog.diagnostics import Diagnostic, Label, Source

PLAIN_WIDTH = 80
_COLOURS = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
_STYLES = {"source": "", "gutter": "blue", "secondary": "blue"}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise  # rich would exit with 1, which means findings here; `cli` ends it


def console(*, stderr: bool = False) -> Console:
    """As wide as the terminal, or 80 columns where there is none, so that output is the same."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return _Console(stderr=stderr, width=width, highlight=False, soft_wrap=True, emoji=False)


def print_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """To standard error, each followed by a blank line."""
    out = console(stderr=True)
    for diagnostic in diagnostics:
        out.print(render_diagnostic(diagnostic, out.width))
        out.print()


def render_diagnostic(diagnostic: Diagnostic, width: int = PLAIN_WIDTH) -> Text:
    """The message, the places with their source lines, and the help."""
    colour = _COLOURS[diagnostic.severity]
    title = f"{diagnostic.severity}[{diagnostic.code}]"
    message = _wrapped(f"{title}: ", diagnostic.message, width, indent="  ")
    lines = [Text(line, "bold") for line in message]
    lines[0].stylize(colour, 0, len(title))

    placed, digits = render_places(diagnostic.labels, width, colour)
    lines += placed
    if not diagnostic.help:
        lines.pop()
    for text in diagnostic.help:
        start = f"{' ' * digits} = help: "
        helped = [Text(line) for line in _wrapped(start, text, width, indent=" " * len(start))]
        helped[0].stylize(_STYLES["gutter"], 0, len(start) - len("help: "))
        helped[0].stylize("bold", len(start) - len("help: "), len(start) - 1)
        lines += helped
    return Text("\n").join(lines)


def render_places(labels: Sequence[Label], width: int, colour: str) -> tuple[list[Text], int]:
    """The places with their source lines, and how wide the line numbers are. The first label is
    the primary one."""
    lines: list[Text] = []
    marks: dict[Source, list[int]] = {}
    placed = [mark(label, primary=i == 0) for i, label in enumerate(labels)]
    for i, label in enumerate(labels):
        marks.setdefault(label.span.source, []).append(i)
    digits = max(len(str(m.end_line)) for m in placed)
    for source, indexes in marks.items():
        first = placed[indexes[0]]
        arrow = "-->" if indexes[0] == 0 else ":::"
        place = f"{visible(source.path)}:{first.line}:{first.column + 1}"
        lines.append(Text.assemble((f"{' ' * digits}{arrow} ", _STYLES["gutter"]), place))
        rows = snippet(source, [placed[i] for i in indexes], width - digits - 3)
        lines += [_row(row, digits, colour) for row in (Row(), *rows, Row())]
    return lines, digits


def _row(row: Row, digits: int, colour: str) -> Text:
    gutter = row.gutter.ljust(digits + 2) if row.gutter == "..." else f"{row.gutter:>{digits}} |"
    text = Text.assemble((gutter, _STYLES["gutter"]), " ")
    for run, style in row.runs():
        text.append(run, _STYLES.get(style, colour))
    text.rstrip()
    return text


def _wrapped(start: str, text: str, width: int, indent: str) -> list[str]:
    """`start` and the text after it; the lines that follow are indented."""
    shown = "\n".join(visible(line) for line in text.split("\n"))
    taken = len(start) - len(indent)  # of the first line's room, by what stands before the text
    room = max(width - len(indent), PLAIN_WIDTH // 4)
    first, *rest = wrap("\N{NO-BREAK SPACE}" * taken + shown, room)
    return [start + first[taken:], *(indent + line for line in rest)]


def render_page(code: Code, width: int = PLAIN_WIDTH) -> Text:
    """A code's page: the words of `pages.page`, set for a terminal."""
    title = Text(f"{code.code}: {code.title}", "bold")
    blocks = [Text.assemble(title, "  ", (f"({code.severity})", _COLOURS[code.severity]))]
    for paragraph in filter(None, code.explanation.strip().split("\n\n")):
        text = " ".join(line.strip() for line in paragraph.split("\n"))
        blocks.append(Text("\n".join(wrap(text, width))))
    for heading, program in (("Gives this code:", code.bad), ("Does not:", code.good)):
        if program.strip():
            lines = render_program(program.strip()).split("\n", allow_blank=True)
            indented = Text("\n").join(Text("    ") + line if line else line for line in lines)
            blocks.append(Text.assemble((heading, "bold"), "\n\n", indented))
    return Text("\n\n").join(blocks)


def render_program(program: str) -> Text:
    """A program in the colours of the line editor."""
    from streamlog.app.lexer import COLOURS, SlogLexer

    text = Text()
    for _, type_, value in SlogLexer().get_tokens_unprocessed(program):
        styles = " ".join(COLOURS.get(parent, "") for parent in type_.split())
        # rich has other words for the same.
        for theirs, ours in (("ansibright", "bright_"), ("ansi", ""), ("nobold", "not bold")):
            styles = styles.replace(theirs, ours)
        text.append(value, styles.strip())
    return text
