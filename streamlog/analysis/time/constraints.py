"""Comparisons to differences: each body is a disjunction of difference-bound matrices.

A term becomes a sum of variables plus a constant interval, perhaps under some side conditions:

    max(A, B)     is A when A >= B, or B when B >= A
    if(C, A, B)   is A when C holds, or B when it does not
    X in (A, B)   is X = A, or X = B
    floor(T, d)   is a new name F with T - d < F <= T
    T0 <= T + W   is T0 <= T + 5 when the facts of the static W range from 3 to 5

What cannot be written so (a product, a function of the data) is left out, which only loosens the
bounds. A variable that an equation defines, as in `Gap = T2 - T1, Gap <= 5min`, is replaced by
its definition first, because three variables do not fit into a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations, product
from types import MappingProxyType

from attrs import frozen

from streamlog.analysis.calendar import width
from streamlog.analysis.time.dbm import ZERO, Dbm, Difference
from streamlog.syntax.ast import (
    INT64_MAX,
    INT64_MIN,
    Agg,
    Atom,
    BinOp,
    Call,
    Comparison,
    Const,
    Neg,
    Term,
    Type,
    Var,
)
from streamlog.syntax.pretty import pretty

MOST_CASES = 256

Interval = tuple[int, int]
Relations = Mapping[str, Dbm]  # by predicate, between its columns (`column_relations.at`)
NO_RELATIONS: Relations = MappingProxyType({})
Conjunction = tuple[Difference, ...]


_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class TooManyCasesError(Exception):
    """The disjunctive normal form is larger than anyone would write by hand."""


class OffsetError(Exception):
    """An offset does not fit into 64 bits."""

    def __init__(self, term: Term) -> None:
        self.term = term


@frozen
class Linear:
    """A sum of variables, each with its factor, plus something from an interval."""

    factors: tuple[tuple[str, int], ...]
    low: int
    high: int

    def plus(self, other: Linear, sign: int = 1) -> Linear:
        factors = dict(self.factors)
        for name, factor in other.factors:
            factors[name] = factors.get(name, 0) + sign * factor
        low, high = (other.low, other.high) if sign > 0 else (-other.high, -other.low)
        kept = tuple(sorted((n, f) for n, f in factors.items() if f))
        return Linear(kept, self.low + low, self.high + high)

    def times(self, factor: int) -> Linear:
        low, high = sorted((self.low * factor, self.high * factor))
        return Linear(tuple((n, f * factor) for n, f in self.factors if factor), low, high)


Case = tuple[Conjunction, Linear]  # a value, and when it is that


@frozen
class Terms:
    """What a rule's variables may stand for in a difference.

    `whole` tells whether a variable holds whole numbers, `is_time` whether it holds times; `ranges`
    has the variables whose value is known from a declared range or, with `by_facts`, from static
    facts; `definitions` those an equation defines; `relations` are those between the columns of
    predicates.
    """

    whole: Callable[[str], bool]
    ranges: Mapping[str, Interval]
    definitions: Mapping[str, Term]
    by_facts: bool = True
    is_time: Callable[[str], bool] = lambda _: True
    relations: Relations = NO_RELATIONS

    def cases(self, term: Term, seen: frozenset[str] = frozenset()) -> tuple[Case, ...] | None:
        """The values a term may have, or None when differences cannot express it."""
        match term:
            case Const(value, Type.INT | Type.TIME | Type.DURATION) if isinstance(value, int):
                return (((), Linear((), value, value)),)
            case Var(name):
                return self._variable(name, seen)
            case Neg(operand):
                cases = self.cases(operand, seen)
                return cases and tuple((c, linear.times(-1)) for c, linear in cases)
            case BinOp("+" | "-" as op, left, right):
                return self._sum(term, left, right, 1 if op == "+" else -1, seen)
            case BinOp("*", left, right):
                return self._product(left, right, seen)
            case Call("max" | "min" as name, args):
                return self._extremum(args, 1 if name == "max" else -1, seen)
            case Call("abs", (arg,)):
                zero = Const(0, Type.INT, span=term.span)
                return self._extremum((arg, BinOp("-", zero, arg, span=term.span)), 1, seen)
            case Call("if", (condition, then, other)):
                return self._choice(condition, then, other, seen)
            case Call("floor" | "ceil" as name, (value, step)):
                return self._rounded(name, term, value, step, seen)
            case Call("date_trunc", (Const(str(unit)), value, *zone)):
                return self._truncated(term, unit, value, zone, seen)
            case Const() | Neg() | BinOp() | Call() | Agg():
                return None

    def _variable(self, name: str, seen: frozenset[str] = frozenset()) -> tuple[Case, ...] | None:
        if name in self.definitions and name not in seen:
            return self.cases(self.definitions[name], seen | {name})
        if name in self.ranges or self.whole(name):
            return (((), Linear(((name, 1),), 0, 0)),)
        return None

    def _sum(
        self, term: Term, left: Term, right: Term, sign: int, seen: frozenset[str]
    ) -> tuple[Case, ...] | None:
        lefts, rights = self.cases(left, seen), self.cases(right, seen)
        if lefts is None or rights is None:
            return None
        cases = tuple(
            (a + b, x.plus(y, sign)) for (a, x), (b, y) in _bounded_product(lefts, rights)
        )
        if any(not INT64_MIN <= bound <= INT64_MAX for _, s in cases for bound in (s.low, s.high)):
            raise OffsetError(term)
        return cases

    def _product(self, left: Term, right: Term, seen: frozenset[str]) -> tuple[Case, ...] | None:
        for factor, other in ((left, right), (right, left)):
            if isinstance(factor, Const) and factor.type is Type.INT:
                cases = self.cases(other, seen)
                return cases and tuple((c, x.times(int(factor.value))) for c, x in cases)
        return None

    def _extremum(
        self, args: tuple[Term, ...], sign: int, seen: frozenset[str]
    ) -> tuple[Case, ...] | None:
        """Each argument in turn, under the condition that it wins."""
        values = [self.cases(arg, seen) for arg in args]
        result: list[Case] = []
        for choice in _bounded_product(*(v or () for v in values)):
            conditions = tuple(d for c, _ in choice for d in c)
            for index, (_, winner) in enumerate(choice):
                others = (x for i, (_, x) in enumerate(choice) if i != index)
                wins = [self._at_most_zero(x.plus(winner, -1).times(sign)) for x in others]
                if None not in wins:
                    result.append((conditions + tuple(d for w in wins if w for d in w), winner))
        return tuple(result) if all(v is not None for v in values) else None

    def _choice(
        self, condition: Term, then: Term, other: Term, seen: frozenset[str]
    ) -> tuple[Case, ...] | None:
        """Either term, under the condition or its opposite. Cases multiply, so of data that are
        computed nothing is said."""
        both = self._one_of((then, other), seen)
        names = {name for _, value in both or () for name, _ in value.factors}
        if both is None or (names and not any(map(self.is_time, names))):
            return None
        holds, fails = self._condition(condition, True), self._condition(condition, False)
        if not names or holds == fails == ((),):
            return both
        result: list[Case] = []
        for formula, term in ((holds, then), (fails, other)):
            values = self.cases(term, seen) or ()
            result += ((w + c, value) for w in formula for c, value in values)
        return tuple(result)

    def _one_of(self, terms: Sequence[Term], seen: frozenset[str]) -> tuple[Case, ...] | None:
        """Any of the terms; those that differ by constants alone are one case."""
        found: list[Case] = []
        for term in terms:
            values = self.cases(term, seen)
            if values is None:
                return None
            found += values
        _, first = found[0]
        if any(conditions or value.factors != first.factors for conditions, value in found):
            return tuple(found)
        low, high = min(v.low for _, v in found), max(v.high for _, v in found)
        return (((), Linear(first.factors, low, high)),)

    def _condition(self, term: Term, holds: bool) -> tuple[Conjunction, ...]:
        """Of an `if`, as a disjunction."""
        if isinstance(term, BinOp) and term.op in _OPPOSITE:
            op = term.op if holds else _OPPOSITE[term.op]
            return self.comparison(Comparison(op, term.left, term.right, span=term.span))
        return ((),)

    def _rounded(
        self, name: str, term: Term, value: Term, step: Term, seen: frozenset[str]
    ) -> tuple[Case, ...] | None:
        values, steps = self.cases(value, seen), self.cases(step, seen)
        if values is None or steps is None or len(steps) != 1 or steps[0][1].factors:
            return None
        if steps[0][1].low <= 0:
            return None
        return self._within(term, values, steps[0][1].high, 1 if name == "floor" else -1)

    def _truncated(
        self, term: Term, unit: str, value: Term, zone: list[Term], seen: frozenset[str]
    ) -> tuple[Case, ...] | None:
        values = self.cases(value, seen)
        match zone:
            case []:
                longest = width(unit, "UTC")
            case [Const(str(name))]:
                longest = width(unit, name)
            case _:
                return None
        return None if values is None or not longest else self._within(term, values, longest, 1)

    def _within(
        self, term: Term, values: tuple[Case, ...], width: int, sign: int
    ) -> tuple[Case, ...] | None:
        """A term that is below the values, or above them, by less than a width."""
        rounded = Linear(((pretty(term), 1),), 0, 0)  # the same term, the same value
        result = []
        for conditions, exact in values:
            rest = exact.plus(rounded, -1).times(sign)  # 0 <= rest < width
            bounds = self._at_most_zero(rest.plus(Linear((), width - 1, width - 1), -1))
            signs = self._at_most_zero(rest.times(-1))
            if bounds is None or signs is None:
                return None
            result.append((conditions + bounds + signs, rounded))
        return tuple(result)

    def comparison(self, comparison: Comparison) -> tuple[Conjunction, ...]:
        """A comparison as a disjunction; `((),)` when nothing can be said."""
        lefts, rights = self.cases(comparison.left), self.cases(comparison.right)
        match comparison.op, comparison.left, comparison.right:
            case ("=", Call("in", (value, *items)), Const(True)) | (
                "=",
                Const(True),
                Call("in", (value, *items)),
            ):
                lefts, rights = self.cases(value), self._one_of(items, frozenset())
            case _:
                pass
        if lefts is None or rights is None:
            return ((),)
        result = []
        for (a, left), (b, right) in _bounded_product(lefts, rights):
            for differences in self._compare(comparison.op, left.plus(right, -1)):
                result.append(a + b + differences)
        return tuple(result)

    def related(self, atom: Atom) -> Iterator[tuple[Conjunction, ...]]:
        """What is known of the columns of a goal's facts."""
        relation = self.relations.get(atom.pred)
        for left, right in permutations(relation.names if relation else (), 2):
            most = relation.most(left, right) if relation and ZERO not in (left, right) else None
            if most is not None and INT64_MIN <= most <= INT64_MAX:
                sides = [atom.args[int(name[1:])] for name in (left, right)]
                offset = BinOp("+", sides[1], Const(most, Type.INT, span=atom.span), span=atom.span)
                yield self.comparison(Comparison("<=", sides[0], offset, span=atom.span))

    def bounds(self, names: Iterable[str]) -> Iterator[tuple[Conjunction, ...]]:
        """What the ranges say of some variables."""
        for name in names:
            low, high = (Linear((), end, end) for end in self.ranges[name])
            cases = self._variable(name)
            if cases is not None:
                yield tuple(
                    c + above + below
                    for c, value in cases
                    for above in self._compare(">=", value.plus(low, -1))
                    for below in self._compare("<=", value.plus(high, -1))
                )

    def _compare(self, op: str, difference: Linear) -> Iterator[Conjunction]:
        """The alternatives of `difference op 0`; none when it cannot be."""
        one = Linear((), 1, 1)
        below, above = difference, difference.times(-1)
        match op:
            case "<=":
                alternatives = [[below]]
            case "<":
                alternatives = [[below.plus(one)]]
            case ">=":
                alternatives = [[above]]
            case ">":
                alternatives = [[above.plus(one)]]
            case "=":
                alternatives = [[below, above]]
            case _:
                alternatives = [[below.plus(one)], [above.plus(one)]]
        for alternative in alternatives:
            parts = [self._at_most_zero(linear) for linear in alternative]
            if None not in parts:
                yield tuple(d for part in parts if part for d in part)

    def _at_most_zero(self, linear: Linear) -> Conjunction | None:
        """`linear <= 0` as differences: () when it says nothing, None when it cannot be.

        Of a sum that is no difference, as few ranged variables as possible are replaced by the
        end of their range with which it is least.
        """
        ranged = [(name, factor) for name, factor in linear.factors if name in self.ranges]
        for count in range(len(ranged) + 1):
            found: list[Difference] = []
            for chosen in combinations(ranged, count):
                least = linear
                for name, factor in chosen:
                    ends = [factor * end for end in self.ranges[name]]
                    least = least.plus(Linear(((name, factor),), -max(ends), -min(ends)), -1)
                differences = _at_most_zero(least)
                if differences is None:
                    return None
                found += differences
            if found:
                return tuple(found)
        return ()


def _at_most_zero(linear: Linear) -> Conjunction | None:
    """`linear <= 0` as a difference: () when it says nothing, None when it cannot be."""
    match linear.factors:
        case ():
            return () if linear.low <= 0 else None
        case ((name, factor),):
            pair = (name, ZERO) if factor > 0 else (ZERO, name)
            return (Difference(*pair, -linear.low // abs(factor)),)
        case ((one, factor), (other, opposite)) if factor == -opposite:
            pair = (one, other) if factor > 0 else (other, one)
            return (Difference(*pair, -linear.low // abs(factor)),)
        case _:
            return ()


def _bounded_product(*parts: Iterable[Case]) -> Iterator[tuple[Case, ...]]:
    for count, choice in enumerate(product(*parts)):
        if count >= MOST_CASES:
            raise TooManyCasesError
        yield choice


def matrices(
    formulas: Iterable[tuple[Conjunction, ...]], start: tuple[Dbm, ...] | None = None
) -> tuple[Dbm, ...]:
    """The consistent disjuncts of a conjunction of disjunctions, on top of those of `start`."""
    result = [Dbm.of((), ())] if start is None else list(start)
    certain: list[Difference] = []
    for formula in formulas:
        if len(formula) == 1:
            certain += formula[0]
            continue
        result = [m.and_also(d) for m in result if m for d in formula]
        if len(result) > MOST_CASES:
            raise TooManyCasesError
    if certain:
        result = [m.and_also(certain) for m in result if m]
    return tuple(m for m in result if m)
