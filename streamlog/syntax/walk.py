"""Going through a tree: what is in it, and the same tree with some nodes replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar, cast

from attrs import evolve

from streamlog.syntax import ast
from streamlog.syntax.ast import (
    Agg,
    Atom,
    BinOp,
    Body,
    Call,
    Choice,
    Comparison,
    Const,
    Literal,
    Neg,
    Not,
    Term,
    Var,
)

Node: TypeAlias = (
    ast.Term
    | ast.Literal
    | ast.When
    | ast.Statement
    | ast.Step
    | ast.Limit
    | ast.Order
    | ast.Column
    | ast.Option
    | ast.Timeline
    | ast.PredName
    | ast.Module
)
N = TypeVar("N", bound=Node)

# The fields that hold nodes, in the order of the text. A field is a node, None, a tuple of nodes
# or (the branches of a choice) a tuple of those.
_FIELDS: dict[type, tuple[str, ...]] = {
    Neg: ("operand",),
    BinOp: ("left", "right"),
    Call: ("args",),
    Agg: ("arg", "by"),
    ast.When: ("times",),
    Atom: ("args", "when"),
    Comparison: ("left", "right"),
    Not: ("body",),
    Choice: ("branches",),
    ast.Order: ("term",),
    ast.Limit: ("by", "per"),
    ast.Rule: ("head", "body", "limit", "wanted"),
    ast.Fact: ("atom",),
    ast.Query: ("body",),
    ast.Column: ("low", "high"),
    ast.Option: ("value",),
    ast.Timeline: ("options",),
    ast.Stream: ("columns", "options", "progress", "where"),
    ast.Table: ("columns", "options", "where"),
    ast.State: ("head", "body", "until", "most"),
    ast.Output: ("preds",),
    ast.Export: ("preds",),
    ast.Extend: ("preds",),
    ast.Arrive: ("atom",),
    ast.Given: ("pred",),
    ast.Advance: ("time",),
    ast.Expect: ("atoms",),
    ast.ExpectNone: ("pred",),
    ast.ExpectFrom: ("pred",),
    ast.Test: ("steps",),
    ast.Module: ("statements",),
}
_TERMS = (Var, Const, Neg, BinOp, Call, Agg)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below a node, in the order of the text."""
    found: list[Node] = []
    for name in _FIELDS.get(type(node), ()):
        value = getattr(node, name)
        if not isinstance(value, tuple):
            if value is not None:
                found.append(value)
        elif isinstance(node, Choice):
            for branch in value:
                found.extend(branch)
        else:
            found.extend(value)
    return tuple(found)


def walk(node: Node | Iterable[Node]) -> Iterator[Node]:
    """The node (or nodes) and everything below, each before its children."""
    stack: list[Node] = list(node)[::-1] if isinstance(node, Iterable) else [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))


def variables(node: Node | Iterable[Node]) -> Iterator[Var]:
    """Every occurrence of a variable, in the order of the text, those under `not` included."""
    return (n for n in walk(node) if isinstance(n, Var))


def atoms(body: Literal | Body) -> Iterator[Atom]:
    """Every goal of a body that calls a predicate, at any depth."""
    return (n for n in walk(body) if isinstance(n, Atom))


def depth(node: Node) -> int:
    """The number of levels of a tree, found without recursion."""
    deepest, stack = 0, [(node, 1)]
    while stack:
        top, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in children(top))
    return deepest


def transform(node: N, fn: Callable[[Node], Node]) -> N:
    """`fn` applied to every node, children first; the same object when nothing changed."""
    return cast(N, _transform(node, fn))


def transform_body(body: Body, fn: Callable[[Node], Node]) -> Body:
    return cast(Body, _transform(body, fn))


def map_terms(node: N, fn: Callable[[Term], Term]) -> N:
    """`fn` applied to every term, inner ones first; the same object when nothing changed."""
    return transform(node, lambda n: fn(n) if isinstance(n, _TERMS) else n)


def map_body_terms(body: Body, fn: Callable[[Term], Term]) -> Body:
    return transform_body(body, lambda n: fn(n) if isinstance(n, _TERMS) else n)


def _transform(value: Any, fn: Callable[[Node], Node]) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple):
        new = tuple(_transform(item, fn) for item in value)
        return value if all(a is b for a, b in zip(new, value, strict=True)) else new
    changes = {}
    for name in _FIELDS.get(type(value), ()):
        old = getattr(value, name)
        changed = _transform(old, fn)
        if changed is not old:
            changes[name] = changed
    match changes.get("operand"):
        case Const(int() | float() as number, type_) if not isinstance(number, bool):
            return fn(Const(-number, type_, span=value.span))  # as it is when it is read
        case _:
            return fn(evolve(value, **changes) if changes else value)
