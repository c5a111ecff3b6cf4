"""Code that puts a row into an index, and code that reads what lies there (`kernel.stores`)."""

from __future__ import annotations

from collections.abc import Iterable

from streamlog.plan.python.generated import Generated
from streamlog.plan.python.terms import stored
from streamlog.plan.steps import Index, Store


def insert(out: Generated, index: Index, held: object, in_order: bool) -> None:
    """Store what the index wants of `row` in what it holds. `in_order`: none comes that is earlier
    than another."""
    table, key = out.named(stored(index), held), _one(f"row[{p}]" for p in index.key)
    match index.store:
        case Store.EARLIEST if in_order:
            with out.block(f"if {key} not in {table}:"):
                out(f"{table}[{key}] = row[0]")
        case Store.EARLIEST:
            out(f"stored = {table}.get({key})")
            with out.block("if stored is None or row[0] < stored:"):
                out(f"{table}[{key}] = row[0]")
        case Store.ROWS if index.is_set and not index.columns:
            out(f"{table}[{key}] = once")
        case Store.ROWS:
            row = _row(index)
            out(f"stored = {table}.get({key})")
            with out.block("if stored is None:"):
                out(f"{table}[{key}] = " + (f"{{{row}: None}}" if index.is_set else f"[{row}]"))
            with out.block("else:"):
                out(f"stored[{row}] = None" if index.is_set else f"stored.append({row})")
        case Store.BY_TIME:
            out(f"stored = {table}.get({key})")
            _insert_by_time(out, index, f"{table}[{key}]", in_order)


def _insert_by_time(out: Generated, index: Index, place: str, in_order: bool) -> None:
    rows = [_row(index)] if index.has_rows else []
    values = [f"row[{p}]" for p in index.sums]
    with out.block("if stored is None:"):
        new = ["[row[0]]", *(f"[{row}]" for row in rows), *(f"[0, {value}]" for value in values)]
        out(f"{place} = {as_tuple(new)}")
    if not in_order:
        with out.block("elif row[0] < stored[0][-1]:"):
            out(f"put_late(stored, row[0], {as_tuple(rows)}, {as_tuple(values)})")
    if index.is_set and rows:
        otherwise = f"elif row[0] > stored[0][-1] or stored[1][-1] != {rows[0]}:"
    else:
        otherwise = "elif row[0] > stored[0][-1]:" if index.is_set else "else:"
    with out.block(otherwise):
        out("stored[0].append(row[0])")
        for row in rows:
            out(f"stored[1].append({row})")
        for number, value in enumerate(values, 1 + len(rows)):
            out(f"totals = stored[{number}]")
            out(f"totals.append(totals[-1] + {value})")


def _row(index: Index) -> str:
    """What is stored of a row."""
    if index.columns is None:
        return "row"
    return _one(f"row[{p}]" for p in index.columns)


# ------------------------------------------------------------------------------- reading


def lists(index: Index, times: str, rows: str, total: int | None = None) -> str:
    """Names for the lists of an index by time; `_` for those that nobody asks for."""
    names = [times, *([rows] if index.has_rows else [])]
    names += ("totals" if column == total else "_" for column in index.sums)
    return f"{times}," if len(names) == 1 else ", ".join(names)


def nothing(index: Index) -> str:
    """What an index by time holds for a key that it does not have."""
    return as_tuple(["()", *(["()"] if index.has_rows else []), *("(0,)" for _ in index.sums)])


def is_stored(index: Index, position: int) -> bool:
    """Whether a column has to be read from what is stored, and can be."""
    if index.columns is None:
        return position not in index.fixed
    return position in index.columns


def place(index: Index, position: int) -> int:
    return position if index.columns is None else index.columns.index(position)


def column_of(index: Index, row: str, position: int) -> str:
    if index.columns is not None and len(index.columns) == 1:
        return row
    return f"{row}[{place(index, position)}]"


def _one(parts: Iterable[str]) -> str:
    """A single value is itself."""
    parts = tuple(parts)
    return parts[0] if len(parts) == 1 else as_tuple(parts)


def as_tuple(parts: Iterable[str]) -> str:
    parts = tuple(parts)
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
