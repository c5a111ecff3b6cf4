"""What a goal may still ask of the past of its predicate: found out once, read by all that keep
rows or promise something about them.

A goal is old when its clock is earlier than that of the head (`analysis.versions`). No head
earlier than the progress of its predicate is to come, so rows that are old at that progress
stay so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from attrs import field, frozen

from streamlog.analysis.sufficient_rows import SufficientRows, sufficient_rows
from streamlog.analysis.time.reach import BranchTime
from streamlog.analysis.versions import Case
from streamlog.syntax.ast import Atom, Rule


@frozen
class Retention:
    """What one goal needs. Times are relative to the progress of the head's predicate."""

    rule: Rule = field(repr=False)
    goal: Atom
    back: int | None  # rows earlier than this are not asked for; None: rows of any age are
    old: int  # rows earlier than this are old
    sufficient: tuple[SufficientRows, ...] | None  # of the old rows; None: all of them
    # By column of another timeline: rows that are earlier there are not asked for either.
    elsewhere: tuple[tuple[int, int], ...] = ()


Retentions: TypeAlias = Mapping[int, Retention]  # by the number of the goal


def retentions(
    times: Iterable[BranchTime], cases: Iterable[Case], clock: Mapping[str, int]
) -> Retentions:
    """Of all goals with a timestamp. Without cases, some fact waits forever: so does all that
    it rests on."""
    found: dict[int, list[SufficientRows | None]] = {}
    untils: dict[int, list[int]] = {}
    for case in cases:
        for goal in case.time.goals:
            found.setdefault(goal.atom.number, [])
        for atom, rows, until in sufficient_rows(case):
            found[atom.number].append(rows)
            if until is not None:
                untils.setdefault(atom.number, []).append(until)
    result: dict[int, Retention] = {}
    for time in times:
        head = time.rule.head.pred
        for goal in time.goals:
            number, old = goal.atom.number, clock.get(head, 0) - clock.get(goal.atom.pred, 0)
            old = min(old, *untils.get(number, ()), old)
            needed = dict.fromkeys(found.get(number, [None]))
            sufficient = None if None in needed else tuple(r for r in needed if r)
            elsewhere = tuple((e.column, e.back) for e in goal.elsewhere if e.back is not None)
            result[number] = Retention(time.rule, goal.atom, goal.back, old, sufficient, elsewhere)
    return result
