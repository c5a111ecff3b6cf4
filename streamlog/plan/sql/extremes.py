"""Whether a row with a higher value is there, without a pair of every row with every other.

not (tempr(T0, _, C0), C0 > C, T0 <= T)
    readings and questions in one line, in the order of time: the highest reading that has
    passed is the highest up to T; is it higher than C?
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from streamlog.analysis.monotone import better
from streamlog.plan.sql.lookups import Line, in_line
from streamlog.plan.sql.rows import Rows
from streamlog.plan.sql.terms import Value, test, value
from streamlog.plan.steps import Exists, Filter, Join
from streamlog.syntax.ast import Comparison, Term, Var
from streamlog.syntax.walk import map_terms, variables

BEST = "#best"  # a variable of ours


def by_value(rows: Rows, step: Exists, wanted: Collection[str]) -> bool:
    """Do the test this way, if a value is compared once, of rows on one side of a time."""
    match step.steps:
        case (Join(atom, _, low, high), *rest) if low is None or high is None:
            limit = low or high
        case _:
            return False
    if limit is None:
        return False
    columns = {a.name: i for i, a in enumerate(atom.args) if isinstance(a, Var) and i > 0}
    tests = [s.test for s in rest if isinstance(s, Filter) and isinstance(s.test, Comparison)]
    asking = [t for t in tests if any(v.name in rows.env for v in variables(t))]
    bound = value(limit, rows.env)
    if len(tests) < len(rest) or len(asking) != 1 or bound.fails or not bound.is_whole:
        return False
    own = {v.name for v in variables(asking[0]) if v.name not in rows.env}
    moves = better(asking[0], dict.fromkeys(own, 1))
    if len(own) != 1 or not own <= columns.keys() or moves not in (1, -1):
        return False
    (name,) = own
    inner = Rows(rows.scope, rows.env)
    inner.join(atom, None, None)
    for other in tests:
        if other is not asking[0]:
            inner.apply(Filter(other))
    found, at = inner.env[name], exp.column("c0", next(iter(inner.aliases)))
    known = {v.name for v in variables(asking[0])} & rows.env.keys()
    if (
        inner.across
        or test(asking[0], inner.env).fails
        or not all(rows.owns(v.sql) for v in (bound, *(there for _, there in inner.keys)))
        or not all(rows.owns(rows.env[n].sql) for n in known)
    ):
        return False
    best = exp.Max if moves == 1 else exp.Min
    line = Line(inner, at, {"row_value": found.sql}, is_descending=high is None)
    results: dict[str, exp.Expr] = {"found": best(this=exp.column("row_value"))}
    alias = in_line(rows, line, bound, results, {*wanted, *known})
    column = exp.column("found", alias)

    def as_best(term: Term) -> Term:
        return Var(BEST, span=term.span) if isinstance(term, Var) and term.name == name else term

    asked = map_terms(asking[0], as_best)
    holds = test(asked, {**rows.env, BEST: Value(column, found.type)}).sql
    if step.wanted:
        rows.require(holds)
    else:
        none = exp.Is(this=column.copy(), expression=exp.null())
        rows.require(exp.or_(none, exp.not_(exp.paren(holds)), copy=False))
    return True
