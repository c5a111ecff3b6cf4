"""Comparisons of a timestamp as bounds of it."""

from __future__ import annotations

from collections.abc import Set

from streamlog.syntax.ast import Agg, BinOp, Call, Comparison, Const, Literal, Neg, Term, Type, Var
from streamlog.syntax.walk import variables

# `V op e` bounds V: which side, and how far beside e.
_BOUNDS = {"<": ("high", -1), "<=": ("high", 0), ">": ("low", 1), ">=": ("low", 0)}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def time_bound(literal: Literal, time: Var, known: Set[str]) -> tuple[str, Term] | None:
    """A comparison of the timestamp with something known, as a bound that belongs to it."""
    if not isinstance(literal, Comparison) or literal.op not in _BOUNDS:
        return None
    for op, side, other in (
        (literal.op, literal.left, literal.right),
        (_MIRRORED[literal.op], literal.right, literal.left),
    ):
        if {v.name for v in variables(other)} <= known and (
            bound := _alone(time, side, other)
        ) is not None:
            which, beside = _BOUNDS[op]
            if beside == 0:
                return which, bound
            one = Const(1, Type.INT, span=literal.span)
            return which, BinOp("+" if beside > 0 else "-", bound, one, span=literal.span)
    return None


def _alone(time: Var, side: Term, other: Term) -> Term | None:
    """The other side, when the timestamp stands alone on this one: `T + 5 <= U` is `T <= U - 5`."""
    match side:
        case Var() if side == time:
            return other
        case BinOp("+" | "-" as op, Var() as var, Const(int()) as distance) if var == time:
            return BinOp("-" if op == "+" else "+", other, distance, span=side.span)
        case BinOp("+", Const(int()) as distance, Var() as var) if var == time:
            return BinOp("-", other, distance, span=side.span)
        case Const() | Neg() | BinOp() | Call() | Agg() | Var():
            return None


def distance(term: Term, time: Var) -> int | None:
    """How far a bound lies from a timestamp, if it lies at a fixed distance."""
    match term:
        case Var() if term == time:
            return 0
        case BinOp("+" | "-" as op, inner, Const(int() as by)):
            before = distance(inner, time)
            return None if before is None else before + (by if op == "+" else -by)
        case _:
            return None
