"""Between a person and a session: takes inputs, prints what comes of them, survives errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console, RenderableType

from streamlog.analysis.builtins import FUNCTIONS, GOALS
from streamlog.analysis.refusals import STREAM_ONLY
from streamlog.app.java import NoSparkError
from streamlog.app.render import render_diagnostic
from streamlog.app.repl_commands import COMMANDS, CommandError, Commands, Leave, Printed
from streamlog.app.repl_session import (
    Answers,
    Findings,
    Found,
    Listed,
    Refused,
    Session,
    Unused,
)
from streamlog.app.repl_show import failure, note, shown
from streamlog.app.ruletest import Verdict
from streamlog.compiler import Mode
from streamlog.runtime.data_files import is_data_file
from streamlog.runtime.engine import EngineError
from streamlog.runtime.executor import LimitError
from streamlog.runtime.functions import EvaluationError
from streamlog.runtime.query import QueryError
from streamlog.runtime.sources import SourceError
from streamlog.runtime.values import Unfit
from streamlog.runtime.why import NoProofError
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import State
from streamlog.syntax.declare import TYPES
from streamlog.syntax.scan import ALLEN, STATE_WORDS, TIME_WORDS, WINDOW
from streamlog.syntax.time_form import TIME_UNITS

_KEPT = "This input was discarded: the session is as it was before."


def is_command(line: str) -> bool:
    """Whether a line is a command, known or not: a dot and a word."""
    text = line.strip()
    return text.startswith(".") and text[1:2].isalpha()


def _more(error: LimitError) -> str:
    """How to continue: what `stopped after 10 seconds (--max-seconds): …` names can be raised."""
    match = re.search(r"\(--max-(\w+)", str(error))
    return f"`.limit {match[1] if match else 'seconds'} N` raises the limit."


class Shell:
    """One person's session on one console."""

    def __init__(self, out: Console, session: Session | None = None) -> None:
        self.out = out
        self.session = session or Session()
        self.could_not_load = False

    def load(self, path: str) -> None:
        self.take(f".load {path}")

    def take(self, text: str) -> bool:
        """One input, whatever it is. False when the person wants to leave."""
        loading, before = text.strip().startswith(".load"), self.session.state
        try:
            if is_command(text):
                self._print(Commands(self.session, self.out.width).run(text))
            else:
                self._print(self.session.enter(text))
        except Leave:
            return False
        except KeyboardInterrupt:
            if self.out.is_terminal:
                self.out.print()  # the terminal has shown ^C
            done = self.session.state is not before
            self._say(failure("stopped", self.out.width))
            self._say(note("The input has taken effect." if done else _KEPT, self.out.width))
        except Refused as refused:
            self.could_not_load |= loading
            self._refused(refused)
        except LimitError as error:
            self._say(
                failure(str(error), self.out.width),
                note(f"{_KEPT} {_more(error)}", self.out.width),
            )
        except QueryError as error:
            found = [render_diagnostic(d, self.out.width) for d in error.diagnostics]
            self._say(*(found or [failure(str(error), self.out.width)]))
        except EvaluationError as error:
            self._say(failure(str(error), self.out.width), note(_KEPT, self.out.width))
        except (CommandError, NoSparkError, EngineError, NoProofError, Unfit) as error:
            self._say(failure(str(error), self.out.width))
        except (SourceError, UnicodeError, OSError) as error:
            self.could_not_load |= loading
            text = str(error)
            if isinstance(error, OSError):
                place = f"'{error.filename}': " if error.filename else ""
                text = place + (error.strerror or text).lower()
            self._say(failure(text, self.out.width))
        return True

    def _refused(self, refused: Refused) -> None:
        self._say(*(render_diagnostic(d, self.out.width) for d in refused.diagnostics))
        codes = {d.code for d in refused.diagnostics}
        if codes <= STREAM_ONLY and self.session.state.mode is Mode.STREAM:
            text = "Refused for a stream. For stored data it is fine: `.batch on`, then again."
            self._say(note(text, self.out.width))

    def _print(self, found: Iterable[Printed]) -> None:
        for item in found:
            if isinstance(item, Findings | Answers | Found | Listed | Unused | Verdict | str):
                self._say(*shown(item, self.session, self.out.width))
            else:
                self._say(item)

    def _say(self, *pieces: RenderableType) -> None:
        for piece in pieces:
            self.out.print(piece, markup=False, highlight=False)

    # ------------------------------------------------------------------------ completion

    def words(self, before: str) -> Iterator[tuple[str, str]]:
        """What may stand where `before` ends, each word with its sort."""
        if (is_command(before) and " " not in before.lstrip()) or before.strip() == ".":
            yield from ((f".{c.name}", c.help) for c in COMMANDS.values())
            return
        if before.lstrip().startswith(".load") or before.lstrip().startswith(".save"):
            folder = Path(before.split()[-1] if before[-1:] != " " else ".")
            folder = folder if folder.is_dir() else folder.parent
            for path in sorted(folder.glob("*")):
                if path.is_dir() or path.suffix == ".slog" or is_data_file(path):
                    yield str(path) + "/" * path.is_dir(), "file"
            return
        if column := _COLUMN.search(before):
            names = TIME_UNITS if column["unit"] is not None else TYPES
            yield from ((name, "unit" if names is TIME_UNITS else "type") for name in names)
            return
        schema, written = self.session.program.schema, self.session.program.written
        states = (
            {s.head.pred for s in written.statements if isinstance(s, State)} if written else ()
        )
        yield from ((name, "state") for name in sorted(states))
        for name, predicate in sorted(schema.predicates.items() if schema else ()):
            if predicate.view is None and name not in states:
                yield name, predicate.kind.value
        if not is_command(before):
            yield from ((word, "keyword") for word in _WORDS)
            if _GOAL.search(before):
                yield from ((word, "keyword") for word in (WINDOW, *ALLEN))
            built_in = {
                **dict.fromkeys(GOALS, "goal"),
                **dict.fromkeys(AGGREGATES, "aggregate"),
                **dict.fromkeys(FUNCTIONS, "function"),
                **dict.fromkeys(schema.functions if schema else (), "function"),
            }
            known = schema.predicates if schema else {}
            yield from ((n, sort) for n, sort in sorted(built_in.items()) if n not in known)


# Where the type of a column is to come, or the unit of a time.
_COLUMN = re.compile(r"\b(?:stream|table)\b[^.]*:\s*(?:time\((?P<unit>\w*)|\w*)$")
# Behind what may be an interval, or what holds or happens within one.
_GOAL = re.compile(r"\)\s+\w*$")
_WORDS = (
    *("not", "stream", "table", "output", "use", "export", "extend", "function", "test"),
    *("true", "false", "none", "in", "limit", "offset", "by", "asc", "desc", "per"),
    *("state", *STATE_WORDS, "most", *TIME_WORDS),
)
