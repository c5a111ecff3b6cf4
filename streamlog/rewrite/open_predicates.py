"""Open predicates as core and residual, so that nothing is stored per (timestamp × past fact).

    previous(T, X) <- msg(T0, X), T0 < T.
        core      msg(T0, X)
        residual  T0 < T
    befr(T2, Y) <- first(T1, Y), T1 < T2, msg(Tb, Y), Tb < T2, T1 < Tb.
        core      befr_core(Tb, Y) <- first(T1, Y), msg(Tb, Y), T1 < Tb.
        residual  Tb < T2

The core holds what the body's goals bind, projected to what the head and the residual read; the
residual is what is left to test once a caller has bound the open positions. A positive call joins
with the core, a negated one anti-joins, once for each rule.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from streamlog.analysis.safety import Safety, bound_variables
from streamlog.analysis.schema import Schema
from streamlog.analysis.time.constraints import matrices
from streamlog.analysis.time.reach import BranchTime
from streamlog.syntax.ast import Atom, Body, Comparison, Literal, Rule, Var, branches
from streamlog.syntax.walk import variables


@frozen
class OpenRule:
    rule: Rule
    core: Atom | Rule  # a goal of the body as it is, or a rule of its own
    residual: tuple[Comparison, ...]


def open_rules(schema: Schema, safety: Safety, times: Iterable[BranchTime]) -> tuple[OpenRule, ...]:
    time_of = {(id(t.rule), id(t.body)): t for t in times}
    result = []
    for rule in schema.rules:
        if not safety.is_open(rule.head.pred):
            continue
        bodies = branches(rule.body)
        for number, body in enumerate(bodies):
            name = f"{rule.head.pred}_core" + (f"_{number + 1}" if len(bodies) > 1 else "")
            time = time_of.get((id(rule), id(body)))
            result.append(_split(rule, body, name, safety, time))
    return tuple(result)


def _split(rule: Rule, body: Body, name: str, safety: Safety, time: BranchTime | None) -> OpenRule:
    bound = bound_variables(body, frozenset(), safety.open)
    residual = [c for c in body if isinstance(c, Comparison) and not _names(c) <= bound]
    kept = [c for c in body if c not in residual]
    if time is not None:
        residual = _without_implied(residual, kept, time)
    read = {n for c in residual for n in _names(c)} | {v.name for v in variables(rule.head)}
    goals = [a for a in kept if isinstance(a, Atom)]
    if len(kept) == 1 and goals:
        return OpenRule(rule, goals[0], tuple(residual))
    columns = [v for v in _first_uses(goals) if v.name in read & bound]
    if time is not None:
        columns.sort(key=lambda v: not _is_latest(v, columns, time))
    head = Atom(name, tuple(columns), span=rule.head.span)
    return OpenRule(rule, Rule(head, tuple(kept), span=rule.span), tuple(residual))


def _names(comparison: Comparison) -> frozenset[str]:
    return frozenset(v.name for v in variables(comparison))


def _first_uses(goals: Iterable[Atom]) -> list[Var]:
    return list({v.name: v for g in goals for v in reversed(list(variables(g)))}.values())


def _without_implied(
    residual: list[Comparison], kept: list[Literal], time: BranchTime
) -> list[Comparison]:
    """The residual without what the core and the rest of it already say about timestamps."""
    clocks = {g.clock for g in time.goals} | {v.name for v in variables(time.rule.head.args[0])}
    result = list(residual)
    for candidate in residual:
        if not _names(candidate) <= clocks:
            continue
        others = [c for c in (*kept, *result) if isinstance(c, Comparison) and c != candidate]
        known = matrices(time.terms.comparison(c) for c in others)
        wanted = time.terms.comparison(candidate)
        if wanted != ((),) and all(any(all(map(m.entails, d)) for d in wanted) for m in known):
            result.remove(candidate)
    return result


def _is_latest(var: Var, columns: Iterable[Var], time: BranchTime) -> bool:
    """Whether the core can carry this variable as its timestamp."""
    clocks = {g.clock for g in time.goals}
    return var.name in clocks and all(
        (most := m.most(other.name, var.name)) is not None and most <= 0
        for m in time.matrices
        for other in columns
        if other.name in clocks
    )
