"""The same program in fewer forms.

    p(T, _) <- q(T, _).                    p(T, _#1) <- q(T, _#2).
    p(T) <- q(T1), r(T2), lgr(T1, T2, T).  p(T) <- q(T1), r(T2), T = max(T1, T2).
    p(T) <- q(T, X), between(X, 1, 5).     p(T) <- q(T, X), X >= 1, X <= 5.
    p(T) <- q(T), not r(T + 5s).           p(T) <- q(T), not (r(_#e1), _#e1 = T + 5s).
    p(T, X) <- q(T, X, X).                 p(T, X) <- q(T, X, _#e1), _#e1 = X.
    p(T) <- q(T), (r(T) ; s(T)).           p(T) <- (q(T), r(T) ; q(T), s(T)).
    p(T) <- q(T), not (r(T) ; s(T)).       p(T) <- q(T), not r(T), not s(T).

States, intervals and windows are goals over events (`intervals`). Rules with a limit are two rules
(`ranked`), and so are those that compute with aggregates (`computed`).
Afterwards a body is a conjunction, or one `Choice` of conjunctions; the arguments of a goal are
constants and different variables; and every `_` has a name of its own. `syntax.ast.branches` gives
the conjunctions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, product
from typing import TypeVar

from attrs import evolve

from streamlog.diagnostics import Diagnostic, finding
from streamlog.rewrite.computed import computed
from streamlog.rewrite.intervals import without_intervals
from streamlog.rewrite.ranked import ranked
from streamlog.syntax.ast import (
    Agg,
    Annotation,
    Atom,
    BinOp,
    Body,
    Call,
    Choice,
    Comparison,
    Const,
    Export,
    Extend,
    Fact,
    Function,
    Literal,
    Module,
    Neg,
    Not,
    Output,
    Query,
    Rule,
    State,
    Statement,
    Stream,
    Table,
    Term,
    Test,
    Use,
    Var,
)
from streamlog.syntax.walk import Node, map_terms, variables, walk

N = TypeVar("N", bound=Node)
MOST_BRANCHES = 64


class _TooManyBranchesError(Exception):
    def __init__(self, where: Literal) -> None:
        self.where = where


def desugar(module: Module, of: Sequence[Statement] = ()) -> tuple[Module, tuple[Diagnostic, ...]]:
    """`of`: the statements of a program whose states those of the module read."""
    statements: list[Statement] = []
    plain, diagnostics = without_intervals(module.statements, of)
    limited, found = ranked(plain)
    written, more = computed(limited)
    diagnostics += [*found, *more]
    for statement in written:
        try:
            statements.append(_statement(statement))
        except _TooManyBranchesError as error:
            diagnostics.append(
                finding(
                    "SL0406",
                    f"the alternatives multiply to more than {MOST_BRANCHES} conjunctions",
                    error.where.span,
                    "this is where they become too many",
                    help="give the alternatives a predicate of their own and call that",
                )
            )
    if statements == list(module.statements):
        return module, tuple(diagnostics)
    return evolve(module, statements=tuple(statements)), tuple(diagnostics)


def printable(node: N) -> N:
    """A statement, or a part of one, with proper names for variables that nobody named.

    p(T) <- q(T), r(_#1), _#1 = T + 5s.
        p(T) <- q(T), r(V1), V1 = T + 5s.
    """
    used = {v.name for v in variables(node)}
    compared = {v for c in walk(node) if isinstance(c, Comparison) for v in variables(c)}
    made = {v: v for v in variables(node) if v.is_anonymous and (v in compared or v.is_shared)}
    names = (name for n in count(1) if (name := f"V{n}") not in used)
    proper = {v: evolve(v, name=next(names)) for v in made}
    if not proper:
        return node
    return map_terms(node, lambda t: proper.get(t, t) if isinstance(t, Var) else t)


def _statement(statement: Statement) -> Statement:
    fresh = (f"_#{n}" for n in count(1))
    match statement:
        case Rule(head, body):
            head = _named_atom(head, fresh)
            return evolve(statement, head=head, body=_in_branches(body, fresh))
        case Query(body):
            return evolve(statement, body=_in_branches(body, fresh))
        case Annotation() | Fact() | Stream() | Table() | Output() | Use() | Function() | Test():
            return statement
        case Export() | Extend():
            return statement
        case State():
            raise AssertionError(statement)  # `without_intervals` left it


def _in_branches(body: Body, fresh: Iterator[str]) -> Body:
    alternatives = _conjunctions(body, fresh)
    if len(alternatives) == 1:
        return alternatives[0]
    return (Choice(tuple(alternatives), span=body[0].span.to(body[-1].span)),)


def _conjunctions(body: Body, fresh: Iterator[str]) -> list[Body]:
    """The disjunctive normal form of a body, each negation already in its own."""
    result: list[Body] = [()]
    for literal in body:
        choices = _alternatives(literal, fresh)
        if len(result) * len(choices) > MOST_BRANCHES:
            raise _TooManyBranchesError(literal)
        result = [head + tail for head, tail in product(result, choices)]
    return result


def _alternatives(literal: Literal, fresh: Iterator[str]) -> list[Body]:
    match literal:
        case Atom("lgr", (first, second, larger)):
            larger_of = Call("max", (first, second), span=literal.span)
            comparison = Comparison("=", larger, larger_of, span=literal.span)
            return _alternatives(comparison, fresh)
        case Atom("between", (value, low, high)):
            least = Comparison(">=", value, low, span=literal.span)
            most = Comparison("<=", value, high, span=literal.span)
            return [(*_alternatives(least, fresh)[0], *_alternatives(most, fresh)[0])]
        case Atom():
            return [_flat_atom(literal, fresh)]
        case Comparison(_, left, right):
            named = (_named(left, fresh), _named(right, fresh))
            return [(evolve(literal, left=named[0], right=named[1]),)]
        case Not(body):
            return [tuple(evolve(literal, body=b) for b in _conjunctions(body, fresh))]
        case Choice(alternatives):
            return [c for branch in alternatives for c in _conjunctions(branch, fresh)]


def _flat_atom(atom: Atom, fresh: Iterator[str]) -> Body:
    """The goal with its expressions, and the repetitions of a variable, moved into equations
    behind it. So nobody who reads a goal by position can miss that two arguments are equal."""
    args: list[Term] = []
    equations: list[Literal] = []
    for arg in atom.args:
        arg = _named(arg, fresh)
        if not isinstance(arg, Var | Const) or (isinstance(arg, Var) and arg in args):
            variable = Var(next(fresh).replace("#", "#e"), span=arg.span)
            equations.append(Comparison("=", variable, arg, span=arg.span))
            arg = variable
        args.append(arg)
    return (evolve(atom, args=tuple(args)), *equations)


def _named_atom(atom: Atom, fresh: Iterator[str]) -> Atom:
    return evolve(atom, args=tuple(_named(arg, fresh) for arg in atom.args))


def _named(term: Term, fresh: Iterator[str]) -> Term:
    match term:
        case Var("_"):
            return evolve(term, name=next(fresh))
        case Var() | Const():
            return term
        case Neg(operand):
            return evolve(term, operand=_named(operand, fresh))
        case BinOp(_, left, right):
            return evolve(term, left=_named(left, fresh), right=_named(right, fresh))
        case Call(_, args):
            return evolve(term, args=tuple(_named(arg, fresh) for arg in args))
        case Agg(_, arg, by):
            named = (None if part is None else _named(part, fresh) for part in (arg, by))
            return evolve(term, arg=next(named), by=next(named))
