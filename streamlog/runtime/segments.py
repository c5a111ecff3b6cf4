"""Rows to bytes and back, as Arrow IPC streams: values keep their exact type.

Rows of one table may differ in length and types, so each such shape is a segment of its own. A
shape has one letter a column: i int, I an int beyond 64 bits (as text), f float, s string, b bool,
n none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from attrs import frozen

from streamlog.runtime.executor import Row
from streamlog.syntax.ast import INT64_MAX, INT64_MIN
from streamlog.syntax.nothing import NONE, Nothing

_LETTERS = {float: "f", str: "s", bool: "b", Nothing: "n"}


@frozen
class Segment:
    """Rows of one shape; `places` are their positions in the table, where there are others."""

    shape: str
    count: int
    has_places: bool
    data: bytes


def packed(rows: Sequence[Row]) -> Iterator[Segment]:
    """A table's rows as segments."""
    shapes: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        shapes.setdefault(_shape(row), []).append(place)
    for shape, places in shapes.items():
        apart = len(shapes) > 1
        chosen = [rows[p] for p in places] if apart else rows
        yield Segment(shape, len(places), apart, _encoded(shape, chosen, places if apart else None))


def unpacked(segments: Iterable[Segment]) -> list[Row]:
    """The rows that were packed, in their order."""
    found: list[Row] = []
    placed: list[tuple[int, Row]] = []
    for segment in segments:
        rows, places = _decoded(segment)
        if places is None:
            found += rows
        else:
            placed += zip(places, rows, strict=True)
    placed.sort(key=lambda pair: pair[0])
    return found + [row for _, row in placed]


def _shape(row: Row) -> str:
    return "".join(_LETTERS.get(v.__class__) or _whole(v) for v in row)


def _whole(value: object) -> str:
    if type(value) is not int:
        raise TypeError(f"a row cannot hold {value!r}")
    return "i" if INT64_MIN <= value <= INT64_MAX else "I"


def _encoded(shape: str, rows: Sequence[Row], places: list[int] | None) -> bytes:
    import pyarrow as pa

    types = {"i": pa.int64(), "f": pa.float64(), "b": pa.bool_()}
    columns = []
    for i, letter in enumerate(shape):
        values: list[Any] = [row[i] for row in rows]
        if letter == "I":
            values = list(map(str, values))
        if letter == "n":
            columns.append(pa.nulls(len(rows)))
            continue
        columns.append(pa.array(values, type=types.get(letter, pa.string())))
    names = [f"c{i}" for i in range(len(shape))]
    if places is not None:
        columns.append(pa.array(places, type=pa.int64()))
        names.append("place")
    if not columns:
        return b""  # nothing but the count
    batch = pa.RecordBatch.from_arrays(columns, names=names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _decoded(segment: Segment) -> tuple[list[Row], list[int] | None]:
    if not segment.data:
        return [()] * segment.count, None
    import pyarrow as pa

    with pa.ipc.open_stream(segment.data) as reader:
        table = reader.read_all()
    columns = [column.to_pylist() for column in table.columns]
    places = columns.pop() if segment.has_places else None
    for i, letter in enumerate(segment.shape):
        if letter == "I":
            columns[i] = list(map(int, columns[i]))
        elif letter == "n":
            columns[i] = [NONE] * len(columns[i])
    rows: list[Row] = list(zip(*columns, strict=True)) if columns else [()] * segment.count
    return rows, places
