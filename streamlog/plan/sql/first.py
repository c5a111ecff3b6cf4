"""The earliest row of each key is a minimum, not a row without earlier ones.

first(T, X) <- msg(T, X), not (msg(T0, X), T0 < T).
    SELECT MIN(c0), c1 FROM msg GROUP BY c1
"""

from __future__ import annotations

from sqlglot import exp

from streamlog.plan.sql.context import HIGH, LOW, Context, parameter
from streamlog.plan.sql.rows import Rows, Scope
from streamlog.plan.sql.terms import Value, as_double, in_64_bits, value
from streamlog.plan.steps import Exists, Index, Join, RulePlan, Store
from streamlog.syntax.ast import Atom, BinOp, Const, Type, Var
from streamlog.syntax.walk import variables


def first_of_each(rule: RulePlan, context: Context) -> exp.Query | None:
    """The query, if the rule's only goal is the one that must have no earlier row."""
    match rule.checks:
        case (Exists((Join(earlier, Index(_, _, Store.EARLIEST), None, high),), False),):
            pass
        case _:
            return None
    start, steps = rule.pipelines[0].start, rule.pipelines[0].steps
    if start is None or steps or rule.group is not None:
        return None
    key = _same_key(start, earlier)
    time = start.args[0]
    if key is None or not isinstance(time, Var) or not _is_before(high, time):
        return None
    used = {v.name for term in rule.head for v in variables(term)}
    if not used <= {time.name, *key}:
        return None
    scope = Scope(context, rule)
    rows = Rows(scope)
    rows.start(start)
    earliest = exp.Min(this=rows.env[time.name].sql.copy())
    groups = [rows.env[name].sql for name in key]
    rows.env[time.name] = Value(earliest, rows.env[time.name].type)
    found = [value(term, rows.env) for term in rule.head]
    if any(f.fails for f in found):
        return None
    if context.sliced:
        at = exp.column("c0", next(iter(rows.aliases)))
        rows.require(exp.LT(this=at, expression=parameter(HIGH)))
    floats = [context.column_of(rule.rule.head.pred, i) is Type.FLOAT for i in range(len(found))]
    query = rows.select(
        [
            (as_double(f) if is_float and f.is_whole else in_64_bits(f)).sql.as_(f"c{i}")
            for i, (f, is_float) in enumerate(zip(found, floats, strict=True))
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


def _same_key(start: Atom, earlier: Atom) -> list[str] | None:
    """The variables that both goals have in the same columns; the others must be free."""
    if start.pred != earlier.pred:
        return None
    names = [v.name for v in variables(start)]
    key: list[str] = []
    for one, other in zip(start.args[1:], earlier.args[1:], strict=True):
        match one, other:
            case Const(), _ if one == other:
                pass
            case Var(name), Var() if one == other:
                key.append(name)
            case Var(name), Var(free) if names.count(name) == 1 and free not in names:
                pass
            case _:
                return None
    return list(dict.fromkeys(key))


def _is_before(bound: object, time: Var) -> bool:
    match bound:
        case BinOp("-", Var() as var, Const(1, Type.INT)):
            return var == time
        case _:
            return False
