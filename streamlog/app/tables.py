"""The one look of all tables that are printed, and of the values in them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich import box
from rich.console import Console, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from streamlog.app.snippet import visible
from streamlog.runtime.executor import Row
from streamlog.runtime.ingest import HOLDING
from streamlog.runtime.query import in_order
from streamlog.runtime.values import written
from streamlog.syntax.ast import Type
from streamlog.syntax.nothing import NONE, Nothing

Types = Sequence[Type | None]
MOST_ROWS = 100  # that a session shows
_GAP = "   "


def plain_table(*columns: str, right: Collection[int] = ()) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        header_style="bold",
        border_style="dim",
    )
    for position, column in enumerate(columns):
        justify: JustifyMethod = "right" if position in right else "left"
        table.add_column(column, overflow="fold", justify=justify)
    return table


def flat(table: RenderableType, width: int) -> Text:
    """A table, or the like, without blanks at the ends of its lines."""
    console = Console(width=width, highlight=False)
    lines = []
    for segments in console.render_lines(table, pad=False):
        line = Text.assemble(*((s.text, s.style or "") for s in segments))
        line.rstrip()
        lines.append(line)
    return Text("\n").join(line for line in lines if line.plain)


def value_text(value: object, type_: Type | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Nothing):
        return value.value
    if value == NONE.value:
        return f'"{value}"'
    assert isinstance(value, int | float | str)
    return visible(str(written(value, type_)))


def titled_table(
    title: str, names: Sequence[str], rows: Sequence[Row], types: Types, width: int
) -> Text:
    """A title and rows below it, as wide as the screen; of very many rows the first."""
    result = Text(title, "bold green")
    if not names:
        return result
    table = plain_table(*names, right=_numbers(rows, types))
    for row in _cells(rows[:MOST_ROWS], types):
        table.add_row(*map(Text, row))
    result.append("\n")
    result.append_text(flat(table, width))
    if len(rows) > MOST_ROWS:
        result.append(f"\n… and {len(rows) - MOST_ROWS:,} more; a query can ask for some of them")
    return result


def all_rows(names: Sequence[str], rows: Sequence[Row], types: Types) -> str:
    """Every row, sorted, by itself a line: no value is cut or folded, since someone may read on
    from here. (rich takes a second for 5,000 rows.)"""
    cells = _cells(in_order(rows), types)
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    right = _numbers(rows, types)

    def line(row: Sequence[str]) -> str:
        parts = enumerate(zip(row, widths, strict=True))
        return _GAP.join(c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in parts).rstrip()

    rule = "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))
    return "\n".join([line(names), rule, *map(line, cells)])


def _cells(rows: Sequence[Row], types: Types) -> list[list[str]]:
    return [[value_text(v, t) for v, t in zip(row or HOLDING, types, strict=True)] for row in rows]


def _numbers(rows: Sequence[Row], types: Types) -> set[int]:
    """The columns of numbers, which are flush right. A type that is not known is that of the first
    value."""
    first = enumerate(zip((rows[0] or HOLDING) if rows else types, types, strict=True))
    return {
        position
        for position, (value, type_) in first
        if type_ in (Type.INT, Type.FLOAT) or (type_ is None and type(value) in (int, float))
    }
