"""Answers on standard output: a table, JSON Lines or CSV."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

import click

from streamlog.app.formats import count
from streamlog.app.tables import all_rows
from streamlog.runtime.data_files import JSON_LINES
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import Row
from streamlog.runtime.ingest import HOLDING, surface
from streamlog.runtime.sinks import csv_lines, json_object
from streamlog.syntax.ast import Atom, Const, Query, Type, Var

Columns = tuple[tuple[str, ...], tuple[Type | None, ...]]


def columns_of(engine: Engine, pred: str) -> Columns:
    """A predicate's columns: their names and types, as far as these are known by now."""
    types = engine.program.types
    names = engine.schema.column_names[pred]
    found = [types.column(pred, i) for i in range(len(names))]
    if engine.schema[pred].temporal and found and found[0] is None:
        found[0] = engine.clock(pred)
    return surface(names, found)


def goals_of(queries: Sequence[Query]) -> Mapping[str, list[Atom]]:
    """What a program's queries ask of each predicate they name: `?first(T, red).` asks for red."""
    goals: dict[str, list[Atom]] = {}
    for query in queries:
        for goal in query.body:
            if isinstance(goal, Atom):
                # A goal beside others is only a part of what is asked: all its rows are.
                free = Atom(goal.pred, (), span=goal.span)
                goals.setdefault(goal.pred, []).append(goal if len(query.body) == 1 else free)
    return goals


def fits(goals: Iterable[Atom], row: Row) -> bool:
    """Whether a row is one that some goal asks for."""
    return any(_fits(goal, row) for goal in goals)


def _fits(goal: Atom, row: Row) -> bool:
    found: dict[str, object] = {}
    for arg, value in zip(goal.args, row, strict=False):
        if isinstance(arg, Const) and arg.value != value:
            return False
        if isinstance(arg, Var) and found.setdefault(arg.name, value) != value:
            return False
    return True


class Answers:
    """Prints answers: JSON (`jsonl`: without the predicate) and CSV as they come, unless they have
    to wait; tables at the end, when widths are known."""

    def __init__(
        self, columns_of: Callable[[str], Columns], form: str, preds: Sequence[str], *, wait: bool
    ) -> None:
        self.columns_of, self.form, self.preds = columns_of, form, preds
        self.wait = wait or form == "table"
        self.kept: dict[str, list[Row]] = {p: [] for p in preds}
        self.begun = False

    def add(self, pred: str, rows: Sequence[Row]) -> None:
        if self.wait:
            self.kept[pred] += rows
        elif rows:
            self._print(pred, rows)

    def finish(self) -> None:
        for number, (pred, rows) in enumerate(self.kept.items()):
            if self.form == "table":
                click.echo("\n" * bool(number) + self._table(pred, rows))
            elif rows:
                self._print(pred, rows)
        if self.form == "csv" and len(self.preds) == 1 and not self.begun:
            click.echo(self._header(), nl=False)

    def _print(self, pred: str, rows: Sequence[Row]) -> None:
        names, types = self.columns_of(pred)
        if self.form in ("json", JSON_LINES):
            named = {"predicate": pred} if self.form == "json" else {}
            for row in rows:
                answer = {**named, **json_object(row, names, types)}
                click.echo(json.dumps(answer, ensure_ascii=False))
        elif len(self.preds) == 1:
            header = "" if self.begun else self._header()
            click.echo(header + csv_lines(rows, types), nl=False)
        else:  # rows of several kinds have no header in common
            with_names = [(pred, *(row or HOLDING)) for row in rows]
            click.echo(csv_lines(with_names, (None, *types)), nl=False)
        self.begun = True

    def _header(self) -> str:
        names, _ = self.columns_of(self.preds[0])
        return csv_lines([names], [None] * len(names))

    def _table(self, pred: str, rows: list[Row]) -> str:
        if not rows:
            return f"{pred}: no answers"
        names, types = self.columns_of(pred)
        return f"{pred}: {count(len(rows), 'answer')}\n{all_rows(names, rows, types)}"
