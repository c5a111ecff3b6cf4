"""A conjunction's steps: goals are joins, tests are semi-joins and anti-joins.

`lookups` tests without pairs where only time is compared, `extremes` where a value is too;
`latest` finds a few rows
of many; `windows` does folds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from streamlog.plan.sql.context import Unsupported
from streamlog.plan.sql.extremes import by_value
from streamlog.plan.sql.latest import join_latest
from streamlog.plan.sql.lookups import by_time
from streamlog.plan.sql.rows import CorrelatedError, Rows
from streamlog.plan.sql.windows import fold
from streamlog.plan.steps import Exists, Extend, Filter, Fold, Join, Ranked, Step
from streamlog.plan.walk import reads


def run(rows: Rows, steps: Sequence[Step], after: Collection[str]) -> None:
    """`after` has the variables that are wanted when all is done."""
    for number, step in enumerate(steps):
        wanted = {v.name for s in steps[number + 1 :] for v in reads(s)} | set(after)
        match step:
            case Join(latest=int()):
                join_latest(rows, step, wanted)
            case Join(atom, _, low, high):
                rows.join(atom, low, high)
            case Filter() | Extend():
                rows.apply(step)
            case Exists():
                _exists(rows, step, wanted)
            case Fold():
                fold(rows, step, wanted)
            case Ranked():
                raise Unsupported("rows are chosen by how many later ones exceed them")


def _exists(rows: Rows, step: Exists, wanted: Collection[str]) -> None:
    if by_time(rows, step, wanted) or by_value(rows, step, wanted):
        return
    inner = Rows(rows.scope, rows.env)
    try:
        run(inner, step.steps, ())
    except CorrelatedError:
        if rows.is_test:
            raise
        _exists_among_all(rows, step)
        return
    if inner.source is None:
        found = exp.and_(*inner.where, *inner.across, copy=False)
        rows.require(found if step.wanted else exp.not_(exp.paren(found)))
        return
    conditions = [*inner.key_conditions(), *inner.across]
    if not inner.joins:
        rows.attach(inner.source, [*conditions, *inner.where], step.wanted)
        return
    alias = rows.scope.alias("s")
    exported: dict[str, exp.Expr] = {}
    for column in [c for x in conditions for c in x.find_all(exp.Column)]:
        if column.table in inner.aliases:
            name = f"{column.table}_{column.name}"
            exported[name] = column.copy()
            column.replace(exp.column(name, alias))
    columns = [sql.as_(name) for name, sql in exported.items()] or [_ONE.copy()]
    rows.attach(inner.select(columns).subquery(alias, copy=False), conditions, step.wanted)


def _exists_among_all(rows: Rows, step: Exists) -> None:
    """A test within the test speaks of our rows: so it is made of the values that they have."""
    used = [n for n in dict.fromkeys(v.name for v in reads(step)) if n in rows.env]
    columns = {rows.scope.column(n): rows.env[n] for n in used}
    asked = rows.select([v.sql.as_(n) for n, v in columns.items()], goes_on=True)
    asked.distinct(copy=False)
    among = Rows(rows.scope)
    among.read(asked, {n: rows.env[n] for n in used})
    run(among, step.steps, used)
    found = among.select([among.env[n].sql.as_(rows.scope.column(n)) for n in used])
    found.distinct(copy=False)
    alias = rows.scope.alias("s")
    on: list[exp.Expr] = [
        exp.EQ(this=exp.column(name, alias), expression=known.sql.copy())
        for name, known in columns.items()
    ]
    rows.attach(found.subquery(alias, copy=False), on, step.wanted)


_ONE = exp.Literal.number(1).as_("one")
