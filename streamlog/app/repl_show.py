"""What a session says, for the eye."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from streamlog.app.answers import columns_of
from streamlog.app.formats import count
from streamlog.app.render import render_diagnostic
from streamlog.app.repl_session import Answers, Findings, Found, Listed, Message, Session, Unused
from streamlog.app.ruletest import Verdict
from streamlog.app.snippet import visible, wrap
from streamlog.app.tables import titled_table
from streamlog.app.test_script import fact_text
from streamlog.app.verdicts import render_problems
from streamlog.runtime.report import Late
from streamlog.runtime.status import Held


def shown(message: Message, session: Session, width: int) -> Iterator[RenderableType]:
    """The pieces to print, one below the other."""
    match message:
        case str():
            yield note(message, width)
        case Findings(diagnostics):
            for diagnostic in diagnostics:
                yield render_diagnostic(diagnostic, width)
        case Answers(pred, rows, gone):
            names, types = columns_of(session.engine, pred)
            title = f"{pred}: {count(len(rows), 'new answer')}"
            if gone:
                held = "holds" if len(rows) == 1 else "hold"
                title = f"{pred}: {count(len(rows), 'answer')} no longer {held} in the new program"
            yield titled_table(title, names, rows, types, width)
        case Found():
            yield from _found(message, width)
        case Listed(result, waiting):
            if result.rows:
                title = count(len(result.rows), "answer")
                yield titled_table(title, result.names, result.rows, result.types, width)
            else:
                yield Text("no answers")
            yield from _waiting(waiting, bool(result.rows), width)
        case Verdict():
            words = ("passed", "bold green") if message.passed else ("failed", "bold red")
            yield Text.assemble(words, f" {message.test.name}")
            if not message.passed:
                yield render_problems(message, width)
        case Unused(record):
            yield unused(session, record, width)


def note(text: str, width: int) -> Text:
    return Text("\n".join(wrap(visible(text), width)), "dim")


def failure(text: str, width: int) -> Text:
    """A message about something that went wrong."""
    text = " ".join(map(str.strip, text.split("\n")))
    return Text("\n".join(wrap(visible(text), width)), "red")


def _found(found: Found, width: int) -> Iterator[RenderableType]:
    bindings = found.bindings
    if not bindings:
        yield Text("no answers")
    elif not bindings[0]:
        yield Text("true")
    else:
        names = list(dict.fromkeys(n for b in bindings for n in b))
        rows = [tuple(b.get(n, "") for n in names) for b in bindings]  # of some alternatives only
        types = [found.types.get(n) for n in names]
        yield titled_table(count(len(rows), "answer"), names, rows, types, width)
    yield from _waiting(found.held, bool(bindings), width)


def _waiting(waiting: Iterable[Held], answered: bool, width: int) -> Iterator[RenderableType]:
    for held in waiting:
        if held.at is not None or not answered:
            yield note(held.message, width)


def unused(session: Session, record: Any, width: int) -> Text:
    engine = session.engine
    if isinstance(record, Late):
        row = fact_text(engine.program, record.stream, record.row)
        return failure(f"late, so it changes nothing: {row}: {record.reason}", width)
    place = f" {record.where}" if record.where else ""
    return failure(f"rejected {record.stream}{place}: {record.reason}", width)
