"""Warnings without those that a comment allows; and a word about comments that allow nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve

from streamlog.codes import SEVERITIES, Severity
from streamlog.diagnostics import Diagnostic, Source, Span, did_you_mean, finding
from streamlog.syntax.ast import Rule, Statement, Suppression
from streamlog.syntax.metadata import metadata

UNUSED = "SL0702"


def suppressed(
    diagnostics: Iterable[Diagnostic],
    suppressions: Sequence[Suppression],
    judged: Source | None,
) -> tuple[tuple[Diagnostic, ...], tuple[Span, ...]]:
    """What is left, and the comments that were of use. That there is nothing to allow is said of
    the comments of one file: a file that is used by others may need its own for some of them."""
    left: list[Diagnostic] = []
    used: set[tuple[Suppression, str]] = set()
    for diagnostic in diagnostics:
        allowing = {
            (s, diagnostic.code)
            for s in suppressions
            if diagnostic.severity is Severity.WARNING
            and diagnostic.code in s.codes
            and s.statement is not None
            and s.statement.encloses(diagnostic.span)
        }
        used |= allowing
        left += [diagnostic] * (not allowing)
    for suppression in suppressions:
        if suppression.codes and not suppression.reason:
            help = f"write `% streamlog: allow {', '.join(suppression.codes)}: …` with the reason"
            message = "nothing says why this is allowed"
            left.append(finding("SL0703", message, suppression.span, help=help))
        left += _without_effect(suppression, used, suppression.span.source == judged)
    return tuple(left), tuple(dict.fromkeys(s.span for s, _ in used))


def _without_effect(
    suppression: Suppression, used: set[tuple[Suppression, str]], is_judged: bool
) -> Iterator[Diagnostic]:
    span = suppression.span
    if not suppression.codes:
        help = "write `% streamlog: allow SL0502: why it does not matter here`"
        yield finding(UNUSED, "this suppression cannot be read", span, help=help)
    for code in suppression.codes:
        if code not in SEVERITIES:
            near = did_you_mean(code, SEVERITIES)
            hint = (f"did you mean {near}?",) if near else ()
            yield finding(UNUSED, f"there is no code {code}", span, help=hint)
        elif SEVERITIES[code] is not Severity.WARNING or code == UNUSED:
            yield finding(UNUSED, f"{code} cannot be allowed", span, help="correct what it reports")
        elif is_judged and (suppression, code) not in used:
            yield finding(
                UNUSED,
                f"there is no {code} here to allow",
                span,
                help="drop this comment, or move it above the statement that it is for",
            )


def with_metadata(
    diagnostics: Iterable[Diagnostic], statements: Iterable[Statement]
) -> Iterator[Diagnostic]:
    """With what the annotations say of the rule that a diagnostic is about."""
    rules = [s for s in statements if isinstance(s, Rule) and s.annotations]
    for diagnostic in diagnostics:
        about = next((r for r in rules if r.span.encloses(diagnostic.span)), None)
        yield evolve(diagnostic, metadata=metadata(about)) if about else diagnostic
