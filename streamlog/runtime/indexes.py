"""Indexes that are filled at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamlog.plan.python.generated import Generated
from streamlog.plan.python.inserts import insert
from streamlog.plan.steps import Index
from streamlog.runtime.executor import Row
from streamlog.runtime.functions import FUNCTIONS


def fill(index: Index, held: dict[Any, Any], rows: Iterable[Row]) -> None:
    """Store rows as an executor does when they come one after the other."""
    out = Generated()
    with out.function("fill", "rows"), out.block("for row in rows:"):
        insert(out, index, held, in_order=False)
    out.run("<streamlog index>", FUNCTIONS)["fill"](rows)
