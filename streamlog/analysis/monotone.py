"""Which way a term moves when a variable rises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from streamlog.syntax.ast import Agg, BinOp, Call, Comparison, Const, Neg, Term, Var
from streamlog.syntax.walk import variables

# 1 rises or stays, -1 falls or stays, 0 has nothing to do with it, None cannot be told.
Direction: TypeAlias = int | None


def direction(term: Term, known: Mapping[str, Direction]) -> Direction:
    """How a term moves when variables move as `known` says; all others stay."""
    match term:
        case Var(name):
            return known.get(name, 0)
        case Neg(operand):
            return _turned(direction(operand, known))
        case BinOp("+", left, right):
            return _together((direction(left, known), direction(right, known)))
        case BinOp("-", left, right):
            return _together((direction(left, known), _turned(direction(right, known))))
        case BinOp("*", factor, Const(value)) | BinOp("*", Const(value), factor) if not isinstance(
            value, str
        ):
            moves = direction(factor, known)
            return moves if value >= 0 else _turned(moves)
        case Call("max" | "min", args):
            return _together(direction(arg, known) for arg in args)
        case Const() | BinOp() | Call() | Agg():
            return None if any(v.name in known for v in variables(term)) else 0


def better(test: Comparison, known: Mapping[str, Direction]) -> Direction:
    """Which way the variables must move so that a test which holds goes on holding."""
    left, right = direction(test.left, known), direction(test.right, known)
    apart = _together((left, _turned(right)))
    match test.op:
        case "<" | "<=":
            return _turned(apart)
        case ">" | ">=":
            return apart
        case _:
            return 0 if left == 0 == right else None


def spread(names: Iterable[str], definitions: Mapping[str, Term]) -> dict[str, Direction]:
    """How variables move that are defined, directly or not, by some that rise."""
    known: dict[str, Direction] = dict.fromkeys(names, 1)
    touched = set(known)
    while more := {
        name
        for name, term in definitions.items()
        if name not in touched and any(v.name in touched for v in variables(term))
    }:
        touched |= more
    while waiting := touched - known.keys():
        ready = {
            name: direction(definitions[name], known)
            for name in waiting
            if not any(v.name in waiting for v in variables(definitions[name]))
        }
        known |= ready or dict.fromkeys(waiting)  # they define each other
    return known


def _turned(moves: Direction) -> Direction:
    return None if moves is None else -moves


def _together(parts: Iterable[Direction]) -> Direction:
    moves = {part for part in parts if part != 0}
    if len(moves) > 1:
        return None
    return moves.pop() if moves else 0
