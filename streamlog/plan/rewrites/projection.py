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

from collections.abc import Callable

from attrs import define, evolve, field

from streamlog.analysis.builtins import WHOLE
from streamlog.plan.conjunction import Surroundings
from streamlog.plan.keeping import forgetful
from streamlog.plan.steps import Fold, Index, Join, Plan, Ranked, Store
from streamlog.plan.walk import map_joins_of, readings
from streamlog.syntax.aggregates import AGGREGATES


@define
class _Use:
    """What the joins through an index read of its rows."""

    columns: set[int] = field(factory=set)
    sums: set[int] = field(factory=set)
    counts: bool = False  # how many rows look alike
    compares: bool = False  # a row with the one it started from


def projection(plan: Plan, program: Surroundings) -> Plan:
    schema, types = program.schema, program.types
    uses = _uses(plan, lambda pred, column: types.column(pred, column) in WHOLE)
    # Those that must know the timestamps of their rows, in order to forget.
    dated = {i for i in plan.readers if schema.is_temporal(i.pred)}
    dated &= {*plan.thinned, *forgetful(plan.readers)}
    becomes = {
        index: _projected(index, use, plan.arity[index.pred], index in dated)
        if index.store is not Store.EARLIEST
        and not use.compares
        and (index.settled or index.pred not in plan.improving)
        else evolve(index, sums=tuple(sorted(use.sums)))
        for index, use in uses.items()
    }

    def through(join: Join) -> Join:
        """A part of a row is never the row that a pipeline started from."""
        index = becomes[join.index]
        return evolve(join, index=index, not_itself=join.not_itself and index.columns is None)

    return evolve(
        plan,
        rules=tuple(map_joins_of(rule, through) for rule in plan.rules),
        indexes=tuple(sorted(set(becomes.values()), key=lambda i: i.name)),
        readers={becomes[index]: readers for index, readers in plan.readers.items()},
        thinned={becomes[index]: old for index, old in plan.thinned.items()},
    )


def _uses(plan: Plan, is_whole: Callable[[str, int], bool]) -> dict[Index, _Use]:
    """`is_whole` says whether a column holds whole numbers: running totals are exact."""
    uses: dict[Index, _Use] = {}
    counting = {
        g.number
        for g in plan.groupings
        if not g.distinct and any(AGGREGATES[f].counts for _, f in g.aggregates)
    }
    for rule in plan.rules:
        folds = {s.join.atom.number: s for s in rule.checks if isinstance(s, Fold)}
        ranked = {s.join.atom.number for s in rule.checks if isinstance(s, Ranked)}
        enumerating = (rule.checks, *(p.steps for p in rule.pipelines))
        inside = {j.atom.number for steps in enumerating for j in steps if isinstance(j, Join)}
        for join, columns in readings(rule):
            use = uses.setdefault(join.index, _Use())
            fold = folds.get(join.atom.number)
            if fold and AGGREGATES[fold.func].is_total and is_whole(join.index.pred, *columns):
                use.sums |= columns
            else:
                use.columns |= columns
            # How often a goal is met does not matter where it is only looked for.
            matters = rule.group in counting and join.atom.number in inside
            use.counts |= matters or fold is not None or join.atom.number in ranked
            use.compares |= join.not_itself and (rule.once or rule.group in counting)
    for index, old in plan.thinned.items():
        for best in (rows.best for rows in old.sufficient if rows.best):
            uses[index].columns |= {best.column, *best.group} - index.fixed - {0}
    return uses


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
