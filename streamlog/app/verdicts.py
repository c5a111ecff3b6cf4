"""What tests found, as people read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.text import Text

from streamlog.app.formats import count
from streamlog.app.render import PLAIN_WIDTH, render_diagnostic, render_places
from streamlog.app.ruletest import Problem, Results, Verdict
from streamlog.app.snippet import visible, wrap
from streamlog.diagnostics import Diagnostic, Label

PASSED, FAILED, NOTE = "green", "bold red", "blue"
MOST_ROWS = 20  # of one kind; a diff that nobody reads helps nobody


def render_problems(verdict: Verdict, width: int = PLAIN_WIDTH) -> Text:
    """Everything that a test found wrong."""
    return Text("\n\n").join(_problem(p, width) for p in verdict.problems)


def _problem(problem: Problem, width: int) -> Text:
    message = wrap(visible(problem.message), width)
    lines = [Text(line, "bold") for line in message]
    placed, digits = render_places([Label(problem.span)], width, FAILED)
    lines += placed
    margin = " " * (digits + 1)
    lists = (
        ("missing", "-", FAILED, problem.missing),
        ("unexpected", "+", FAILED, problem.unexpected),
        ("late", "!", FAILED, problem.late),
    )
    for title, sign, style, rows in lists:
        if rows:
            lines.append(Text.assemble(margin, ("= ", NOTE), (f"{title}:", "bold")))
            lines += _rows(rows, f"{margin}  {sign} ", style)
    if problem.order:
        title = "the shortest order found that differs:"
        lines.append(Text.assemble(margin, ("= ", NOTE), (title, "bold")))
        lines += _rows(problem.order, f"{margin}    ", "", most=10 * MOST_ROWS)
    for note in problem.notes:
        first, *more = wrap(visible(note), width - digits - 9)
        lines.append(Text.assemble(margin, ("= ", NOTE), ("note: ", "bold"), first))
        lines += [Text(f"{margin}        {line}") for line in more]
    while not lines[-1].plain.strip(" |"):
        lines.pop()
    return Text("\n").join(lines)


def _rows(rows: Sequence[str], lead: str, style: str, most: int = MOST_ROWS) -> Iterable[Text]:
    shown = rows if len(rows) <= most + 1 else rows[:most]
    for row in shown:
        yield Text(lead + visible(row), style)
    if len(shown) < len(rows):
        yield Text(f"{' ' * len(lead)}… and {len(rows) - len(shown)} more", style)


def render_refusal(refusal: Iterable[Diagnostic], width: int = PLAIN_WIDTH) -> Text:
    """Why the tests of a file cannot run."""
    return Text("\n\n").join(render_diagnostic(d, width) for d in refusal)


def render_counts(results: Sequence[Results]) -> Text:
    """`12 passed, 1 failed`."""
    counts = Counter(v.passed for r in results for v in r.verdicts)
    refused = sum(bool(r.refusal) for r in results)
    parts = [
        (counts[True], f"{counts[True]} passed", PASSED),
        (counts[False], f"{counts[False]} failed", FAILED),
        (refused, f"{count(refused, 'file')} refused", FAILED),
    ]
    return Text(", ").join(Text(said, style) for number, said, style in parts if number)
