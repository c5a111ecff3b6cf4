"""Equations: what they define, and what they can be solved for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlog.syntax.ast import Agg, BinOp, Call, Comparison, Const, Literal, Neg, Term, Var
from streamlog.syntax.walk import variables


def definitions(literals: Iterable[Literal]) -> Iterator[tuple[Var, Term, Comparison]]:
    """The variables that stand alone on a side of an equation, each with the other side."""
    for literal in literals:
        if isinstance(literal, Comparison) and literal.op == "=":
            for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
                if isinstance(side, Var):
                    yield side, other, literal


def solve(equation: Comparison, name: str) -> tuple[Var, Term] | None:
    """The equation as a value for a variable, by moving terms to the other side."""
    if [v.name for v in variables(equation)].count(name) != 1:
        return None
    left, right = equation.left, equation.right
    if not _has(name, left):
        left, right = right, left
    while True:
        match left:
            case Var():
                return left, right
            case BinOp("+", one, other) if _has(name, one):
                left, right = one, BinOp("-", right, other, span=left.span)
            case BinOp("+", one, other):
                left, right = other, BinOp("-", right, one, span=left.span)
            case BinOp("-", one, other) if _has(name, one):
                left, right = one, BinOp("+", right, other, span=left.span)
            case BinOp("-", one, other):
                left, right = other, BinOp("-", one, right, span=left.span)
            case Const() | Neg() | BinOp() | Call() | Agg():
                return None


def _has(name: str, term: Term) -> bool:
    return any(v.name == name for v in variables(term))
