"""Relations between columns as people read them, of the predicates where they made a difference."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from streamlog.analysis.column_relations import at
from streamlog.analysis.time.dbm import Dbm
from streamlog.app.quantity import quantity
from streamlog.compiler import Program
from streamlog.syntax.ast import Type


def relations_that_mattered(program: Program) -> dict[str, list[str]]:
    """By predicate: `S = E - 10 s`, `begin <= end`, `end <= begin + 1 h`."""
    used = {pred for time in program.times for pred in time.related} & program.relations.keys()
    written = sorted(set(map(program.schema.stream_of, used)))
    return {pred: list(_in_words(program.relations[pred], program, pred)) for pred in written}


def _in_words(relation: Dbm, program: Program, pred: str) -> Iterator[str]:
    names = program.schema.column_names[pred]
    columns = [c for c in range(len(names)) if at(c) in relation.names]
    clock = program.types.column(pred, columns[0]) if columns else None
    for one, other in combinations(columns, 2):
        most, least = relation.most(at(one), at(other)), relation.most(at(other), at(one))
        if most is not None and least is not None and most == -least:
            yield f"{names[other]} = {_shifted(names[one], least, clock)}"
            continue
        for low, high, by in ((one, other, most), (other, one, least)):
            if by is not None and not _follows(relation, low, high, by, columns):
                yield f"{names[low]} <= {_shifted(names[high], by, clock)}"


def _follows(relation: Dbm, one: int, other: int, by: int, columns: list[int]) -> bool:
    """Whether two other bounds say the same together."""
    for middle in columns:
        if middle not in (one, other):
            first, second = relation.most(at(one), at(middle)), relation.most(at(middle), at(other))
            if first is not None and second is not None and first + second <= by:
                return True
    return False


def _shifted(name: str, by: int, clock: Type | None) -> str:
    if not by:
        return name
    return f"{name} {'+' if by > 0 else '-'} {quantity(abs(by), clock)}"
