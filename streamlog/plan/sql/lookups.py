"""Whether there is a row at some time, without a pair of every row with every other.

    not (report(T1, A), T1 <= T)         anti-join with the earliest report of each A
    not (report(T1, A), T1 >= T)         anti-join with the latest report of each A
    not (report(T1, A), T <= T1, T1 <= T + 5min)
        reports and questions in one line, the latest first: the last report that has passed is
        the earliest at T or later; is it at T + 5min at the latest?

The frame of that line begins with its first row, so engines go through it once. Spark computes
any other frame anew for each row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import frozen
from sqlglot import exp

from streamlog.plan.sql.rows import CorrelatedError, Rows
from streamlog.plan.sql.terms import Value, in_64_bits, value
from streamlog.plan.steps import Exists, Extend, Filter, Join

UPTO = "#upto"  # variables of ours


def by_time(rows: Rows, step: Exists, wanted: Collection[str]) -> bool:
    """Do the test this way, if nothing but the time of a row is compared with a range."""
    match step.steps:
        case (Join(atom, _, low, high), *rest) if low is not None or high is not None:
            pass
        case _:
            return False
    simple = [s for s in rest if isinstance(s, Filter | Extend)]
    if len(simple) < len(rest):
        return False
    bounds = [value(b, rows.env) if b is not None else None for b in (low, high)]
    if any(b is not None and (b.fails or not b.is_whole or not rows.owns(b.sql)) for b in bounds):
        return False
    inner = Rows(rows.scope, rows.env)
    inner.join(atom, None, None)
    at = exp.column("c0", next(iter(inner.aliases)))
    for inner_step in simple:
        inner.apply(inner_step)
    if inner.across or not all(rows.owns(there.sql) for _, there in inner.keys):
        return False
    match bounds:
        case [None, Value() as most]:
            _extreme(rows, inner, exp.Min(this=at), exp.LTE, most, step.wanted)
        case [Value() as least, None]:
            _extreme(rows, inner, exp.Max(this=at), exp.GTE, least, step.wanted)
        case [Value() as least, Value() as most]:
            _nearest(rows, inner, at, least, most, step.wanted, wanted)
        case _:
            return False
    return True


def _extreme(
    rows: Rows,
    inner: Rows,
    time: exp.Expr,
    op: type[exp.Binary],
    bound: Value,
    wanted: bool,
) -> None:
    alias = rows.scope.alias("s")
    keys = {f"k{number}": pair for number, pair in enumerate(inner.keys)}
    columns = [here.sql.as_(name) for name, (here, _) in keys.items()]
    found = inner.select([*columns, time.as_("found")])
    if keys:
        found = found.group_by(*(here.sql.copy() for here, _ in keys.values()), copy=False)
    on: list[exp.Expr] = [
        exp.EQ(this=exp.column(name, alias), expression=there.sql.copy())
        for name, (_, there) in keys.items()
    ]
    on.append(op(this=exp.column("found", alias), expression=bound.sql.copy()))
    rows.attach(found.subquery(alias, copy=False), on, wanted)


def _nearest(
    rows: Rows,
    inner: Rows,
    at: exp.Expr,
    least: Value,
    most: Value,
    is_wanted: bool,
    wanted: Collection[str],
) -> None:
    rows.env[UPTO] = most
    line = Line(inner, at, {"row_pos": at}, is_descending=True)
    found = exp.Min(this=exp.column("row_pos"))
    alias = in_line(rows, line, least, {"found": found}, {*wanted, UPTO})
    upto = rows.env.pop(UPTO)
    nearest = exp.column("found", alias)
    if is_wanted:
        rows.require(exp.LTE(this=nearest, expression=upto.sql.copy()))
    else:
        later = exp.GT(this=nearest.copy(), expression=upto.sql.copy())
        rows.require(exp.or_(exp.Is(this=nearest, expression=exp.null()), later, copy=False))


@frozen
class Line:
    """Rows to be put in one line with those that ask for them, by their time `at`."""

    rows: Rows
    at: exp.Expr
    values: Mapping[str, exp.Expr]  # what is computed with
    is_descending: bool = False
    rows_first: bool = True  # before those who ask at the same time
    frame: exp.WindowSpec | None = None


def in_line(
    rows: Rows,
    line: Line,
    at: Value,
    results: Mapping[str, exp.Expr],
    wanted: Collection[str],
) -> str:
    """Each row asks at a time for what the line's frame up to there gives. The results are
    columns of the alias that is returned; the variables in `wanted` are still there."""
    scope, inner = rows.scope, line.rows
    if rows.keys or rows.across:
        raise CorrelatedError
    kept = {n: v for n, v in rows.env.items() if n in wanted and v.sql.find(exp.Column)}
    names = {n: scope.column(n) for n in kept}
    # A variable that is a key is not carried beside it: so engines know by what its rows lie.
    carried = dict(names)
    keys: dict[str, tuple[Value, Value]] = {}
    for number, (here, there) in enumerate(inner.keys):
        same = (
            n for n in carried if here.type is kept[n].type is not None and kept[n].sql == there.sql
        )
        variable = next(same, None)
        keys[carried.pop(variable) if variable else f"k{number}"] = (here, there)
    asking = rows.select(
        [
            *(kept[n].sql.as_(name) for n, name in carried.items()),
            *(there.sql.as_(name) for name, (_, there) in keys.items()),
            in_64_bits(at).sql.as_("pos"),
            exp.Literal.number(1).as_("asks"),
            *(exp.null().as_(name) for name in line.values),
        ]
    )
    stored = inner.select(
        [
            *(exp.null().as_(name) for name in carried.values()),
            *(here.sql.as_(name) for name, (here, _) in keys.items()),
            line.at.as_("pos"),
            exp.Literal.number(0).as_("asks"),
            *(sql.as_(name) for name, sql in line.values.items()),
        ]
    )
    rows.fails = []
    order: list[exp.Expr] = [_ordered("pos", line.is_descending)]
    if line.frame is None:
        order.append(_ordered("asks", not line.rows_first))
    both = exp.union(asking, stored, distinct=False, copy=False)
    windows = [
        exp.Window(
            this=sql.copy(),
            partition_by=[exp.column(name) for name in keys],
            order=exp.Order(expressions=[o.copy() for o in order]),
            spec=(line.frame or _RUNNING).copy(),
        ).as_(name)
        for name, sql in results.items()
    ]
    columns: Sequence[exp.Expr] = [
        *(exp.column(name) for name in names.values()),
        exp.column("asks"),
        *windows,
    ]
    query = exp.select(*columns, copy=False)
    query.from_(both.subquery(scope.alias("s"), copy=False), copy=False)
    alias = rows.read(query, kept)
    rows.require(exp.EQ(this=exp.column("asks", alias), expression=exp.Literal.number(1)))
    return alias


def _ordered(name: str, is_descending: bool) -> exp.Ordered:
    """There are no nulls; they come where Spark would have them, so no words are lost on them."""
    first = not is_descending
    return exp.Ordered(this=exp.column(name), desc=is_descending or None, nulls_first=first)


_RUNNING = exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW")
