"""One-time queries: goals over the facts at hand, solved one after the other.

Nothing here is fast or needs to be. The program's rules have run already; a query joins what they
have made, and asks the rules only where a predicate is open and cannot be listed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import evolve

from streamlog.analysis.builtins import FILTERS, GOALS
from streamlog.analysis.safety import check_safety
from streamlog.analysis.schema import resolve
from streamlog.analysis.types import infer
from streamlog.compiler import Program
from streamlog.diagnostics import Diagnostic, Source, did_you_mean
from streamlog.rewrite.desugar import desugar
from streamlog.runtime import functions
from streamlog.runtime.executor import Row
from streamlog.syntax.ast import (
    Agg,
    Atom,
    BinOp,
    Body,
    Call,
    Comparison,
    Const,
    Literal,
    Module,
    Neg,
    Not,
    Query,
    Term,
    Value,
    Var,
    branches,
)
from streamlog.syntax.parse import parse
from streamlog.syntax.walk import atoms, variables

Binding: TypeAlias = dict[str, Value]
Relation: TypeAlias = Callable[[str], Sequence[Row]]

MOST_DEPTH = 100


class QueryError(Exception):
    """A query that cannot be answered; `diagnostics` say where, if a place is to blame."""

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics


def prepared(program: Program, query: str | Query) -> Query:
    """The query in simple form, once names, types and bindings are in order."""
    if isinstance(query, str):
        text = query.strip()
        text = text if text.startswith("?") else f"?{text}"
        text = text if text.endswith(".") else f"{text}."
        module, wrong = parse(Source("<query>", text))
        _raise_errors(wrong)
        found = [s for s in module.statements if isinstance(s, Query)]
        if len(found) != 1 or len(module.statements) != 1:
            raise QueryError("one query at a time, as in `?p(T, X).`")
        query = found[0]
    schema = program.schema
    for atom in atoms(query.body):
        if atom.pred not in schema.predicates and atom.pred not in GOALS:
            near = did_you_mean(atom.pred, schema.predicates)
            hint = f"; did you mean `{near}`?" if near else ""
            raise QueryError(f"there is no predicate `{atom.pred}` in this program{hint}")
    desugared, wrong = desugar(Module((query,), span=query.span))
    _raise_errors(wrong)
    (query,) = (s for s in desugared.statements if isinstance(s, Query))
    program_module = program.module
    asked, wrong = resolve(evolve(program_module, statements=(*program_module.statements, query)))
    _raise_errors(wrong)
    for found_wrong in (infer(asked)[1], check_safety(asked)[1]):
        _raise_errors(d for d in found_wrong if d.span.source is query.span.source)
    return query


def _raise_errors(diagnostics: Any) -> None:
    errors = tuple(d for d in diagnostics if d.is_error)
    if errors:
        raise QueryError(errors[0].message, errors)


def answer(program: Program, query: Query, relation: Relation) -> list[Binding]:
    """The distinct bindings of the query's named variables, sorted."""
    names = list(dict.fromkeys(v.name for v in _outside_negation(query)))
    solver = Solver(program, relation)
    found: dict[tuple[Value, ...], None] = {}
    for body in branches(query.body):
        for binding in solver.solve(body, {}, 0):
            found[tuple(binding[n] for n in names if n in binding)] = None
    return [dict(zip(names, row, strict=False)) for row in in_order(found)]


def _outside_negation(query: Query) -> Iterator[Var]:
    for body in branches(query.body):
        for literal in body:
            if not isinstance(literal, Not):
                yield from (v for v in variables(literal) if not v.is_anonymous)


def in_order(rows: Any) -> list[Any]:
    """Sorted; where a column mixes numbers and texts, numbers come first."""
    rows = list(rows)
    try:
        return sorted(rows)
    except TypeError:
        return sorted(rows, key=lambda row: [(isinstance(v, str), v) for v in row])


# ------------------------------------------------------------------------------------ goals


class Solver:
    """Finds the bindings that satisfy a conjunction, given the rows of each predicate."""

    def __init__(self, program: Program, relation: Relation) -> None:
        self.schema, self.open = program.schema, program.safety.open
        self.relation = relation
        self.indexes: dict[tuple[str, tuple[int, ...]], dict[Row, list[Row]]] = {}

    def solve(self, body: Body, binding: Binding, depth: int) -> Iterator[Binding]:
        if not body:
            yield binding
            return
        literal = self._next(body, binding)
        rest = tuple(other for other in body if other is not literal)
        for more in self._ways(literal, binding, depth):
            yield from self.solve(rest, more, depth)

    def _next(self, body: Body, binding: Binding) -> Literal:
        """Tests as soon as they can be made, then goals, negations at the end."""
        for literal in body:
            if isinstance(literal, Comparison) and _unknown(literal, binding) is not None:
                return literal
            if _is_filter(literal) and _is_bound(literal, binding):
                return literal
        goals = [a for a in body if isinstance(a, Atom) and not _is_filter(a)]
        ready = [a for a in goals if self._can_call(a, binding)]
        if ready:
            return max(ready, key=lambda a: sum(_value(t, binding) is not None for t in a.args))
        return next((x for x in body if isinstance(x, Not)), body[0])

    def _can_call(self, atom: Atom, binding: Binding) -> bool:
        open_ = self.open.get(atom.pred, frozenset())
        return all(_value(atom.args[i], binding) is not None for i in open_)

    def _ways(self, literal: Literal, binding: Binding, depth: int) -> Iterator[Binding]:
        match literal:
            case Comparison():
                yield from _compare(literal, binding)
            case Not(body):
                if next(self.solve(body, binding, depth), None) is None:
                    yield binding
            case Atom(pred, args) if pred in FILTERS:
                text, other = (str(evaluate(a, binding)) for a in args)
                if _filter(pred, text, other):
                    yield binding
            case Atom(pred) if self.open.get(pred):
                yield from self._by_rules(literal, binding, depth)
            case Atom():
                yield from self._by_facts(literal, binding)
            case _:
                raise QueryError("alternatives stand side by side once a query is prepared")

    def _by_facts(self, atom: Atom, binding: Binding) -> Iterator[Binding]:
        known = tuple(i for i, a in enumerate(atom.args) if _value(a, binding) is not None)
        key: Any = tuple(_value(atom.args[i], binding) for i in known)
        index = self.indexes.get((atom.pred, known))
        if index is None:
            index = self.indexes[atom.pred, known] = {}
            for row in self.relation(atom.pred):
                index.setdefault(tuple(row[i] for i in known), []).append(row)
        for row in index.get(key, ()):
            yield from _unified(atom, row, binding)

    def _by_rules(self, atom: Atom, binding: Binding, depth: int) -> Iterator[Binding]:
        if depth > MOST_DEPTH:
            raise QueryError(f"`{atom.pred}` calls itself more than {MOST_DEPTH} times here")
        values = [_value(a, binding) for a in atom.args]
        for rule in self.schema.rules_of.get(atom.pred, ()):
            given: Binding = {}
            for arg, value in zip(rule.head.args, values, strict=True):
                if isinstance(arg, Var) and value is not None:
                    given.setdefault(arg.name, value)
            for body in branches(rule.body):
                for found in self.solve(body, dict(given), depth + 1):
                    row = tuple(evaluate(a, found) for a in rule.head.args)
                    yield from _unified(atom, row, binding)
        for fact in self.schema.facts_of.get(atom.pred, ()):
            yield from _unified(atom, fact.row, binding)


def _is_filter(literal: Literal) -> bool:
    return isinstance(literal, Atom) and literal.pred in FILTERS


def _is_bound(literal: Literal, binding: Binding) -> bool:
    return all(v.name in binding for v in variables(literal))


def _value(term: Term, binding: Binding) -> Value | None:
    match term:
        case Const(value):
            return value
        case Var(name):
            return binding.get(name)
        case _:
            return None


def _unified(atom: Atom, row: Row, binding: Binding) -> Iterator[Binding]:
    more = dict(binding)
    for arg, value in zip(atom.args, row, strict=True):
        if isinstance(arg, Var):
            if more.setdefault(arg.name, value) != value:
                return
        elif evaluate(arg, more) != value:
            return
    yield more


def _filter(name: str, text: str, other: str) -> bool:
    if name == "contains":
        return other in text
    if name == "starts_with":
        return text.startswith(other)
    try:
        return functions.matches(text, other)
    except functions.EvaluationError as error:
        raise QueryError(str(error)) from None


# ------------------------------------------------------------------------------ expressions

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": functions.divide,
    "//": operator.floordiv,
    "%": operator.mod,
    "++": operator.add,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "max": max,
    "min": min,
    "abs": abs,
    "floor": functions.floor,
    "ceil": functions.ceil,
    "length": len,
    "lower": str.lower,
    "upper": str.upper,
    "substr": functions.substr,
}


def evaluate(term: Term, binding: Binding) -> Value:
    """A term's value, once its variables have theirs."""
    try:
        value: Value = _evaluate(term, binding)
        return functions.whole(value) if type(value) is int else value
    except ZeroDivisionError:
        raise QueryError("division by zero") from None
    except functions.EvaluationError as error:
        raise QueryError(str(error)) from None


def _evaluate(term: Term, binding: Binding) -> Any:
    match term:
        case Const(value):
            return value
        case Var(name):
            return binding[name]
        case Neg(operand):
            return -_evaluate(operand, binding)
        case BinOp(op, left, right):
            return _OPERATORS[op](evaluate(left, binding), evaluate(right, binding))
        case Call(name, args):
            return _FUNCTIONS[name](*(evaluate(a, binding) for a in args))
        case Agg():
            raise QueryError("an aggregate stands in a rule's head only")


def _unknown(comparison: Comparison, binding: Binding) -> str | None:
    """The variable that the comparison gives a value; empty when it is a test; None: not yet."""
    names = [v.name for v in variables(comparison) if v.name not in binding]
    if not names:
        return ""
    if comparison.op != "=" or len(names) != 1:
        return None
    sides = ((comparison.left, comparison.right), (comparison.right, comparison.left))
    return names[0] if any(_is_sum_with(names[0], side) for side, _ in sides) else None


def _is_sum_with(name: str, term: Term) -> bool:
    match term:
        case Var(found):
            return found == name
        case BinOp("+" | "-", left, right):
            return _is_sum_with(name, left) or _is_sum_with(name, right)
        case _:
            return False


def _compare(comparison: Comparison, binding: Binding) -> Iterator[Binding]:
    name = _unknown(comparison, binding)
    if name is None:
        raise QueryError("nothing binds the variables of a comparison")
    if not name:
        left, right = evaluate(comparison.left, binding), evaluate(comparison.right, binding)
        if _COMPARISONS[comparison.op](left, right):
            yield binding
        return
    side, other = comparison.left, comparison.right
    if not _is_sum_with(name, side):
        side, other = other, side
    yield {**binding, name: _solved(name, side, evaluate(other, binding), binding)}


def _solved(name: str, term: Term, value: Any, binding: Binding) -> Value:
    """The value of the variable that makes the sum equal `value`."""
    match term:
        case BinOp("+", left, right) if _is_sum_with(name, left):
            return _solved(name, left, value - evaluate(right, binding), binding)
        case BinOp("+", left, right):
            return _solved(name, right, value - evaluate(left, binding), binding)
        case BinOp("-", left, right) if _is_sum_with(name, left):
            return _solved(name, left, value + evaluate(right, binding), binding)
        case BinOp("-", left, right):
            return _solved(name, right, evaluate(left, binding) - value, binding)
        case _:
            result: Value = value
            return result
