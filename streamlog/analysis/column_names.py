"""How to speak of each predicate's columns: in messages, in files and in tables of answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from streamlog.syntax.ast import Agg, Atom, BinOp, Call, Const, Neg, Rule, Term, Var
from streamlog.syntax.walk import atoms, map_terms

if TYPE_CHECKING:
    from streamlog.analysis.schema import Predicate, Schema

_OPERATORS = {
    "+": "plus",
    "-": "minus",
    "*": "times",
    "/": "per",
    "//": "div",
    "%": "mod",
    "++": "and",
}
# A longer name says less than the rule does.
_MOST_LETTERS = 30
_NO_LETTER = re.compile(r"\W+")


def column_names(schema: Schema) -> dict[str, tuple[str, ...]]:
    """As declared, or as `output` names them; else as the first rule calls them that has a
    variable for each; else the columns of a derived predicate have names made from its heads, and
    those of an input are numbered.

    `revenue(floor(T, 1h), C, sum(A), count()) <- …` has the columns `T`, `C`, `sum_a` and `count`.
    """
    result: dict[str, tuple[str, ...]] = {}
    for predicate in schema.predicates.values():
        if predicate.declaration:
            result[predicate.name] = tuple(c.name for c in predicate.columns)
    for output in schema.outputs:
        if output.columns:
            result.setdefault(output.name, output.columns)
    heads: dict[str, list[Atom]] = {}
    parts = schema.parts

    def name(atom: Atom) -> None:
        # The best of some values is one of them; a count is not.
        args = [a.arg if isinstance(a, Agg) and a.kind.best else a for a in atom.args]
        names = [a.name for a in args if isinstance(a, Var) and not a.is_anonymous]
        # Not every file format tells `Ab` from `AB`.
        if atom.pred not in parts and len({n.casefold() for n in names}) == atom.arity:
            result.setdefault(atom.pred, tuple(names))

    for rule in schema.rules:
        if rule.is_auxiliary:  # its readers are made too, and call it by what they are about
            name(rule.head)
    for rule in schema.rules:
        head = _as_written(rule, parts)
        heads.setdefault(head.pred, []).append(head)
        for atom in (head, *atoms(rule.body)):
            name(atom)
    for predicate in schema.predicates.values():
        if predicate.name not in result:
            of_heads = heads.get(predicate.name)
            names = _made(predicate, of_heads) if of_heads else _numbered(predicate)
            result[predicate.name] = tuple(names)
    return result


def _as_written(rule: Rule, parts: Mapping[str, Rule]) -> Atom:
    """The head with the terms that stand for the variables of a rule made from a part of it."""
    match rule.body:
        case (Atom(pred, args),) if pred in parts:
            terms = dict(zip(args, _as_written(parts[pred], parts).args, strict=True))
            return map_terms(rule.head, lambda t: terms.get(t, t) if isinstance(t, Var) else t)
        case _:
            return rule.head


def _numbered(predicate: Predicate) -> list[str]:
    first = "T" if predicate.temporal else "c0"
    return [first, *(f"c{i}" for i in range(1, predicate.arity))][: predicate.arity]


def _made(predicate: Predicate, heads: Sequence[Atom]) -> list[str]:
    """The first variable of some head, else the first term of which a name can be made."""
    variables, stems = [], []
    for position in range(predicate.arity):
        terms = [head.args[position] for head in heads]
        variables.append(next(filter(None, map(_variable, terms)), None))
        is_stamp = predicate.temporal and position == 0
        made = "T" if is_stamp else next(filter(None, map(name_of, terms)), "value")
        stems.append(variables[-1] or made)
    # Those that are called so by a rule go first.
    order = sorted(range(predicate.arity), key=lambda i: variables[i] is None)
    names = dict(zip(order, _unique(stems[i] for i in order), strict=True))
    return [names[i] for i in range(predicate.arity)]


def _unique(stems: Iterable[str]) -> list[str]:
    taken: dict[str, str] = {}
    for stem in stems:
        name, number = stem, 2
        while name.casefold() in taken:
            name, number = f"{stem}_{number}", number + 1
        taken[name.casefold()] = name
    return list(taken.values())


def _variable(term: Term) -> str | None:
    return term.name if isinstance(term, Var) and not term.is_anonymous else None


def name_of(term: Term) -> str | None:
    """A name made of what a term is made of."""
    words = _words(term)
    if isinstance(term, Const) or words is None:
        return None
    name = _NO_LETTER.sub("_", "_".join(words)).strip("_")
    is_name = name[:1].isalpha() and len(name) <= _MOST_LETTERS
    return name.lower() if is_name else None


def _words(term: Term) -> list[str] | None:
    match term:
        case Var(name):
            return None if term.is_anonymous else [name]
        case Const(value):
            return [str(value)]
        case Agg(func, None):
            return [func]
        case Agg(func, arg):
            inner = _words(arg) if arg is not None else []
            return [func, *(inner or [])]
        case Neg(operand):
            return _joined(["minus"], _words(operand))
        case BinOp(op, left, right):
            word = _OPERATORS.get(op)
            return _joined(_words(left), [word] if word else None, _words(right))
        case Call(name, args):
            return _joined([name], *(_words(a) for a in args if not isinstance(a, Const)))


def _joined(*parts: list[str] | None) -> list[str] | None:
    known = [part for part in parts if part is not None]
    return [word for part in known for word in part] if len(known) == len(parts) else None
