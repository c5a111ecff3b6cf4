"""The fold of a window: an aggregate over the rows in a range of time around each row.

A RANGE frame does it, if the window's ends are a fixed distance away. On Spark it costs each row
its window, so there counts, and sums of whole numbers, are differences of running sums: one line up
to the range's end, one up to its beginning. Minima have no differences. Sums of floats are the
kernel's, which are exact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from streamlog.plan.sql.aggregates import mean
from streamlog.plan.sql.context import Unsupported, Untyped
from streamlog.plan.sql.lookups import Line, in_line
from streamlog.plan.sql.rows import Rows
from streamlog.plan.sql.terms import Value, value
from streamlog.plan.steps import Fold
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import BinOp, Const, Term, Type, Var
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import variables

N_BEFORE, TOTAL_BEFORE = "#n_before", "#total_before"  # variables of ours
_ZERO = exp.Literal.number(0)


def fold(rows: Rows, step: Fold, wanted: Collection[str]) -> None:
    needed = {*wanted, *(v.name for v in _read(step))}
    type_ = _type(rows, step)
    is_total = step.func == "count" or AGGREGATES[step.func].is_total
    if is_total and step.func != "count" and type_ is Type.FLOAT:
        raise Unsupported(
            f"`{pretty(step.join.atom)}`: the exact {step.func} of floats over a window"
        )
    anchor = _fixed(step)
    if anchor is not None and (rows.scope.context.slides or not is_total):
        _by_frame(rows, step, type_, anchor, needed)
    elif is_total:
        _by_differences(rows, step, type_, needed)
    else:
        raise Unsupported(
            f"the {step.func} of `{pretty(step.join.atom)}` over a window of variable width"
        )


def _read(step: Fold) -> Iterator[Var]:
    for part in (step.join.atom, step.join.low, step.join.high):
        if part is not None:
            yield from variables(part)


def _type(rows: Rows, step: Fold) -> Type | None:
    if step.column is None:
        return None
    type_ = rows.scope.context.column(step.join.atom, step.column)
    if type_ is None:
        raise Untyped(f"`{pretty(step.join.atom)}`: a window over values of unknown type")
    return type_


def _line(
    rows: Rows,
    step: Fold,
    *,
    is_descending: bool = False,
    rows_first: bool = True,
    frame: exp.WindowSpec | None = None,
) -> Line:
    """The rows that the window is made of."""
    inner = Rows(rows.scope, rows.env)
    inner.join(step.join.atom, None, None)
    (alias,) = inner.aliases
    at = exp.column("c0", alias)
    values: dict[str, exp.Expr] = {"row_pos": at}
    if step.column is not None:
        values["row_value"] = exp.column(f"c{step.column}", alias)
    return Line(inner, at, values, is_descending, rows_first, frame)


def _bound(rows: Rows, term: Term) -> Value:
    bound = value(term, rows.env)
    if bound.fails or not bound.is_whole:
        raise Unsupported(f"a window ends at `{pretty(term)}`, which may not be a time")
    return bound


# -------------------------------------------------------------------------------- differences


def _by_differences(rows: Rows, step: Fold, type_: Type | None, needed: set[str]) -> None:
    low, high = step.join.low, step.join.high
    results: dict[str, exp.Expr] = {"n": exp.Count(this=exp.column("row_pos"))}
    if step.column is not None:
        results["total"] = exp.Sum(this=exp.column("row_value"))
    if low is not None and high is not None:
        line = _line(rows, step, rows_first=False)
        alias = in_line(rows, line, _bound(rows, low), results, needed)
        for name, variable in (("n", N_BEFORE), ("total", TOTAL_BEFORE)):
            if name in results:
                rows.env[variable] = Value(exp.column(name, alias), Type.INT)
                needed.add(variable)
    end = high if high is not None else low
    assert end is not None
    line = _line(rows, step, is_descending=high is None)
    alias = in_line(rows, line, _bound(rows, end), results, needed)
    count = _difference(rows, exp.column("n", alias), N_BEFORE)
    rows.require(exp.GT(this=count.copy(), expression=_ZERO.copy()))
    total = None
    if step.column is not None:
        total = _difference(rows, exp.column("total", alias), TOTAL_BEFORE)
    rows.extend(step.var.name, _result(step, type_, count, total))


def _result(step: Fold, type_: Type | None, count: exp.Expr, total: exp.Expr | None) -> Value:
    if total is None:
        return Value(exp.cast(count, "BIGINT"), Type.INT)
    if step.func == "avg":
        return mean(total, count, type_ is Type.DURATION)
    return Value(exp.cast(total, "BIGINT"), type_)


def _difference(rows: Rows, now: exp.Expr, variable: str) -> exp.Expr:
    """What has come since; a sum of no rows is NULL."""
    before = rows.env.pop(variable, None)
    if before is None:
        return now
    earlier = exp.Coalesce(this=before.sql.copy(), expressions=[_ZERO.copy()])
    return exp.Paren(this=exp.Sub(this=now, expression=earlier))


# -------------------------------------------------------------------------------------- frames


def _fixed(step: Fold) -> str | None:
    """The variable from which all ends of the window are a fixed distance away."""
    anchors = {_anchor(t) for t in (step.join.low, step.join.high) if t is not None}
    return anchors.pop() if len(anchors) == 1 else None


def _by_frame(rows: Rows, step: Fold, type_: Type | None, anchor: str, needed: set[str]) -> None:
    low, high = (None if t is None else _offset(t) for t in (step.join.low, step.join.high))
    frame = exp.WindowSpec(kind="RANGE", **_end("start", low), **_end("end", high))
    column = exp.column("row_value")
    results: dict[str, exp.Expr] = {}
    if step.func in ("count", "avg"):
        results["n"] = exp.Count(this=exp.column("row_pos"))
    match step.func:
        case "count":
            pass
        case "min":
            results["total"] = exp.Min(this=column)
        case "max":
            results["total"] = exp.Max(this=column)
        case _:
            results["total"] = exp.Sum(this=column)
    line = _line(rows, step, frame=frame)
    alias = in_line(rows, line, rows.env[anchor], results, needed)
    count, total = exp.column("n", alias), exp.column("total", alias)
    if "total" in results:  # of no rows it is NULL
        rows.require(exp.Not(this=exp.Is(this=total.copy(), expression=exp.null())))
    else:
        rows.require(exp.GT(this=count.copy(), expression=_ZERO.copy()))
    if step.func in ("min", "max"):
        rows.extend(step.var.name, Value(total, type_))
    else:
        found = total if "total" in results else None
        rows.extend(step.var.name, _result(step, type_, count, found))


def _anchor(term: Term) -> str | None:
    """T of T, T + 5 and T + 5 - 1."""
    match term:
        case Var(name):
            return name
        case BinOp("+" | "-", left, Const()):
            return _anchor(left)
        case BinOp("+", Const(), right):
            return _anchor(right)
        case _:
            return None


def _offset(term: Term) -> int:
    match term:
        case BinOp(op, left, Const(int() as number)):
            return _offset(left) + (number if op == "+" else -number)
        case BinOp(_, Const(int() as number), right):
            return number + _offset(right)
        case _:
            return 0


def _end(which: str, offset: int | None) -> dict[str, object]:
    """`INTERVAL`-less ends of a frame over whole numbers."""
    side = "FOLLOWING" if offset and offset > 0 else "PRECEDING"
    if offset is None:
        side = "PRECEDING" if which == "start" else "FOLLOWING"
        return {which: "UNBOUNDED", f"{which}_side": side}
    if offset == 0:
        return {which: "CURRENT ROW"}
    return {which: exp.Literal.number(abs(offset)), f"{which}_side": side}
