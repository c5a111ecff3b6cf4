"""The line editor of a session: several lines, history, completion, colours."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.styles import Style, merge_styles, style_from_pygments_dict
from pygments.token import Keyword, Text, Whitespace

from streamlog import __version__
from streamlog.app.lexer import COLOURS, SlogLexer, Typed
from streamlog.app.repl import MORE, PROMPT, inputs
from streamlog.app.repl_session import is_complete
from streamlog.app.repl_shell import Shell, is_command

_STYLE = merge_styles(
    [
        style_from_pygments_dict({**COLOURS, Keyword.Pseudo: "ansimagenta nobold"}),
        Style.from_dict({"prompt": "ansigreen bold"}),
    ]
)
_PLAIN = Style.from_dict({})


def converse(shell: Shell) -> None:
    """Until Ctrl-D or `.quit`."""
    shell.out.print(f"streamlog {__version__}   .help lists the commands, Ctrl-D leaves")
    session: PromptSession[str] = PromptSession(
        history=history(),
        lexer=PygmentsLexer(InputLexer),
        style=_PLAIN if os.environ.get("NO_COLOR") else _STYLE,
        include_default_pygments_style=False,
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
    found = _LAST_WORD.search(before)
    start = found.start() if found else len(before)
    return before[start - 1 :] if before[:start].strip() == "." else before[start:]


_LAST_WORD = re.compile(r"(?:\w+\.)*\w*$")  # perhaps `auth.failed`


# ----------------------------------------------------------------------------------- colours


class InputLexer(SlogLexer):
    """A program, or a command."""

    def get_tokens_unprocessed(self, text: str) -> Iterator[Typed]:
        if not is_command(text):
            yield from super().get_tokens_unprocessed(text)
            return
        start = len(text) - len(text.lstrip())
        end = start + len(text.split()[0])
        yield 0, Whitespace, text[:start]
        yield start, Keyword.Pseudo, text[start:end]
        yield end, Text, text[end:]
