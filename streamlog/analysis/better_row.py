"""A negation that says: there is no better row.

    trend(T0, S, D), not (trend(T1, S, _), T0 < T1, T1 <= T)
        no row of the same S is later; asked of rows with T1 <= T

Which rows are kept, how the latest is looked up, `MIN` in place of a join and the earliest row of
a recursion all rest on this form.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from attrs import frozen

from streamlog.syntax.ast import Atom, Comparison, Literal, Term, Var


@frozen
class BetterRow:
    """The goal that must have no row: of the same predicate, better in one column, equal in some,
    and free in the others."""

    rival: Atom
    column: int
    highest: bool  # a higher value is better, else a lower one
    group: tuple[int, ...]  # the columns in which the two have the same variable
    bounds: tuple[Comparison, ...]  # what else is asked of the rival


def better_rows(
    mine: Atom, negated: Iterable[Literal], outside: Collection[str]
) -> Iterator[BetterRow]:
    """How the literals under a `not` speak of a better row than `mine`; `outside` are the variables
    that have a value there without them."""
    literals = tuple(negated)
    tests = [x for x in literals if isinstance(x, Comparison)]
    match [x for x in literals if not isinstance(x, Comparison)]:
        case [Atom(pred) as rival] if pred == mine.pred:
            pass
        case _:
            return
    pairs = list(enumerate(zip(mine.args, rival.args, strict=True)))
    free = {p for p, (_, its) in pairs if isinstance(its, Var) and its.name not in outside}
    if any(its != own for p, (own, its) in pairs if p not in free):
        return
    group = tuple(p for p, (_, its) in pairs if p not in free and isinstance(its, Var))
    for column in sorted(free):
        beating = [(t, is_better(mine.args[column], rival.args[column], t)) for t in tests]
        found = [(test, highest) for test, highest in beating if highest is not None]
        if len(found) == 1:
            ((beats, highest),) = found
            bounds = tuple(t for t in tests if t is not beats)
            yield BetterRow(rival, column, bool(highest), group, bounds)


def is_better(mine: Term, its: Term, test: Comparison) -> bool | None:
    """Whether the test says no more than that the rival's value is higher, or lower (False)."""
    match test:
        case Comparison("<", left, right) | Comparison(">", right, left):
            if (left, right) == (mine, its):
                return True
            if (left, right) == (its, mine):
                return False
        case _:
            pass
    return None
