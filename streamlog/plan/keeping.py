"""How long an index must know its rows, and their timestamps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from streamlog.analysis.enough import Best, Enough, enough
from streamlog.analysis.schema import Schema
from streamlog.analysis.time.reach import BranchTime
from streamlog.analysis.versions import Case
from streamlog.plan.steps import Index, Old, Reader, RulePlan, Store
from streamlog.plan.walk import joins_of

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


def thinned(
    rules: Iterable[RulePlan],
    readers: Readers,
    back_of: Backs,
    cases: Collection[Case],
    schema: Schema,
    clock: Mapping[str, int],
) -> dict[Index, Old]:
    """Indexes that are asked for few of their old rows; and for each reader, from when on a row
    is old to it.

    A goal is old when its clock is earlier than that of the head (`analysis.versions`). No head
    earlier than the progress of its predicate is to come, so rows that are old at that progress
    stay so. A reader that looks back so far only has no use for rows beyond that, and of those
    before it may need few.
    """
    needed = needs(cases)
    split = {id(case.time.rule) for case in cases}
    forgetting = forgetful(readers)
    result: Readers = {}
    kept: dict[Index, list[Enough]] = {}
    asked: set[Index] = set()
    for plan in rules:
        for join in joins_of(plan):
            head, index = plan.rule.head.pred, join.index
            # A goal that is in no case never has a row.
            rows = needed.get(id(join.atom), [] if id(plan.rule) in split else [None])
            back = back_of.get(id(join.atom))
            if None in rows and back is None:
                asked.add(index)
            elif back is None or (index in forgetting and _is_choosy(rows)):
                ahead = clock.get(head, 0) - clock.get(index.pred, 0)
                _add(result, index, Reader(head, ahead))
                kept.setdefault(index, []).extend(one for one in rows if one)
            else:
                _add(result, index, Reader(head, back))
    return {
        index: Old(found, together(kept.get(index, ())))
        for index, found in result.items()
        if index not in asked
        and schema.is_temporal(index.pred)
        and index.store is not Store.EARLIEST
        and (kept.get(index) or any(r.back is None for r in readers[index]))
    }


def _is_choosy(rows: Sequence[Enough | None]) -> bool:
    return bool(rows) and all(one is not None and one.best is not None for one in rows)


def needs(cases: Iterable[Case]) -> Mapping[int, Sequence[Enough | None]]:
    """By the id of a goal, what is enough of its old rows in each case; None: all of them."""
    result: dict[int, list[Enough | None]] = {}
    for case in cases:
        for goal in case.time.goals:
            result.setdefault(id(goal.atom), [])
        for atom, rows in enough(case):
            result[id(atom)].append(rows)
    return result


def together(needs: Iterable[Enough]) -> tuple[Enough, ...]:
    """The choosiest first: where any row will do, one that is kept already does."""
    columns: dict[Best | None, set[int]] = {}
    for rows in needs:
        columns.setdefault(rows.best, set()).update(rows.columns)
    found = [Enough(tuple(sorted(read)), best) for best, read in columns.items()]
    return tuple(sorted(found or [Enough(())], key=_freedom))


def _freedom(rows: Enough) -> tuple[bool, int]:
    return (rows.best is None, rows.best.column if rows.best else 0)
