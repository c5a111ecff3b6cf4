"""How the time columns of a predicate's facts lie to each other.

Of an input the declaration says it (`column_relations`). Of a derived predicate it is inferred:
the matrices of each rule are projected on the columns of its head, and the predicate has the
weakest of what its rules leave. So a bound is said once and travels through predicates:

    window(E, S) <- reading(E, _), S = E - 10s.             % S is E - 10s in every fact
    mean(E, avg(C)) <- window(E, S), reading(T, C), S <= T, T <= E.

In recursion a predicate has no facts at first; what its rules then leave is iterated, and a bound
that keeps growing is given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, permutations

from attrs import evolve

from streamlog.analysis.column_relations import at, differences
from streamlog.analysis.dependency import strong_components
from streamlog.analysis.schema import Kind, Schema
from streamlog.analysis.time.constraints import (
    OffsetError,
    Relations,
    TooManyCasesError,
    matrices,
)
from streamlog.analysis.time.dbm import ZERO, Dbm, Difference
from streamlog.analysis.time.reach import HEAD, BranchTime, branches_of
from streamlog.analysis.types import TypeTable
from streamlog.syntax.ast import Agg, Atom, Comparison, Const, Rule, Term, Type, Var
from streamlog.syntax.walk import atoms

_ROUNDS = 4  # of a recursion, before bounds that still grow are given up
_NOTHING = Dbm({ZERO: 0}, [[0]])


def relations(schema: Schema, types: TypeTable) -> Relations:
    """By predicate, of those about whose columns something is known."""
    known: dict[str, Dbm] = {}
    for name, predicate in schema.predicates.items():
        declared = Dbm.of((), differences(predicate.relations))
        if predicate.relations and declared is not None:
            known[name] = declared
    related = {name: tuple(_columns(name, schema, types)) for name in schema.rules_of}
    wanted = [name for name, columns in related.items() if len(columns) > 1]
    goals = {
        name: {a.pred for rule in schema.rules_of[name] for a in atoms(rule.body)} & {*wanted}
        for name in wanted
    }
    for component in strong_components(wanted, lambda name: sorted(goals[name])):
        known |= _inferred(sorted(component), related, known, schema, types)
    return known


def _columns(name: str, schema: Schema, types: TypeTable) -> Iterator[int]:
    """The columns of a timestamped predicate that may be times."""
    if schema.is_temporal(name) and schema[name].kind is Kind.DERIVED:
        for position in range(schema[name].arity):
            if position == 0 or types.column(name, position) in (Type.TIME, Type.INT):
                yield position


def _inferred(
    preds: list[str],
    columns: Mapping[str, tuple[int, ...]],
    known: Relations,
    schema: Schema,
    types: TypeTable,
) -> dict[str, Dbm]:
    """Of the predicates of a component. A bound that changes late is given up, so that in the end
    nothing changes."""
    found: dict[str, Dbm] = {}
    for number in count():
        before = dict(found)
        for pred in preds:
            without_facts = {*preds} - found.keys()
            left = [*_of_facts(pred, columns[pred], schema)]
            if pred in before:
                left.append(before[pred])
            for rule in schema.rules_of[pred]:
                known_now = {**known, **found}
                left += _of_rule(rule, columns[pred], known_now, without_facts, schema, types)
            if left:
                names = [at(column) for column in columns[pred]]
                found[pred] = _weakest(names, left)
                if number >= _ROUNDS and pred in before:
                    found[pred] = _steady(names, found[pred], before[pred])
        if all(p in before and _same(found[p], before[p]) for p in found):
            return {p: dbm for p, dbm in found.items() if any(_bounds(dbm.names, dbm))}
    raise AssertionError("it ends")


def _of_rule(
    rule: Rule,
    columns: tuple[int, ...],
    known: Relations,
    without_facts: set[str],
    schema: Schema,
    types: TypeTable,
) -> Iterator[Dbm]:
    """What each case of a rule leaves of its head's columns."""
    try:
        for time in branches_of(rule, schema, types, known, sparing=False):
            if not any(isinstance(x, Atom) and x.pred in without_facts for x in time.body):
                yield from _projected(time, columns)
    except (TooManyCasesError, OffsetError):  # reported elsewhere
        yield _NOTHING


def _projected(time: BranchTime, columns: tuple[int, ...]) -> Iterator[Dbm]:
    inner = time.terms.whole
    terms = evolve(time.terms, whole=lambda name: name.startswith("#") or inner(name))
    head, span = time.rule.head, time.rule.head.span
    chosen: set[str] = set()  # by an aggregate from one of several solutions
    formulas = []
    for column in columns:
        term: Term | None = head.args[column] if column else Var(HEAD, span=span)
        if isinstance(term, Agg):
            is_one = term.kind.best or term.kind.by_order
            term = term.arg if is_one else None
            chosen.add(at(column))
        if term is not None:
            formulas.append(
                terms.comparison(Comparison("=", Var(at(column), span=span), term, span=span))
            )
    names = [at(column) for column in columns]
    for dbm in matrices(formulas, time.matrices):
        # Two aggregates may take their values from different solutions.
        bounds = (d for d in _bounds(names, dbm) if not {d.left, d.right} <= chosen)
        yield Dbm.of(names, bounds) or _NOTHING


def _of_facts(pred: str, columns: tuple[int, ...], schema: Schema) -> Iterator[Dbm]:
    """A derived predicate may have facts too."""
    for fact in schema.facts_of.get(pred, ()):
        values = {at(c): arg.value for c in columns if isinstance(arg := fact.atom.args[c], Const)}
        whole = {name: value for name, value in values.items() if type(value) is int}
        pairs = permutations(whole, 2)
        yield Dbm.of(whole, [Difference(a, b, whole[a] - whole[b]) for a, b in pairs]) or _NOTHING


def _weakest(names: Sequence[str], some: Sequence[Dbm]) -> Dbm:
    """What all of them have in common."""
    first, *others = some
    bounds = (
        Difference(a, b, max(most, *(m for m in rest if m is not None)) if rest else most)
        for a, b, most in _bounds(names, first)
        if None not in (rest := [other.most(a, b) for other in others])
    )
    return Dbm.of(names, bounds) or _NOTHING


def _steady(names: Sequence[str], now: Dbm, before: Dbm) -> Dbm:
    bounds = (d for d in _bounds(names, now) if before.most(d.left, d.right) == d.most)
    return Dbm.of(names, bounds) or _NOTHING


def _same(one: Dbm, other: Dbm) -> bool:
    return {*_bounds(one.names, one)} == {*_bounds(other.names, other)}


def _bounds(names: Iterable[str], dbm: Dbm) -> Iterator[Difference]:
    for left, right in permutations((n for n in names if n != ZERO), 2):
        if (most := dbm.most(left, right)) is not None:
            yield Difference(left, right, most)
