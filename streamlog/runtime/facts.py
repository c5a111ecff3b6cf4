"""The facts that a program gives itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from streamlog.analysis.types import TypeTable
from streamlog.runtime.executor import Row
from streamlog.syntax.ast import Fact, Type
from streamlog.syntax.nothing import as_float

if TYPE_CHECKING:
    from streamlog.compiler import Planned


def known_facts(program: Planned) -> Mapping[str, list[Row]]:
    """The facts that a program has of predicates with rules."""
    types, defined = program.types, {r.rule.head.pred for r in program.plan.rules}
    return {
        pred: list(dict.fromkeys(_row(f, types) for f in facts))
        for pred, facts in program.schema.facts_of.items()
        if pred in defined
    }


def _row(fact: Fact, types: TypeTable) -> Row:
    return tuple(
        as_float(value) if types.column(fact.atom.pred, i) is Type.FLOAT else value
        for i, value in enumerate(fact.row)
    )
