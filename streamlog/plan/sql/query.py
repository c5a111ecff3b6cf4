"""Rules and groupings as queries: one for each predicate, over a slice of time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sqlglot import exp

from streamlog.plan.sql.aggregates import aggregate
from streamlog.plan.sql.context import HIGH, LOW, Context, Unsupported, parameter
from streamlog.plan.sql.first import first_of_each
from streamlog.plan.sql.rows import Rows, Scope
from streamlog.plan.sql.steps import run
from streamlog.plan.sql.terms import Value, as_double, finite, in_64_bits, value
from streamlog.plan.steps import Grouping, RulePlan
from streamlog.plan.walk import reads
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import INT64_MAX, Agg, Const, Limit, Term, Type
from streamlog.syntax.walk import variables


def predicate_query(pred: str, context: Context) -> exp.Query:
    """The distinct rows that the rules of a predicate give in a slice.

    Facts that the program has of it are not among them.
    """
    rules = [r for r in context.plan.rules if r.rule.head.pred == pred and r.group is None]
    groupings = [g for g in context.plan.groupings if g.pred == pred]
    parts: list[exp.Query] = [rule_query(r, context) for r in rules]
    parts += (group_query(g, context) for g in groupings)
    if not parts:
        return _nothing(pred, context)
    if len(parts) > 1:
        return reduce(lambda one, other: exp.union(one, other, distinct=True, copy=False), parts)
    (part,) = parts
    limited = [r for g in groupings if g.limit for r in context.plan.members(g)]
    if not all(rule.once for rule in (*rules, *limited)):
        assert isinstance(part, exp.Select)
        return part.distinct(copy=False)
    return part


def rule_query(rule: RulePlan, context: Context, delta: int | None = None) -> exp.Query:
    """The rows that one conjunction gives, perhaps several times.

    Of a rule with aggregates these are its solutions, with what is aggregated in the place of the
    aggregates. With `delta` the goal that this pipeline starts from reads the new rows alone.
    """
    if delta is None and (short := first_of_each(rule, context)) is not None:
        return short
    rows, values = _solutions(rule, context, delta, ())
    return rows.select([v.sql.as_(f"c{i}") for i, v in enumerate(values)])


def is_grouped(rule: RulePlan, context: Context) -> bool:
    """Whether a conjunction's query has one row a group, even over rows that come twice."""
    return first_of_each(rule, context) is not None


def group_query(grouping: Grouping, context: Context) -> exp.Query:
    """The rows of a grouping: the solutions of all its conjunctions, aggregated together."""
    if grouping.improving:
        raise Unsupported(f"`{grouping.pred}` improves its own values, round by round")
    members = context.plan.members(grouping)
    if grouping.limit is not None:
        return _ranked(members[0], grouping.limit, context)
    aggregated = dict(grouping.aggregates)
    ordered = any(AGGREGATES[f].by_order for f in aggregated.values())
    lengths = {len(m.order) for m in members}
    if ordered and len(lengths) > 1:
        raise Unsupported(f"`{grouping.pred}` orders solutions by different timestamps")
    order = [f"o{i}" for i in range(lengths.pop())] if ordered else []
    found = [_member(m, grouping, context, order) for m in members]
    solutions = _united([columns for _, columns, *_ in found], [rows for rows, *_ in found])
    if grouping.distinct:
        solutions = _distinct(solutions)
    types, by = found[0][2], found[0][3]
    head = [f"c{i}" for i in range(len(types))]
    columns = [
        aggregate(
            aggregated[i],
            Value(exp.column(name), types[i]),
            Value(exp.column(f"b{i}"), by[i]) if i in by else None,
            [exp.column(o) for o in order],
            context.types.column(grouping.pred, i) is Type.DURATION,
        ).as_(name)
        if i in aggregated
        else exp.column(name)
        for i, name in enumerate(head)
    ]
    keys = [exp.column(name) for i, name in enumerate(head) if i not in aggregated]
    query = exp.select(*columns, copy=False)
    query.from_(solutions.subquery("solutions", copy=False), copy=False)
    if keys:
        return query.group_by(*keys, copy=False)
    some = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
    return query.having(some, copy=False)


def _ranked(rule: RulePlan, limit: Limit, context: Context) -> exp.Query:
    """The rows of some places in each group; rows that rank alike are in their own order."""
    rows, values = _solutions(rule, context, None, [v.name for v in variables(limit)])
    head = [f"c{i}" for i in range(len(values))]
    columns = [v.sql.as_(name) for name, v in zip(head, values, strict=True)]
    columns += (value(o.term, rows.env).sql.as_(f"b{i}") for i, o in enumerate(limit.by))
    columns += (value(t, rows.env).sql.as_(f"g{i}") for i, t in enumerate(limit.per))
    order = [
        exp.Ordered(this=exp.column(f"b{i}"), desc=o.descending, nulls_first=not o.descending)
        for i, o in enumerate(limit.by)
    ]
    order += (exp.Ordered(this=exp.column(name), nulls_first=True) for name in head)
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=[exp.column(f"g{i}") for i in range(len(limit.per))],
        order=exp.Order(expressions=order),
    )
    solutions = rows.select(columns)
    solutions = exp.select(*head, place.as_("place"), copy=False).from_(
        solutions.subquery("solutions", copy=False), copy=False
    )
    last = exp.Literal.number(min(limit.offset + limit.count, INT64_MAX))
    return (
        exp.select(*head, copy=False)
        .from_(solutions.subquery("placed", copy=False), copy=False)
        .where(exp.column("place") > exp.Literal.number(limit.offset), copy=False)
        .where(exp.column("place") <= last, copy=False)
    )


_Columns = dict[str, exp.Expr]


def _member(
    rule: RulePlan, grouping: Grouping, context: Context, order: list[str]
) -> tuple[Rows, _Columns, list[Type | None], dict[int, Type | None]]:
    """A conjunction's solutions: its head's values, and what orders them or tells them apart;
    the types of the values, and of second arguments."""
    own = [v.name for v in rule.carries if v.is_written] if grouping.distinct else []
    also = [*own, *(v.name for v in rule.order)] if order else own
    rows, values = _solutions(rule, context, None, also)
    columns: _Columns = {f"c{i}": v.sql for i, v in enumerate(values)}
    columns |= {name: rows.env[v.name].sql for name, v in zip(order, rule.order, strict=False)}
    columns |= {rows.scope.column(name): rows.env[name].sql for name in own}
    second = {
        i: finite(value(term.by, rows.env))
        for i, term in enumerate(rule.head)
        if isinstance(term, Agg) and term.by is not None
    }
    columns |= {f"b{i}": v.sql for i, v in second.items()}
    for v in second.values():
        rows.fails += (f for f in v.fails if f not in rows.fails)
    types = {i: v.type for i, v in second.items()}
    return rows, columns, [v.type for v in values], types


def _united(columns: Sequence[_Columns], rows: Sequence[Rows]) -> exp.Query:
    """Branches may bind different variables: what one does not bind is NULL there."""
    names = list(dict.fromkeys(n for c in columns for n in c))
    queries: list[exp.Query] = [
        r.select([c.get(n, exp.null()).as_(n) for n in names])
        for r, c in zip(rows, columns, strict=True)
    ]
    return reduce(lambda one, other: exp.union(one, other, distinct=False, copy=False), queries)


def _distinct(solutions: exp.Query) -> exp.Query:
    if isinstance(solutions, exp.Select):
        return solutions.distinct(copy=False)
    query = exp.select("*").distinct(copy=False)
    return query.from_(solutions.subquery("found", copy=False), copy=False)


def _solutions(
    rule: RulePlan, context: Context, delta: int | None, also: Sequence[str]
) -> tuple[Rows, list[Value]]:
    """The solutions of a conjunction in a slice, and the values that its head has in them."""
    pipeline = rule.pipelines[delta or 0]
    scope = Scope(context, rule, pipeline.start if delta is not None else None)
    rows = Rows(scope)
    if pipeline.start is not None:
        rows.start(pipeline.start)
    after = {v.name for term in rule.head for v in variables(term)} | set(also)
    checked = {v.name for check in rule.checks for v in reads(check)}
    run(rows, pipeline.steps, after | checked)
    if scope.head_time is not None and context.sliced:
        # Before the checks: a window would hide it from the scans.
        time = rows.env[scope.head_time].sql
        rows.require(exp.GTE(this=time.copy(), expression=parameter(LOW)))
        rows.require(exp.LT(this=time.copy(), expression=parameter(HIGH)))
    run(rows, rule.checks, after)
    values = [_head(rule, i, term, rows, context) for i, term in enumerate(rule.head)]
    if not values:  # every query has a column
        values = [Value(exp.true(), Type.BOOL)]
    for v in values:
        rows.fails += (f for f in v.fails if f not in rows.fails)
    return rows, values


def _head(rule: RulePlan, position: int, term: Term, rows: Rows, context: Context) -> Value:
    """A value of the head, in the type of its column."""
    converts = isinstance(term, Agg) and term.func == "avg"  # of whole numbers, a float
    if isinstance(term, Agg):
        one = Const(1, Type.INT, span=term.span)
        term = one if term.arg is None else term.arg
    found = value(term, rows.env)
    is_float = context.column_of(rule.rule.head.pred, position) is Type.FLOAT
    if is_float and found.is_whole and not converts:
        found = as_double(found)
    return in_64_bits(finite(found))


def _nothing(pred: str, context: Context) -> exp.Query:
    """No rule of it can ever give a row."""
    kinds = {Type.FLOAT: "DOUBLE", Type.STRING: "TEXT", Type.BOOL: "BOOLEAN", None: "TEXT"}
    types = [context.column_of(pred, i) for i in range(context.plan.arity[pred])]
    columns = [
        exp.cast(exp.null(), kinds.get(t, "BIGINT")).as_(f"c{i}") for i, t in enumerate(types)
    ]
    return exp.select(*columns or [exp.true().as_("c0")]).where(exp.false())
