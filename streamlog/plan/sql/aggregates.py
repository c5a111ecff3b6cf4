"""Groups of solutions to values, as `runtime.aggregates` makes them.

A sum does not depend on the order or the partitions of its rows. Floats are gathered for
`runtime.functions.exact_sum`, which the engine must have under the name of `EXACT_SUM`. Whole
numbers are added up as multiples of 2^32 and what is left: so what does not fit into 64 bits on
the way is no error.
"""

from __future__ import annotations

from sqlglot import exp

from streamlog.plan.sql.context import Unsupported, Untyped
from streamlog.plan.sql.terms import Value, quotient
from streamlog.syntax.ast import Type

EXACT_SUM = "streamlog_exact_sum"


def aggregate(
    func: str, what: Value, by: Value | None, order: list[exp.Expr], is_duration: bool
) -> exp.Expr:
    """`by` is the second argument; `order` has the timestamps, for `first` and `last`."""
    if func == "count":
        return exp.Count(this=exp.Star())
    column = what.sql
    if what.type is None and func != "count_distinct":
        raise Untyped(f"the {func} of values of unknown type")
    match func:
        case "count_distinct":
            return exp.Count(this=exp.Distinct(expressions=[column.copy()]))
        case "sum" if what.is_whole:
            return exp.cast(_total(what), "BIGINT")
        case "sum":
            return _total(what)
        case "avg":
            return mean(_total(what), exp.Count(this=exp.Star()), is_duration).sql
        case "min":
            return exp.Min(this=column.copy())
        case "max":
            return exp.Max(this=column.copy())
        case "first" | "last":
            places = [exp.Neg(this=o) if func == "last" else o for o in order]
            return _at_lowest(column, places)
        case "arg_min" if by is not None:
            return _at_lowest(column, [by.sql])
        case "arg_max" if by is not None:
            return _at_lowest(column, [_reversed(by)])
        case "count_if":
            return exp.CountIf(this=column.copy())
        case _:
            raise Unsupported(f"`{func}` is computed exactly, which no engine does")


def _total(what: Value) -> exp.Expr:
    if not what.is_whole:
        values = exp.ArrayAgg(this=what.sql.copy())
        return exp.Anonymous(this=EXACT_SUM, expressions=[values])
    unit = exp.Literal.number(2**32)
    high = exp.Sum(this=exp.IntDiv(this=what.sql.copy(), expression=unit))
    low = exp.Sum(this=exp.Mod(this=what.sql.copy(), expression=unit.copy()))
    return exp.Paren(
        this=exp.Add(
            this=exp.Mul(this=exp.cast(high, "DECIMAL(38, 0)"), expression=unit.copy()),
            expression=low,
        )
    )


def mean(total: exp.Expr, count: exp.Expr, is_duration: bool) -> Value:
    if is_duration:
        whole = exp.cast(total.copy(), "BIGINT")
        return Value(quotient(whole, exp.cast(count.copy(), "BIGINT")), Type.DURATION)
    doubles = (exp.cast(part.copy(), "DOUBLE") for part in (total, count))
    return Value(exp.Div(this=next(doubles), expression=next(doubles)), Type.FLOAT)


def _at_lowest(column: exp.Expr, places: list[exp.Expr]) -> exp.Expr:
    """The value in the lowest place; among several the smallest."""
    if not places:
        return exp.Min(this=column.copy())
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(f"f{number}"), expression=place.copy())
        for number, place in enumerate((*places, column))
    ]
    return exp.ArgMin(this=column.copy(), expression=exp.Struct(expressions=fields))


def _reversed(value: Value) -> exp.Expr:
    """The lower, the higher the value is."""
    if value.is_whole:
        return exp.BitwiseNot(this=exp.paren(value.sql))  # unlike a minus, never beyond 64 bits
    if value.type is Type.FLOAT:
        return exp.Neg(this=exp.paren(value.sql))
    raise Unsupported("the highest of values that are not numbers, with the lowest of others")
