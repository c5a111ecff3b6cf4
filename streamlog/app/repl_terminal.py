"""The line editor of a session: several lines, history, completion, colours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from streamlog import __version__
from streamlog.app.repl import MORE, PROMPT, inputs
from streamlog.app.repl_session import is_complete
from streamlog.app.repl_shell import Shell, is_command
from streamlog.diagnostics import Source
from streamlog.syntax.scan import ARROW, NOT, NUMBER, QUERY, STRANGE, TEXT, TIME, VARIABLE, scan

_STYLE = Style.from_dict(
    {
        "prompt": "ansigreen bold",
        "command": "ansimagenta",
        "comment": "ansibrightblack italic",
        "variable": "ansicyan",
        "number": "ansiyellow",
        "text": "ansiyellow",
        "keyword": "ansiblue bold",
        "strange": "ansired",
    }
)
_PLAIN = Style.from_dict({})
_KINDS = {
    VARIABLE: "class:variable",
    NUMBER: "class:number",
    TIME: "class:number",
    TEXT: "class:text",
    NOT: "class:keyword",
    ARROW: "class:keyword",
    QUERY: "class:keyword",
    STRANGE: "class:strange",
}
_DECLARING = "dout"  # the kinds of the words that can begin a statement


def converse(shell: Shell) -> None:
    """Until Ctrl-D or `.quit`."""
    shell.out.print(f"streamlog {__version__}   .help lists the commands, Ctrl-D leaves")
    session: PromptSession[str] = PromptSession(
        history=history(),
        lexer=_Colours(),
        style=_PLAIN if os.environ.get("NO_COLOR") else _STYLE,
        completer=Words(shell),
        complete_while_typing=False,
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation=MORE,
    )
    while True:
        try:
            text = session.prompt([("class:prompt", PROMPT)])
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        for each in inputs(text.split("\n")):
            if not shell.take(each):
                return


def _keys() -> KeyBindings:
    """Enter takes the input when it is complete, and begins a new line when it is not."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer: Buffer = event.current_buffer
        lines = buffer.text.split("\n")
        if is_complete(buffer.text) or is_command(lines[0]) or is_command(lines[-1]):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


# ----------------------------------------------------------------------------------- history


class _QuietHistory(FileHistory):
    """A history that is merely shorter when its file cannot be read or written."""

    def load_history_strings(self) -> Iterable[str]:
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)


def history_path() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    return Path(state or Path.home() / ".local" / "state") / "streamlog" / "history"


def history() -> History:
    try:
        path = history_path()
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, or one that is not ours
        return InMemoryHistory()
    return _QuietHistory(str(path))


# -------------------------------------------------------------------------------- completion


class Words(Completer):
    def __init__(self, shell: Shell) -> None:
        self.shell = shell

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        before = document.current_line_before_cursor
        is_path = before.startswith((".load ", ".save "))
        word = document.get_word_before_cursor(WORD=True) if is_path else _last_word(before)
        for text, sort in self.shell.words(before):
            if text.startswith(word) and text != word:
                yield Completion(text, start_position=-len(word), display_meta=sort)


def _last_word(before: str) -> str:
    start = len(before)
    while start and (before[start - 1].isalnum() or before[start - 1] == "_"):
        start -= 1
    return before[start - 1 :] if before[:start].strip() == "." else before[start:]


# ----------------------------------------------------------------------------------- colours


class _Colours(Lexer):
    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = list(split_lines(coloured(document.text)))
        return lambda number: lines[number] if number < len(lines) else []


def coloured(text: str) -> StyleAndTextTuples:
    """The text with a style for each token that the scanner finds."""
    if is_command(text):
        name = text.split(" ")[0]
        return [("class:command", name), ("", text[len(name) :])]
    scanned = scan(Source("", text))
    starts = {start for start, _ in scanned.statements}
    marks = [(c.span.start, c.span.end, "class:comment") for c in scanned.comments]
    for number, kind in enumerate(scanned.kinds):
        style = _KINDS.get(kind, "")
        if kind in _DECLARING and number in starts:
            style = "class:keyword"
        marks.append((scanned.starts[number], scanned.ends[number], style))
    fragments: StyleAndTextTuples = []
    at = 0
    for start, end, style in sorted(marks):
        fragments += [("", text[at:start]), (style, text[start:end])]
        at = end
    fragments.append(("", text[at:]))
    return fragments
