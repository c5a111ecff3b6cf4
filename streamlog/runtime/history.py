"""Which history a query needs, and whether it is still there."""

from __future__ import annotations

from streamlog.analysis.contract import Keeps
from streamlog.analysis.schema import Kind
from streamlog.compiler import Compilation, the
from streamlog.runtime.executor import BEGIN, END
from streamlog.runtime.progress import Progress
from streamlog.runtime.query import QueryError
from streamlog.runtime.values import moment
from streamlog.syntax.ast import Atom, Body, Comparison, Const, Query, Type, Var, branches
from streamlog.syntax.pretty import duration_text, time_text
from streamlog.syntax.walk import atoms


def require_history(program: Compilation, query: Query, progress: Progress) -> None:
    """Refuse a query that reads what the contract lets the engine drop.

    A fact of q is dropped when it lies more than its `kept` span before the streams' progress,
    and of what is kept, only what rules read is stored. A query is fine if it says that it asks
    for later facts only, and if those are stored whole.
    """
    schema, contract, plan = the(program.schema), the(program.contract), the(program.plan)
    furthest = max((c.reached for c in progress.clocks.values()), default=BEGIN)
    if any(c.progress >= END for c in progress.clocks.values()):
        furthest = END
    for body in branches(query.body):
        for atom in atoms(body):
            predicate = schema.predicates.get(atom.pred)
            if predicate is None or predicate.kind is Kind.TABLE or not predicate.temporal:
                continue
            if furthest == BEGIN:
                continue
            kept = contract[atom.pred].kept
            clock = program.clocks.get(atom.pred)
            horizon = furthest - kept.span
            since = _since(atom, body)
            is_later = kept.span and since is not None and since > horizon
            if kept.what is not Keeps.EVERYTHING and not is_later:
                raise QueryError(_refusal(atom.pred, kept.span, horizon, clock))
            if not plan.holds_whole(atom.pred) and not (is_later and atom.pred in plan.histories):
                raise QueryError(
                    f"of `{atom.pred}` only what rules read is kept; "
                    "run with an engine that remembers its facts"
                )


def _refusal(pred: str, span: int, horizon: int, clock: Type | None) -> str:
    if not span or horizon >= END - span:
        return f"the facts of `{pred}` are not kept; run with an engine that remembers them"
    is_time = clock is Type.TIME
    back = duration_text(span) if is_time else str(span)
    after = time_text(horizon) if is_time else moment(horizon, clock)
    return (
        f"`{pred}` is kept for {back}: what lies at or before {moment(horizon, clock)} may be "
        f"gone; ask for later facts, as in `T > {after}`"
    )


def _since(atom: Atom, body: Body) -> int | None:
    """The earliest time that the query lets this goal have, if it sets one."""
    time = atom.args[0]
    if isinstance(time, Const):
        return time.value if isinstance(time.value, int) else None
    best: int | None = None
    for literal in body:
        if isinstance(literal, Comparison) and isinstance(time, Var):
            for low in _lows(literal, time):
                best = low if best is None else max(best, low)
    return best


def _lows(comparison: Comparison, time: Var) -> list[int]:
    match comparison:
        case Comparison(op, Var(name), Const(int(value))) if name == time.name:
            return _low(op, value)
        case Comparison(op, Const(int(value)), Var(name)) if name == time.name:
            return _low({"<": ">", "<=": ">="}.get(op, op if op == "=" else ""), value)
        case _:
            return []


def _low(op: str, value: int) -> list[int]:
    return {">": [value + 1], ">=": [value], "=": [value]}.get(op, [])
