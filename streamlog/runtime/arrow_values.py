"""`none` is a null in Arrow, and a null is `none`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from streamlog.runtime.executor import Row
from streamlog.syntax.nothing import NONE


def array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Values as Arrow has them; it knows of no `none`."""
    try:
        return pa.array(values, type_)
    except (pa.ArrowException, TypeError):
        return pa.array([None if v is NONE else v for v in values], type_)


def with_none(rows: Iterable[Row]) -> list[Row]:
    """Rows in which None stands for `none`."""
    return [tuple(NONE if v is None else v for v in row) if None in row else row for row in rows]
