"""What a session says, for the eye."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from streamlog.app.answers import columns_of
from streamlog.app.playing import fact_text
from streamlog.app.render import render_diagnostic
from streamlog.app.repl_session import Answers, Findings, Found, Said, Session, Unused
from streamlog.app.ruletest import Verdict
from streamlog.app.show import flat, plain_table
from streamlog.app.snippet import visible, wrap
from streamlog.app.verdicts import render_problems
from streamlog.runtime.engine import Late
from streamlog.runtime.ingest import HOLDING
from streamlog.runtime.values import written
from streamlog.syntax.ast import Type

MOST_ROWS = 100


def shown(said: Said, session: Session, width: int) -> Iterator[RenderableType]:
    """The pieces to print, one below the other."""
    match said:
        case str():
            yield note(said, width)
        case Findings(diagnostics):
            for diagnostic in diagnostics:
                yield render_diagnostic(diagnostic, width)
        case Answers(pred, rows, gone):
            names, types = columns_of(session.engine, pred)
            title = f"{pred}: {_count(rows, 'new answer')}"
            if gone:
                held = "holds" if len(rows) == 1 else "hold"
                title = f"{pred}: {_count(rows, 'answer')} no longer {held} in the new program"
            yield table(title, names, rows, types, width)
        case Found():
            yield from _found(said, width)
        case Verdict():
            words = ("passed", "bold green") if said.passed else ("failed", "bold red")
            yield Text.assemble(words, f" {said.test.name}")
            if not said.passed:
                yield render_problems(said, width)
        case Unused(record):
            yield unused(session, record, width)


def note(text: str, width: int) -> Text:
    return Text("\n".join(wrap(visible(text), width)), "dim")


def failure(text: str, width: int) -> Text:
    """A message about something that went wrong."""
    text = " ".join(map(str.strip, text.split("\n")))
    return Text("\n".join(wrap(visible(text), width)), "red")


def _count(rows: Sequence[object], word: str) -> str:
    return f"{len(rows)} {word}" + ("s" if len(rows) != 1 else "")


def _found(found: Found, width: int) -> Iterator[RenderableType]:
    bindings = found.bindings
    if not bindings:
        yield Text("no answers")
    elif not bindings[0]:
        yield Text("true")
    else:
        names = list(bindings[0])
        rows = [tuple(b[n] for n in names) for b in bindings]
        types = [found.types.get(n) for n in names]
        yield table(_count(rows, "answer"), names, rows, types, width)
    for held in found.held:
        if held.at is not None or not bindings:
            yield note(held.message, width)


def unused(session: Session, record: Any, width: int) -> Text:
    engine = session.engine
    if isinstance(record, Late):
        row = fact_text(engine.program, record.stream, record.row)
        return failure(f"late, so it changes nothing: {row}: {record.reason}", width)
    place = f" {record.where}" if record.where else ""
    return failure(f"rejected {record.stream}{place}: {record.reason}", width)


def value_text(value: object, type_: Type | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    assert isinstance(value, int | float | str)
    return visible(str(written(value, type_)))


def table(
    title: str,
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    types: Sequence[Type | None],
    width: int,
) -> Text:
    """A title and rows below it; of very many rows the first."""
    result = Text(title, "bold green")
    if not names:
        return result
    made = plain_table(*names)
    for column, type_ in zip(made.columns, types, strict=True):
        if type_ in (Type.INT, Type.FLOAT):
            column.justify = "right"
    for row in rows[:MOST_ROWS]:
        made.add_row(*(Text(value_text(v, t)) for v, t in zip(row or HOLDING, types, strict=True)))
    result.append("\n")
    result.append_text(flat(made, width))
    if len(rows) > MOST_ROWS:
        result.append(f"\n… and {len(rows) - MOST_ROWS:,} more; a query can ask for some of them")
    return result
