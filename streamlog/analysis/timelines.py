"""The timelines of a stream that makes progress on several columns.

    stream report(app: time, sys: time, area: string) progress app slack 5s, sys.

Such a stream is as many streams with the same rows: `report` itself, whose timestamp is `app`, and
for each other timeline a view, whose timestamp comes first: `report.sys(sys, app, area)`. No view
has a name that a program can write. Each goal reads the timeline that suits it, and all that comes
later knows streams with one timestamp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve, frozen

from streamlog.syntax.ast import Stream, Table, Timeline


@frozen
class View:
    """A stream on another timeline."""

    of: str
    order: tuple[int, ...]  # the stream's columns, as the view has them

    @property
    def column(self) -> int:
        """Which of the stream's columns the timestamp is."""
        return self.order[0]

    def of_row(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """The view's row of a row of the stream."""
        return tuple(row[position] for position in self.order)

    @property
    def back(self) -> tuple[int, ...]:
        """The view's columns, as the stream has them."""
        return tuple(self.order.index(position) for position in range(len(self.order)))


def add_views(declared: dict[str, Stream | Table]) -> dict[str, View]:
    """Adds the views' declarations."""
    views: dict[str, View] = {}
    for name, stream in tuple(declared.items()):
        if not isinstance(stream, Stream):
            continue
        for timeline in stream.progress:
            position = _position(stream, timeline)
            if position == 0:
                continue
            rest = (p for p in range(len(stream.columns)) if p != position)
            view = View(name, (position, *rest))
            columns = tuple(stream.columns[p] for p in view.order)
            views[view_name(name, timeline.column)] = view
            declared[view_name(name, timeline.column)] = evolve(
                stream,
                name=view_name(name, timeline.column),
                columns=columns,
                options=timeline.options,
                progress=(),
            )
    return views


def view_name(stream: str, column: str) -> str:
    return f"{stream}.{column}"


def _position(stream: Stream, timeline: Timeline) -> int:
    return next(p for p, c in enumerate(stream.columns) if c.name == timeline.column)
