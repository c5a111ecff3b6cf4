"""Names for the predicates and variables of rules that are made from parts of written ones."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, count

from streamlog.analysis.column_names import name_of
from streamlog.syntax.ast import Agg, Atom, Statement, Stream, Table, Term, Var
from streamlog.syntax.walk import walk


def predicates(statements: Iterable[Statement]) -> set[str]:
    """The names that are taken."""
    statements = list(statements)
    atoms = (n for s in statements for n in walk(s) if isinstance(n, Atom))
    return {a.pred for a in atoms} | {s.name for s in statements if isinstance(s, Stream | Table)}


class Names:
    """Variables of one rule that say what they stand for."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken

    def variable(self, term: Term, position: int) -> Var:
        is_first = position == 0 and not isinstance(term, Agg)
        name = "T" if is_first else (name_of(term) or "").capitalize()
        name = name if name[:1].isupper() else "Value"
        return Var(free_name(name, self.taken), span=term.span)


def free_name(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken; then it is."""
    numbered = (f"{name}_{number}" for number in count(2))
    free = next(n for n in chain([name], numbered) if n not in taken)
    taken.add(free)
    return free
