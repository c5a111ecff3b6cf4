"""How long an index must know its rows, and their timestamps: what its readers retain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamlog.analysis.retention import Retentions
from streamlog.analysis.schema import Schema
from streamlog.analysis.sufficient_rows import SufficientRows, combined
from streamlog.plan.steps import Index, Old, Reader, RulePlan, Store
from streamlog.plan.walk import joins_of

Readers = dict[Index, tuple[Reader, ...]]


def read(rules: Iterable[RulePlan], retained: Retentions) -> Readers:
    """Who reads each index, and how far behind the progress of its own predicate."""
    result: Readers = {}
    for plan in rules:
        for join in joins_of(plan):
            need, head = retained.get(join.atom.number), plan.rule.head.pred
            reader = Reader(head, None) if need is None else Reader(head, need.back, need.elsewhere)
            _add(result, join.index, reader)
    return result


def _add(readers: Readers, index: Index, reader: Reader) -> None:
    known = readers.setdefault(index, ())
    if reader not in known:
        readers[index] = (*known, reader)


def forgetful(readers: Mapping[Index, tuple[Reader, ...]]) -> set[Index]:
    """Indexes of which every reader lets rows go some day."""
    return {i for i, found in readers.items() if all(r.back is not None for r in found)}


def thinned(
    rules: Iterable[RulePlan], readers: Readers, retained: Retentions, schema: Schema
) -> dict[Index, Old]:
    """Indexes that are asked for few of their old rows; and for each reader, from when on a row
    is old to it. A reader that only looks back so far has no use for rows beyond that, and of
    those before it may need few."""
    forgetting = forgetful(readers)
    result: Readers = {}
    kept: dict[Index, list[SufficientRows]] = {}
    asked: set[Index] = set()
    for plan in rules:
        for join in joins_of(plan):
            head, index, need = plan.rule.head.pred, join.index, retained.get(join.atom.number)
            if need is None or (need.sufficient is None and need.back is None):
                asked.add(index)
            elif need.sufficient is not None and (
                need.back is None or (index in forgetting and _is_choosy(need.sufficient))
            ):
                _add(result, index, Reader(head, need.old))
                kept.setdefault(index, []).extend(need.sufficient)
            else:
                _add(result, index, Reader(head, need.back))
    return {
        index: Old(found, combined(kept.get(index, ())))
        for index, found in result.items()
        if index not in asked
        and schema.is_temporal(index.pred)
        and index.store is not Store.EARLIEST
        and (kept.get(index) or any(r.back is None for r in readers[index]))
    }


def _is_choosy(rows: Iterable[SufficientRows]) -> bool:
    return bool(rows) and all(one.best is not None for one in rows)
