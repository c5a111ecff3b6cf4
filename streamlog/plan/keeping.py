"""How long an index must know its rows, and their timestamps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from streamlog.analysis.schema import Schema
from streamlog.analysis.time.reach import BranchTime
from streamlog.analysis.versions import Case, Version
from streamlog.plan.steps import Index, Old, Reader, RulePlan, Store
from streamlog.plan.walk import joins_of, readings

Readers = dict[Index, tuple[Reader, ...]]
Backs = Mapping[int, int | None]  # by the id of a goal, how far it looks back


def backs(times: Iterable[BranchTime]) -> Backs:
    return {id(g.atom): g.back for t in times for g in t.goals}


def read(rules: Iterable[RulePlan], back_of: Backs) -> Readers:
    """Who reads each index, and how far behind the progress of its own predicate."""
    result: Readers = {}
    for plan in rules:
        for join in joins_of(plan):
            reader = Reader(plan.rule.head.pred, back_of.get(id(join.atom)))
            _add(result, join.index, reader)
    return result


def _add(readers: Readers, index: Index, reader: Reader) -> None:
    known = readers.setdefault(index, ())
    if reader not in known:
        readers[index] = (*known, reader)


def forgetful(readers: Readers) -> set[Index]:
    """Indexes of which every reader lets rows go some day."""
    return {i for i, found in readers.items() if all(r.back is not None for r in found)}


def without_time(
    rules: Iterable[RulePlan],
    readers: Readers,
    back_of: Backs,
    cases: Collection[Case],
    schema: Schema,
    clock: Mapping[str, int],
) -> dict[Index, Old]:
    """Indexes that are asked for rows of any age, but never for the timestamp of an old one; and
    for each reader, from when on a row is old to it.

    A goal is old when its clock is earlier than that of the head (`analysis.versions`). Its
    timestamp decides nothing then, in whatever case; no head earlier than the progress of its
    predicate is to come, so rows that are old at that progress stay so. A reader that asks for
    timestamps, but looks back so far only, has no use for rows beyond that.
    """
    split = {id(case.time.rule) for case in cases}
    old = [(c, g.atom) for c in cases for g in c.atoms if g.version is Version.OLD]
    asks = {id(atom) for case, atom in old if case.needs_time_of(atom)}
    met = {id(atom) for _, atom in old}
    result: Readers = {}
    columns: dict[Index, set[int]] = {}
    asked: set[Index] = set()
    for plan in rules:
        for join, read_ in readings(plan):
            head = plan.rule.head.pred
            columns.setdefault(join.index, set())
            if id(plan.rule) in split and id(join.atom) not in asks:
                ahead = clock.get(head, 0) - clock.get(join.index.pred, 0)
                _add(result, join.index, Reader(head, ahead))
                if id(join.atom) in met:
                    columns[join.index] |= read_ - {0}
            elif (back := back_of.get(id(join.atom))) is not None:
                _add(result, join.index, Reader(head, back))
            else:
                asked.add(join.index)
    return {
        index: Old(found, tuple(sorted(columns[index])))
        for index, found in result.items()
        if index not in asked
        and schema.is_temporal(index.pred)
        and index.store is not Store.EARLIEST
        and any(r.back is None for r in readers[index])
    }
