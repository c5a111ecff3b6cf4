"""A canonical text of a rule: the same however its variables are called, in whatever order its
goals and alternatives stand, and whichever way round its comparisons are written.

    p(T, X) <- q(T, X), not r(T, X), X > 5.        p(A, B) <- 5 < B, q(A, B), not r(A, B).

A rule becomes a tree whose leaves are words and variables, and whose nodes have an order or none.
Variables get numbers by what stands around them. Where that does not tell some of them apart,
each is tried as the first, and the smallest text counts; one whose choice gives the same text as
that of another is its mirror image, and need not be tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import TypeAlias

from attrs import evolve, frozen

from streamlog.syntax.ast import (
    Agg,
    Atom,
    BinOp,
    Body,
    Call,
    Comparison,
    Const,
    Limit,
    Literal,
    Neg,
    Not,
    Query,
    Rule,
    Term,
    Var,
    branches,
)
from streamlog.syntax.walk import variables


@frozen
class _Variable:
    number: int


@frozen
class _Set:
    """Parts whose order means nothing."""

    parts: tuple[_Tree, ...]


_Tree: TypeAlias = "str | _Variable | _Set | tuple[_Tree, ...]"
_Numbers: TypeAlias = Mapping[int, int]
_TURNED = {">": "<", ">=": "<="}


def canonical_rules(rule: Rule, names: Mapping[str, str]) -> Iterator[str]:
    """Its text for each alternative; one for all of them if it groups their solutions. The rule
    is desugared, and `names` says what predicates, and functions `f()`, are called in the text."""
    if rule.groups:
        yield _text(_Writer(names).rule(rule))
        return
    for body in branches(rule.body):
        yield _text(_Writer(names).rule(evolve(rule, body=body)))


def canonical_query(query: Query, names: Mapping[str, str]) -> str:
    return _text(_Writer(names).alternatives(query.body, {}))


def canonical_goals(body: Body) -> str:
    """Of goals whose variables are known by their names, as in `where begin <= end`."""
    names: dict[str, _Variable] = {}
    tree = _Writer({}).conjunction(body, names)
    return _written(tree, {v.number: f"${name}" for name, v in names.items()})


class _Writer:
    """Makes trees. The variables of a negation are its own unless they stand outside it, too."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.numbers = count()

    def rule(self, rule: Rule) -> _Tree:
        scope: dict[str, _Variable] = {}
        head = self.atom(rule.head, scope)
        limit = self.limit(rule.limit, scope) if rule.limit else ""
        return (head, limit, self.alternatives(rule.body, scope))

    def alternatives(self, body: Body, head: Mapping[str, _Variable]) -> _Tree:
        """Those of a rule that groups its solutions share their variables."""
        shared = dict(head)
        found = []
        for branch in branches(body):
            outside = variables(g for g in branch if not isinstance(g, Not))
            own = {v.name: self.variable(v.name, shared) for v in outside}
            found.append(self.conjunction(branch, {**head, **own}))
        return _set(found)

    def conjunction(self, body: Body, scope: dict[str, _Variable]) -> _Tree:
        outside = [self.literal(g, scope) for g in body if not isinstance(g, Not)]
        negated = [self.literal(g, scope) for g in body if isinstance(g, Not)]
        return _set((*outside, *negated))

    def literal(self, goal: Literal, scope: dict[str, _Variable]) -> _Tree:
        match goal:
            case Atom():
                return self.atom(goal, scope)
            case Comparison(op, left, right):
                sides = (self.term(left, scope), self.term(right, scope))
                if op in _TURNED:
                    return (_TURNED[op], *reversed(sides))
                return (op, _unordered(sides)) if op in ("=", "!=") else (op, *sides)
            case Not(body):
                return ("not", self.conjunction(body, dict(scope)))
            case _:
                raise ValueError("the rule is not desugared")

    def atom(self, atom: Atom, scope: dict[str, _Variable]) -> _Tree:
        name = self.names.get(atom.pred, atom.pred)
        return (name, *(self.term(arg, scope) for arg in atom.args))

    def limit(self, limit: Limit, scope: dict[str, _Variable]) -> _Tree:
        by = tuple((self.term(o.term, scope), str(o.descending)) for o in limit.by)
        per = _set(self.term(term, scope) for term in limit.per)
        return (f"limit {limit.count} {limit.offset}", by, per)

    def variable(self, name: str, scope: dict[str, _Variable]) -> _Variable:
        if name not in scope:
            scope[name] = _Variable(next(self.numbers))
        return scope[name]

    def term(self, term: Term, scope: dict[str, _Variable]) -> _Tree:
        match term:
            case Var(name):
                return self.variable(name, scope)
            case Const(value, type_):
                return f"{type_} {value!r}"
            case Neg(operand):
                return ("-", self.term(operand, scope))
            case BinOp(op, left, right):
                return (op, self.term(left, scope), self.term(right, scope))
            case Call(name, args):
                called = f"{name}()"
                return (self.names.get(called, called), *(self.term(arg, scope) for arg in args))
            case Agg(func, arg, by):
                given = (self.term(part, scope) for part in (arg, by) if part is not None)
                return (f"{func}<>", *given)


def _set(parts: Iterable[_Tree]) -> _Set:
    return _unordered(dict.fromkeys(parts))


def _unordered(parts: Iterable[_Tree]) -> _Set:
    """In some order, so that equal sets of one rule are equal trees."""
    return _Set(tuple(sorted(parts, key=repr)))


# ---------------------------------------------------------------------------------- the text


def _text(tree: _Tree) -> str:
    return _smallest(tree, _refined(tree, dict.fromkeys(_variables(tree), 0)))


def _smallest(tree: _Tree, numbers: _Numbers) -> str:
    tied = _tied(numbers)
    if not tied:
        return _written(tree, {v: f"${n}" for v, n in numbers.items()})
    texts: set[str] = set()
    tried: set[str] = set()
    for variable in tied:
        first = _refined(tree, _with_first(numbers, variable))
        mirror = _along_the_first(tree, first)
        if mirror not in tried:
            tried.add(mirror)
            texts.add(_smallest(tree, first))
    return min(texts)


def _along_the_first(tree: _Tree, numbers: _Numbers) -> str:
    """The text when the first of those that are tied is chosen each time."""
    while tied := _tied(numbers):
        numbers = _refined(tree, _with_first(numbers, tied[0]))
    return _written(tree, {v: f"${n}" for v, n in numbers.items()})


def _tied(numbers: _Numbers) -> list[int]:
    """The variables of the smallest number that several have."""
    having: dict[int, list[int]] = {}
    for variable, number in numbers.items():
        having.setdefault(number, []).append(variable)
    return next((having[n] for n in sorted(having) if len(having[n]) > 1), [])


def _with_first(numbers: _Numbers, variable: int) -> _Numbers:
    return {v: 2 * n + (v != variable) for v, n in numbers.items()}


def _refined(tree: _Tree, numbers: _Numbers) -> _Numbers:
    """Numbers that tell apart whatever has different surroundings."""
    different = 0
    while len(set(numbers.values())) > different:
        different = len(set(numbers.values()))
        words = {v: f"${n}" for v, n in numbers.items()}
        seen = {v: (n, _written(tree, {**words, v: f"$${n}"})) for v, n in numbers.items()}
        rank = {key: place for place, key in enumerate(sorted(set(seen.values())))}
        numbers = {v: rank[key] for v, key in seen.items()}
    return numbers


def _written(tree: _Tree, words: Mapping[int, str]) -> str:
    match tree:
        case str():
            return repr(tree)
        case _Variable(number):
            return words[number]
        case _Set(parts):
            return f"{{{','.join(sorted(_written(part, words) for part in parts))}}}"
        case _:
            return f"({','.join(_written(part, words) for part in tree)})"


def _variables(tree: _Tree) -> Iterator[int]:
    match tree:
        case str():
            return
        case _Variable(number):
            yield number
        case _Set(parts):
            for part in parts:
                yield from _variables(part)
        case _:
            for part in tree:
                yield from _variables(part)
