"""Of a row, only what rules still read of it is stored.

    p(T, X) <- a(T, X), not b(T, X, _).
        of b the pairs of T and X, each once, not rows with three columns

    total(T, S, sum(A)) <- asked(T, S), sale(T0, S, A, _), T0 <= T, T0 > T - 1week.
        of sale timestamps and running totals of A by S, not its fourth column

Rows that look alike afterwards are stored once, unless an aggregate counts them. Whole rows stay
where a better one may replace them, and where a row must be told from the one that a pipeline
started from; where finding a solution twice does no harm, it need not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from attrs import define, evolve, field

from streamlog.plan.steps import Exists, Fold, Grouping, Index, Join, RulePlan, Step, Store
from streamlog.plan.walk import reads
from streamlog.syntax.ast import Var

# Aggregates to which it does not matter how often a solution is found.
_ONCE_IS_ENOUGH = frozenset({"min", "max", "count_distinct", "first", "last"})


@define
class _Use:
    """What the joins through an index read of its rows."""

    columns: set[int] = field(factory=set)
    sums: set[int] = field(factory=set)
    counts: bool = False  # how many rows look alike
    compares: bool = False  # a row with the one it started from


def projections(
    rules: Iterable[RulePlan],
    groupings: Iterable[Grouping],
    arity: Mapping[str, int],
    replaced: Collection[str],
    histories: Collection[Index],
    dated: Collection[Index],
    is_whole: Callable[[str, int], bool],
) -> dict[Index, Index]:
    """Each index, and what it becomes.

    `replaced` are predicates whose rows may be taken back; `histories` are indexes that questions
    to come may be about. `dated` are those that must know the timestamps of their rows, in order
    to forget. `is_whole` says whether a column holds whole numbers: running totals are exact.
    """
    uses = {index: _Use() for index in histories}
    counting = {
        g.number
        for g in groupings
        if not g.distinct and not all(f in _ONCE_IS_ENOUGH for _, f in g.aggregates)
    }
    for rule in rules:
        carried = {v.name for v in rule.carries}
        for pipeline in rule.pipelines:
            for join, columns in _reading(pipeline.steps, carried):
                use = uses.setdefault(join.index, _Use())
                use.columns |= columns
                use.counts |= rule.group in counting
                use.compares |= join.not_itself and (rule.once or rule.group in counting)
        for step in rule.checks:
            match step:
                case Fold(_, func, join, column):
                    use = uses.setdefault(join.index, _Use(counts=True))
                    use.counts = True
                    if column is not None:
                        is_total = func in ("sum", "avg") and is_whole(join.index.pred, column)
                        (use.sums if is_total else use.columns).add(column)
                case _:
                    for join, columns in _reading((step,), set()):
                        uses.setdefault(join.index, _Use()).columns |= columns
    return {
        index: _projected(index, use, arity[index.pred], index in dated)
        if index.store is not Store.EARLIEST
        and not use.compares
        and index not in histories
        and (index.settled or index.pred not in replaced)
        else evolve(index, sums=tuple(sorted(use.sums)))
        for index, use in uses.items()
    }


def through(join: Join, becomes: Mapping[Index, Index]) -> Join:
    """A part of a row is never the row that a pipeline started from."""
    index = becomes[join.index]
    return evolve(join, index=index, not_itself=join.not_itself and index.columns is None)


def _projected(index: Index, use: _Use, arity: int, dated: bool) -> Index:
    columns = set(use.columns)
    free = set(range(arity)) - index.fixed
    if index.store is Store.BY_TIME:
        free.discard(0)  # timestamps have a list of their own
    elif dated and 0 not in index.key:
        columns.add(0)
    summed = evolve(index, sums=tuple(sorted(use.sums)))
    differ = columns >= free  # no two rows look alike
    if differ and len(columns) > 1:
        return summed  # a row as it came costs nothing
    is_set = not columns if differ and index.store is Store.ROWS else not (differ or use.counts)
    return evolve(summed, columns=tuple(sorted(columns)), is_set=is_set)


def _reading(steps: Iterable[Step], later: set[str]) -> Iterator[tuple[Join, set[int]]]:
    """Joins, and the columns of theirs that are read; `later` are names that are read after."""
    steps = tuple(steps)
    for number, step in enumerate(steps):
        match step:
            case Join():
                after = {v.name for s in steps[number + 1 :] for v in reads(s)}
                yield step, _read(step, after | later)
            case Exists(inner):
                yield from _reading(inner, set())
            case _:
                pass


def _read(join: Join, later: set[str]) -> set[int]:
    """The columns that are tested, or whose values are used later on."""
    free = [(p, a) for p, a in enumerate(join.atom.args) if p not in join.index.fixed]
    names = Counter(a.name for _, a in free if isinstance(a, Var))
    return {p for p, a in free if not isinstance(a, Var) or names[a.name] > 1 or a.name in later}
