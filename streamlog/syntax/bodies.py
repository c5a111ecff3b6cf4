"""Goals and the conjunctions and alternatives they make."""

from __future__ import annotations

from typing import Any, TypeAlias

from attrs import field, frozen

from streamlog.diagnostics import Span
from streamlog.syntax.terms import COMPARISONS, Const, Term, Value
from streamlog.syntax.terms import place as _span


def numbered() -> Any:
    """Which one it is of a program (`rewrite.number`); 0: not one of a program yet."""
    return field(default=0, eq=False, repr=False, kw_only=True)


@frozen
class When:
    """What a goal says of time behind it: `at T`, `from S`, `from S to E`, `over [S, E]`.
    Desugaring leaves none of them."""

    word: str
    times: tuple[Term, ...]
    opens: str = "["  # of a window; a parenthesis leaves the end out
    closes: str = "]"
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if len(self.times) != {AT: 1, FROM: 1, FROM_TO: 2, OVER: 2}[self.word]:
            raise ValueError(f"{self.times} behind `{self.word}`")


AT, FROM, FROM_TO, OVER = "at", "from", "from to", "over"
# Goals that are written between their terms have names that nobody can write.
EVERY = "every ()"  # `T every 1d align 12h`
PAIRS = "() "  # `(S1, E1) overlaps (S2, E2)` is called `() overlaps`


@frozen
class Atom:
    """A predicate applied to terms: a goal, a head or a fact."""

    pred: str
    args: tuple[Term, ...]
    when: When | None = None
    span: Span = _span()
    number: int = numbered()

    @property
    def arity(self) -> int:
        return len(self.args)

    @property
    def constants(self) -> tuple[Value, ...]:
        """The values of those arguments that are constants."""
        return tuple(arg.value for arg in self.args if isinstance(arg, Const))


@frozen
class Comparison:
    op: str
    left: Term
    right: Term
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if self.op not in COMPARISONS:
            raise ValueError(f"unknown comparison {self.op}")


@frozen
class Not:
    """`not goal` or `not (goal, goal, …)`: no assignment of the local variables satisfies it."""

    body: Body
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if not self.body:
            raise ValueError("a negation of nothing")


@frozen
class Choice:
    """`(body ; body ; …)`."""

    branches: tuple[Body, ...]
    span: Span = _span()

    def __attrs_post_init__(self) -> None:
        if len(self.branches) < 2 or not all(self.branches):
            raise ValueError("a choice has at least two branches, none of them empty")


Literal: TypeAlias = Atom | Comparison | Not | Choice
Body: TypeAlias = tuple[Literal, ...]


def branches(body: Body) -> tuple[Body, ...]:
    """The alternatives of a desugared body: conjunctions without `Choice`."""
    match body:
        case (Choice(alternatives),):
            return alternatives
        case _:
            return (body,)
