"""When a state holds, drawn: a line for each tuple, from the first beginning to the latest end.

.timeline burning
hall      ██████            ███████▶
tunnel         █████████
          08:00:00Z         09:30:00Z
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import frozen
from rich.table import Table
from rich.text import Text

from streamlog.app.repl_session import Session
from streamlog.app.tables import value_text
from streamlog.runtime.executor import BEGIN, Row
from streamlog.runtime.once import Result
from streamlog.runtime.values import moment
from streamlog.syntax import ast
from streamlog.syntax.ast import State, Stream, Type
from streamlog.syntax.literals import LAST

LEAST_BAR = 20


@frozen
class Interval:
    since: int
    until: int | None  # none yet


def timeline(session: Session, state: str, width: int) -> Table | None:
    """None: it has never held."""
    arity = arities(session)[state]
    names = [f"V{i}" for i in range(arity)]
    called = f"{state}({', '.join(names)})"
    columns = ", ".join(names)
    begun = session.once(f"?begun_(S{', ' * bool(names)}{columns}) <- {called} from S.")
    ended = session.once(f"?held_(S, E{', ' * bool(names)}{columns}) <- {called} from S to E.")
    found = _intervals(begun, ended)
    if not found:
        return None
    times = [
        t for spans in found.values() for i in spans for t in (i.since, i.until) if t is not None
    ]
    seen = [c.seen for c in session.engine.progress.clocks.values() if c.seen != BEGIN]
    first, last = min(times), max([*times, *seen])
    made = Table(box=None, pad_edge=False, show_header=False)
    made.add_column(no_wrap=True)
    made.add_column(no_wrap=True)
    labels = {row: _label(row, begun.types[1:]) for row in found}
    room = max(LEAST_BAR, width - max(map(len, labels.values())) - 3)
    for row in sorted(found, key=str):
        made.add_row(labels[row], _bar(found[row], first, last, room))
    made.add_row("", _axis(first, last, begun.types[0], room))
    return made


def arities(session: Session) -> dict[str, int]:
    """The states of the program, and of how many values each is."""
    module = session.program.written or session.program.parsed
    found: dict[str, int] = {}
    for statement in module.statements if module else ():
        match statement:
            case State(head):
                found.setdefault(head.pred, head.arity)
            case Stream(name, columns) if any(c.ends for c in columns):
                found[name] = len(columns) - 2
            case ast.Table(name, columns) if any(c.ends for c in columns):
                found[name] = len(columns) - 1
            case _:
                pass
    return found


def _intervals(begun: Result, ended: Result) -> dict[Row, list[Interval]]:
    ends: dict[Row, Any] = {(r[0], *r[2:]): r[1] for r in ended.rows if r[1] != LAST}
    found: dict[Row, list[Interval]] = {}
    for row in begun.rows:
        since: Any = row[0]
        found.setdefault(row[1:], []).append(Interval(since, ends.get(row)))
    return found


def _label(row: Row, types: Sequence[Type | None]) -> str:
    return ", ".join(value_text(v, t) for v, t in zip(row, types, strict=True))


def _bar(spans: Iterable[Interval], first: int, last: int, room: int) -> Text:
    cells = [" "] * room
    scale = (room - 1) / max(1, last - first)
    for span in sorted(spans, key=lambda s: s.since):
        start = round((span.since - first) * scale)
        stop = room if span.until is None else max(start + 1, round((span.until - first) * scale))
        cells[start:stop] = "█" * (min(stop, room) - start)
        if span.until is None:
            cells[room - 1] = "▶"
    return Text("".join(cells[:room]), "green")


def _axis(first: int, last: int, type_: Type | None, room: int) -> Text:
    left, right = moment(first, type_), moment(last, type_)
    return Text(f"{left}{right.rjust(max(len(right) + 1, room - len(left)))}", "dim")
