"""The latest few rows before each row, without a pair of every row with every other.

ask(T, S), trade(U, S, C), U <= T: the 5 latest
    trades and questions in one line, in the order of time: the number of the latest time of S
    up to T, and from there the rows of the five times that end with it
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import evolve
from sqlglot import exp

from streamlog.plan.sql.context import Unsupported, shifted
from streamlog.plan.sql.lookups import Line, in_line
from streamlog.plan.sql.rows import Rows
from streamlog.plan.sql.terms import Value, compare, equal, value
from streamlog.plan.steps import Join
from streamlog.syntax.ast import Type, Var
from streamlog.syntax.walk import variables

LATEST = "#found"  # a variable of ours


def join_latest(rows: Rows, step: Join, wanted: Collection[str]) -> None:
    assert step.latest is not None and step.high is not None
    bound = value(step.high, rows.env)
    if bound.fails or not bound.is_whole:
        raise Unsupported("only rows up to what may not be a time are found")
    stored, rank = _numbered(rows, step)
    at = exp.column("c0", next(iter(stored.aliases)))
    line = Line(stored, at, {"row_value": rank})
    results: dict[str, exp.Expr] = {"found": exp.Max(this=exp.column("row_value"))}
    known = {v.name for part in (step.atom, step.low) if part is not None for v in variables(part)}
    kept = {*wanted, *known} & rows.env.keys()
    alias = in_line(rows, line, bound, results, kept)
    rows.env[LATEST] = Value(exp.column("found", alias), Type.INT)
    _join(rows, step)
    del rows.env[LATEST]


def _numbered(rows: Rows, step: Join) -> tuple[Rows, exp.Expr]:
    """The goal's rows, and the number of each one's time among those with the same key."""
    stored = Rows(rows.scope, rows.env)
    stored.join(step.atom, None, None)
    if stored.across or not all(rows.owns(there.sql) for _, there in stored.keys):
        raise Unsupported("only the latest of rows that others tell apart are found")
    rank = exp.Window(
        this=exp.Anonymous(this="DENSE_RANK"),
        partition_by=[here.sql.copy() for here, _ in stored.keys],
        order=exp.Order(
            expressions=[
                exp.Ordered(this=exp.column("c0", next(iter(stored.aliases))), nulls_first=True)
            ]
        ),
    )
    return stored, rank


def _join(rows: Rows, step: Join) -> None:
    assert step.latest is not None
    stored, rank_of = _numbered(rows, step)
    alias = rows.scope.alias("g")
    columns = {
        arg.name: stored.env[arg.name]
        for arg in step.atom.args
        if isinstance(arg, Var) and arg.name not in rows.env
    }
    names = {name: f"c{position}" for position, name in enumerate(columns)}
    keys = {f"k{number}": pair for number, pair in enumerate(stored.keys)}
    table = stored.select(
        [
            *(known.sql.as_(names[name]) for name, known in columns.items()),
            *(here.sql.as_(name) for name, (here, _) in keys.items()),
            rank_of.as_("row_rank"),
        ]
    )
    blocks = rows.scope.alias("s")
    rows.add(blocks, exp.values([(0,), (1,)], alias=blocks, columns=["n"]), [])
    last, rank = rows.env[LATEST].sql, exp.column("row_rank", alias)
    on = [
        equal(evolve(here, sql=exp.column(name, alias)), there, step.atom)
        for name, (here, there) in keys.items()
    ]
    on += [
        exp.EQ(
            this=_block(rank, step.latest),
            expression=exp.Sub(this=_block(last, step.latest), expression=exp.column("n", blocks)),
        ),
        exp.LTE(this=rank.copy(), expression=last.copy()),
        exp.GT(this=rank.copy(), expression=shifted(last.copy(), -step.latest)),
    ]
    rows.add(alias, table.subquery(alias, copy=False), on)
    for name, known in columns.items():
        rows.env[name] = Value(exp.column(names[name], alias), known.type)
    if step.low is not None:
        ((time, _),) = [(n, c) for n, c in names.items() if c == "c0"]
        least = value(step.low, rows.env)
        rows.require(compare(">=", rows.env[time], least, step.atom).sql)


def _block(number: exp.Expr, size: int) -> exp.Expr:
    return exp.IntDiv(this=number.copy(), expression=exp.Literal.number(size))
