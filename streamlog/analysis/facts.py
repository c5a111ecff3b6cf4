"""What is wrong with facts: variables in them, and values that their columns do not take."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from streamlog.analysis.slips import slips
from streamlog.diagnostics import Diagnostic, finding
from streamlog.syntax.ast import (
    FIRST_INSTANT,
    LAST_INSTANT,
    LOGICAL_TIME,
    Atom,
    Const,
    Fact,
    Stream,
    Table,
    Term,
    Type,
    Var,
)
from streamlog.syntax.pretty import pretty


def not_of_constants(atom: Atom) -> Iterator[Diagnostic]:
    wrong = [arg for arg in atom.args if not isinstance(arg, Const)]
    if wrong:
        asked = f"a question begins with `?`: `?{pretty(atom)}.`"
        yield finding(
            "SL0305",
            f"the fact `{atom.pred}` is not made of constants alone",
            wrong[0].span,
            "not a constant",
            related=[(arg.span, "nor is this") for arg in wrong[1:]],
            help=(*([asked] if _is_question(wrong) else []), constant_for(wrong[0])),
        )


def _is_question(args: Iterable[Term]) -> bool:
    return all(isinstance(arg, Var) for arg in args)


def constant_for(arg: Term) -> str:
    if slip := slips([arg.span]):
        return slip[0]
    if isinstance(arg, Var) and arg.name.strip("_"):
        return (
            "a word that starts with a capital or `_` is a variable; if it is a text, write "
            f'`"{arg.name}"`'
        )
    return "write the value itself; only a rule with a body can compute one"


def outside(facts: Iterable[Fact], declared: dict[str, Stream | Table]) -> Iterator[Diagnostic]:
    """Facts that lie outside the range of their column, on which the contract relies."""
    for fact in facts:
        declaration = declared.get(fact.atom.pred)
        for arg, column in zip(
            fact.atom.args, declaration.columns if declaration else (), strict=False
        ):
            if not isinstance(arg, Const) or column.low is None or column.high is None:
                continue
            low, value, high = column.low.value, arg.value, column.high.value
            if isinstance(value, str) or isinstance(low, str) or isinstance(high, str):
                continue
            if not low <= value <= high:
                yield finding(
                    "SL0301",
                    f"{pretty(arg)} lies outside the declared range of `{column.name}`",
                    arg.span,
                    related=[(column.span, "declared here")],
                    help="widen the range, or correct the fact",
                )


def beyond_time(facts: Iterable[Fact], temporal: Collection[str]) -> Iterator[Diagnostic]:
    for fact in facts:
        match fact.atom:
            case Atom(pred, (Const(int(time), Type.INT) as arg, *_)) if pred in temporal:
                if not FIRST_INSTANT <= time <= LAST_INSTANT:
                    yield finding(
                        "SL0301",
                        f"{time} is not a valid timestamp: {LOGICAL_TIME}",
                        arg.span,
                        help="correct the fact, or count in larger steps",
                    )
