"""The predicates that outputs, exports and tests mention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlog.analysis.builtins import TIMESTAMPS
from streamlog.analysis.facts import constant_for
from streamlog.codes import SEVERITIES
from streamlog.diagnostics import Diagnostic, Span, did_you_mean, finding
from streamlog.syntax.ast import (
    Advance,
    Arrive,
    Atom,
    Const,
    Expect,
    ExpectFrom,
    ExpectNone,
    Given,
    PredName,
    Rejected,
    Test,
)


def check_names(
    named: Iterable[PredName], tests: Iterable[Test], arities: dict[str, tuple[int, Span]]
) -> Iterator[Diagnostic]:
    def check(name: str, span: Span) -> Iterator[Diagnostic]:
        if name not in arities:
            near = did_you_mean(name, arities)
            yield finding(
                "SL0204",
                f"there is no predicate `{name}` in this program",
                span,
                help=f"did you mean `{near}`?" if near else (),
            )

    for pred in named:
        yield from check(pred.name, pred.span)
    for test in tests:
        for step in test.steps:
            match step:
                case Given(pred) | ExpectNone(pred) | ExpectFrom(pred):
                    yield from check(pred.name, pred.span)
                case Expect(atoms):
                    for atom in atoms:
                        yield from check(atom.pred, atom.span)
                        yield from _arity_in_test(atom, arities)
                case Arrive(atom, fate):
                    yield from check(atom.pred, atom.span)
                    if fate != "rejected":
                        yield from _arity_in_test(atom, arities)
                case Advance(_, str(name)) if _stream(name, arities) is None:
                    yield from check(name, step.span)
                case Advance(time) if not isinstance(time, Const) or time.type not in TIMESTAMPS:
                    yield finding(
                        "SL0601",
                        "`advance` needs a timestamp",
                        time.span,
                        help="write the time itself, as in `advance @2026-11-15T08:00:00Z` or, "
                        "on logical time, `advance 5`",
                    )
                case Rejected(code) if code not in SEVERITIES:
                    near = did_you_mean(code, SEVERITIES)
                    yield finding(
                        "SL0601",
                        f"there is no code `{code}`",
                        step.span,
                        "no program can be refused with it",
                        help=f"did you mean `{near}`?" if near else (),
                    )
                case _:
                    pass


def _stream(timeline: str, arities: dict[str, tuple[int, Span]]) -> str | None:
    """`report`, also of `report.app`."""
    names = (timeline, timeline.rpartition(".")[0])
    return next((name for name in names if name in arities), None)


def _arity_in_test(atom: Atom, arities: dict[str, tuple[int, Span]]) -> Iterator[Diagnostic]:
    arity, span = arities.get(atom.pred, (atom.arity, atom.span))
    if atom.arity != arity:
        yield wrong_arity(atom, arity, span)
    for arg in atom.args:
        if not isinstance(arg, Const):
            yield finding(
                "SL0601",
                "a test speaks of constants only",
                arg.span,
                "not a constant",
                help=constant_for(arg),
            )


def wrong_arity(atom: Atom, arity: int, settled: Span) -> Diagnostic:
    return finding(
        "SL0201",
        f"`{atom.pred}` has {arguments(arity)}, here it has {atom.arity}",
        atom.span,
        f"{arguments(atom.arity)} here",
        related=[(settled, f"{arguments(arity)} here")],
        help="give it the same number of arguments everywhere; in a rule, `_` stands for one "
        "that does not matter",
    )


def arguments(count: int) -> str:
    return f"{count} argument" if count == 1 else f"{count} arguments"
