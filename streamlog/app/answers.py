"""Answers on standard output: a table, JSON Lines or CSV."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from streamlog.app.snippet import visible
from streamlog.runtime.ingest import HOLDING, surface
from streamlog.runtime.sinks import csv_lines, json_object
from streamlog.runtime.values import written
from streamlog.syntax.ast import Atom, Const, Query, Type, Var

if TYPE_CHECKING:
    from streamlog.runtime.engine import Engine
    from streamlog.runtime.executor import Row

GAP = "   "

Columns = tuple[tuple[str, ...], tuple[Type | None, ...]]


def columns_of(engine: Engine, pred: str) -> Columns:
    """A predicate's columns: their names and types, as far as these are known by now."""

    types = engine.program.types
    names = engine.schema.column_names[pred]
    found = [types.column(pred, i) for i in range(len(names))]
    if engine.schema[pred].temporal and found and found[0] is None:
        found[0] = engine.clock(pred)
    return surface(names, found)


def asked(queries: Sequence[Query]) -> Mapping[str, Callable[[Row], bool]]:
    """What a program's queries want of each predicate they name: `?first(T, red).` wants red."""
    return {
        pred: lambda row, wanted=wanted: any(_fits(goal, row) for goal in wanted)  # type: ignore[misc]
        for pred, wanted in goals_of(queries).items()
    }


def goals_of(queries: Sequence[Query]) -> Mapping[str, list[Atom]]:
    """The goals that queries have of each predicate they name."""
    goals: dict[str, list[Atom]] = {}
    for query in queries:
        for goal in query.body:
            if isinstance(goal, Atom):
                # A goal beside others is only a part of what is asked: all its rows are.
                free = Atom(goal.pred, (), span=goal.span)
                goals.setdefault(goal.pred, []).append(goal if len(query.body) == 1 else free)
    return goals


def _fits(goal: Atom, row: Row) -> bool:
    found: dict[str, object] = {}
    for arg, value in zip(goal.args, row, strict=False):
        if isinstance(arg, Const) and arg.value != value:
            return False
        if isinstance(arg, Var) and found.setdefault(arg.name, value) != value:
            return False
    return True


class Answers:
    """Prints answers: JSON and CSV as they come, tables at the end, when widths are known."""

    def __init__(
        self, columns_of: Callable[[str], Columns], form: str, preds: Sequence[str]
    ) -> None:
        self.columns_of, self.form, self.preds = columns_of, form, preds
        self.kept: dict[str, list[Row]] = {p: [] for p in preds}
        self.begun = False

    def add(self, pred: str, rows: Sequence[Row]) -> None:
        if self.form == "table":
            self.kept[pred] += rows
            return
        if not rows:
            return
        names, types = self.columns_of(pred)
        if self.form == "json":
            for row in rows:
                answer = {"predicate": pred, **json_object(row, names, types)}
                click.echo(json.dumps(answer, ensure_ascii=False))
        elif len(self.preds) == 1:
            header = "" if self.begun else csv_lines([names], [None] * len(names))
            click.echo(header + csv_lines(rows, types), nl=False)
        else:  # rows of several kinds have no header in common
            named = [(pred, *(row or HOLDING)) for row in rows]
            click.echo(csv_lines(named, (None, *types)), nl=False)
        self.begun = True

    def finish(self) -> None:
        if self.form == "csv" and len(self.preds) == 1 and not self.begun:
            names, _ = self.columns_of(self.preds[0])
            click.echo(csv_lines([names], [None] * len(names)), nl=False)
        for number, (pred, rows) in enumerate(self.kept.items() if self.form == "table" else ()):
            click.echo("\n" * bool(number) + self._table(pred, rows), nl=False)

    def _table(self, pred: str, rows: list[Row]) -> str:
        """Every answer, sorted; wide values are not cut, since someone may read on from here."""
        from streamlog.runtime.query import in_order

        if not rows:
            return f"{pred}: no answers\n"
        names, types = self.columns_of(pred)
        cells = [
            [visible(_shown(v, t)) for v, t in zip(row or HOLDING, types, strict=True)]
            for row in in_order(rows)
        ]
        widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
        right = [isinstance(v, int | float) and t is not Type.TIME for v, t in _first(rows, types)]
        count = f"{len(rows)} answer" + ("s" if len(rows) > 1 else "")
        lines = [f"{pred}: {count}", _line(names, widths, right)]
        lines.append("─" * len(GAP.join("x" * w for w in widths)))
        lines += (_line(row, widths, right) for row in cells)
        return "\n".join(lines) + "\n"


def _first(rows: list[Row], types: Sequence[Type | None]) -> list[tuple[object, Type | None]]:
    return list(zip(rows[0] or HOLDING, types, strict=True))


def _shown(value: object, type_: Type | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    assert isinstance(value, int | float | str)
    return str(written(value, type_))


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
    return GAP.join(parts).rstrip()
