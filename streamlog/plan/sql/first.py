"""The earliest row of each key is a minimum, not a row without earlier ones.

first(T, X) <- msg(T, X), not (msg(T0, X), T0 < T).
    SELECT MIN(c0), c1 FROM msg GROUP BY c1
"""

from __future__ import annotations

from sqlglot import exp

from streamlog.analysis.better_row import better_rows
from streamlog.plan.sql.context import HIGH, LOW, Context, parameter
from streamlog.plan.sql.rows import Rows, Scope
from streamlog.plan.sql.terms import Value, as_double, in_64_bits, value
from streamlog.plan.steps import RulePlan
from streamlog.syntax.ast import Not, Type, Var, branches
from streamlog.syntax.walk import variables


def first_of_each(rule: RulePlan, context: Context) -> exp.Query | None:
    """The query, if the rule's only goal is the one that must have no earlier row."""
    start = rule.pipelines[0].start
    bodies = branches(rule.rule.body)
    if start is None or not start.args or len(bodies) > 1:
        return None
    if rule.pipelines[0].steps or rule.group is not None:
        return None
    negations = [x for x in bodies[0] if isinstance(x, Not)]
    time, names = start.args[0], {v.name for v in variables(start)}
    if len(negations) != len(rule.checks) or len(negations) != 1 or not isinstance(time, Var):
        return None
    found = next(better_rows(start, negations[0].body, names), None)
    if found is None or (found.column, found.highest, found.bounds) != (0, False, ()):
        return None
    key = [v.name for p in found.group if isinstance(v := start.args[p], Var)]
    used = {v.name for term in rule.head for v in variables(term)}
    if not used <= {time.name, *key}:
        return None
    scope = Scope(context, rule)
    rows = Rows(scope)
    rows.start(start)
    earliest = exp.Min(this=rows.env[time.name].sql.copy())
    groups = [rows.env[name].sql for name in key]
    rows.env[time.name] = Value(earliest, rows.env[time.name].type)
    shown = [value(term, rows.env) for term in rule.head]
    if any(f.fails for f in shown):
        return None
    if context.sliced:
        at = exp.column("c0", next(iter(rows.aliases)))
        rows.require(exp.LT(this=at, expression=parameter(HIGH)))
    floats = [context.column_of(rule.rule.head.pred, i) is Type.FLOAT for i in range(len(shown))]
    query = rows.select(
        [
            (as_double(f) if is_float and f.is_whole else in_64_bits(f)).sql.as_(f"c{i}")
            for i, (f, is_float) in enumerate(zip(shown, floats, strict=True))
        ]
    )
    if groups:
        query = query.group_by(*(g.copy() for g in groups), copy=False)
    conditions: list[exp.Expr] = []
    if not groups:
        conditions.append(exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0)))
    if context.sliced:
        conditions.append(exp.GTE(this=earliest.copy(), expression=parameter(LOW)))
    return query.having(*conditions, copy=False) if conditions else query
