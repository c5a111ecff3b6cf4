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

What the body says about timestamps across that cut is said again on both sides of it, or the core
would join facts that no caller can reach:

    often(T, P) <- request(T1, P), request(T2, P), T - 30 <= T1, T1 < T2, T2 < T.
        core      often_core(T2, P, T1) <- request(T1, P), request(T2, P), T1 < T2, T2 <= T1 + 29.
        residual  T - 30 <= T1, T2 < T, T <= T2 + 29
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations

from attrs import evolve, frozen

from streamlog.analysis.safety import Safety, bound_variables
from streamlog.analysis.schema import Schema
from streamlog.analysis.time.constraints import matrices
from streamlog.analysis.time.dbm import Difference
from streamlog.analysis.time.reach import BranchTime
from streamlog.syntax.ast import (
    INT64_MAX,
    Atom,
    BinOp,
    Body,
    Call,
    Comparison,
    Const,
    Literal,
    Rule,
    Term,
    Type,
    Var,
    branches,
)
from streamlog.syntax.walk import variables


@frozen
class OpenRule:
    rule: Rule
    core: Atom | Rule  # a goal of the body as it is, or a rule of its own
    residual: tuple[Comparison, ...]

    def column_names(self, schema: Schema, of_core: Iterable[str]) -> dict[str, str]:
        """What the columns of the core are called in the predicate; those that only the core has,
        as they are called there, with a `'` if that is the name of another one."""
        head = self.core.head if isinstance(self.core, Rule) else self.core
        own = schema.column_names[self.rule.head.pred]
        places = {arg: place for place, arg in enumerate(self.rule.head.args)}
        if head.args:
            places[head.args[0]] = 0  # its timestamp may be that of a goal
        found = {}
        for name, arg in zip(of_core, head.args, strict=True):
            found[name] = own[places[arg]] if arg in places else name + "'" * (name in own)
        return found


def open_rules(
    schema: Schema,
    safety: Safety,
    times: Iterable[BranchTime],
    clocks: Mapping[str, Type | None],
) -> tuple[OpenRule, ...]:
    time_of = {t.place: t for t in times}
    bodies: dict[str, list[tuple[Rule, int, Body]]] = {}
    for rule in schema.rules:
        if safety.is_open(rule.head.pred):
            mine = bodies.setdefault(rule.head.pred, [])
            mine += ((rule, place, body) for place, body in enumerate(branches(rule.body)))
    result = []
    for pred, mine in bodies.items():
        for number, (rule, place, body) in enumerate(mine, start=1):
            name = f"{pred}_core" + (f"_{number}" if len(mine) > 1 else "")
            while name in schema.predicates:
                name += "_"
            time = time_of.get((rule.number, place))
            result.append(_split(rule, body, name, schema, safety, time, clocks.get(pred)))
    return tuple(result)


def _split(
    rule: Rule,
    body: Body,
    name: str,
    schema: Schema,
    safety: Safety,
    time: BranchTime | None,
    clock: Type | None,
) -> OpenRule:
    bound = bound_variables(body, frozenset(), safety.open)
    residual = [c for c in body if isinstance(c, Comparison) and not _names(c) <= bound]
    kept = [c for c in body if c not in residual]
    if time is not None:
        residual = _without_implied(residual, kept, time)
    read = {n for c in residual for n in _names(c)} | {v.name for v in variables(rule.head)}
    goals = [a for a in kept if isinstance(a, Atom)]
    if len(kept) == 1 and goals:
        return OpenRule(rule, goals[0], tuple(residual))
    if time is not None:
        stamps = [a.args[0] for a in goals if schema.is_temporal(a.pred)]
        kept += _across(stamps, kept, time, clock)
    computed = [c for c in kept if isinstance(c, Comparison)]
    columns: list[Term] = [v for v in _first_uses((*goals, *computed)) if v.name in read & bound]
    if time is not None:
        stamp = _stamp(rule, time, stamps, columns, bound)
        residual += _across([rule.head.args[0], stamp], residual, time, clock)
        if isinstance(stamp, Call):
            latest = Var(_fresh("Latest", rule), span=stamp.span)
            made = Comparison("=", latest, stamp, span=stamp.span)
            kept.append(made)
            residual.append(made)  # so that a call knows how far its core may lie
            stamp = latest
        columns = [stamp, *(c for c in columns if c != stamp)]
    head = Atom(name, tuple(columns), span=rule.head.span)
    return OpenRule(rule, Rule(head, tuple(kept), span=rule.span), tuple(residual))


def _stamp(
    rule: Rule, time: BranchTime, stamps: list[Term], columns: list[Term], bound: frozenset[str]
) -> Term:
    """The timestamp of a core: the head's own when it is bound, else the latest of its goals'."""
    head = rule.head.args[0]
    if isinstance(head, Var) and head.name in bound:
        return head
    read = list(dict.fromkeys([s for s in stamps if s in columns] or stamps))
    latest = next((s for s in read if isinstance(s, Var) and _is_latest(s, read, time)), None)
    if latest is not None or len(read) == 1:
        return latest or read[0]
    return Call("max", tuple(read), span=head.span)


def _fresh(name: str, rule: Rule) -> str:
    used = {v.name for v in variables(rule)}
    while name in used:
        name += "_"
    return name


def _names(comparison: Comparison) -> frozenset[str]:
    return frozenset(v.name for v in variables(comparison))


def _first_uses(literals: Iterable[Atom | Comparison]) -> list[Var]:
    return list({v.name: v for g in literals for v in reversed(list(variables(g)))}.values())


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
        wanted = evolve(time.terms, ranges={}).comparison(candidate)  # exactly that, not less
        if wanted != ((),) and all(any(all(map(m.entails, d)) for d in wanted) for m in known):
            result.remove(candidate)
    return result


def _across(
    stamps: list[Term], said: Iterable[Literal], time: BranchTime, clock: Type | None
) -> list[Comparison]:
    """What the whole body implies about some timestamps, and `said` does not."""
    comparisons = [c for c in said if isinstance(c, Comparison)]
    found: list[Comparison] = []
    for left, right in permutations({s.name: s for s in stamps if isinstance(s, Var)}.values(), 2):
        bounds = [m.most(left.name, right.name) for m in time.matrices]
        if None in bounds or not bounds:
            continue
        implied = Difference(left.name, right.name, max(b for b in bounds if b is not None))
        known = matrices(time.terms.comparison(c) for c in (*comparisons, *found))
        if not all(m.entails(implied) for m in known):
            found += _at_most(left, right, implied.most, clock)
    return found


def _at_most(left: Var, right: Var, most: int, clock: Type | None) -> Iterator[Comparison]:
    """`left - right <= most`, as one would write it; nothing, if its type is not known."""
    op, by = ("<", most + 1) if most == -1 or (most + 1) % 1000 == 0 else ("<=", most)
    if by == 0:
        yield Comparison(op, left, right, span=left.span)
    elif clock is not None and abs(by) <= INT64_MAX:
        unit = Const(abs(by), Type.DURATION if clock is Type.TIME else Type.INT, span=left.span)
        shifted = BinOp("+" if by > 0 else "-", right, unit, span=left.span)
        yield Comparison(op, left, shifted, span=left.span)


def _is_latest(var: Var, stamps: Iterable[Term], time: BranchTime) -> bool:
    """Whether no other timestamp is ever later."""
    return all(
        (most := m.most(other.name, var.name)) is not None and most <= 0
        for m in time.matrices
        for other in stamps
        if isinstance(other, Var)
    )
