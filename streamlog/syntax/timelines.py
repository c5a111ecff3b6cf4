"""The columns on which a stream makes progress: `progress app slack 5s, sys`."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from streamlog.diagnostics import Span, did_you_mean, finding
from streamlog.syntax.ast import ARRIVES_WITHIN, Column, Option, Timeline, Type
from streamlog.syntax.tokens import Refused

# What is said of time, and so of a timeline; the other options are the stream's.
OF_A_TIMELINE = ("slack", "idle", "horizon", ARRIVES_WITHIN)


def of_its_own(timeline: Timeline) -> Timeline:
    """Without the stream's options."""
    return evolve(timeline, options=tuple(o for o in timeline.options if o.name in OF_A_TIMELINE))


def check_timelines(
    of_stream: bool,
    timelines: Sequence[Timeline],
    columns: Sequence[Column],
    options: Sequence[Option],
) -> None:
    """Raises `Refused` if a declaration has a `progress` that cannot be."""
    if not timelines:
        return
    if not of_stream:
        raise _refused(
            "a table makes no progress",
            timelines[0].span,
            "for timestamped rows declare a stream",
        )
    known = {column.name: column for column in columns}
    places: dict[str, Span] = {}
    for timeline in timelines:
        name, span = timeline.column, timeline.span
        if name not in known:
            near = did_you_mean(name, known)
            help = f"did you mean `{near}`?" if near else "name one of its columns"
            raise _refused(f"the stream has no column `{name}`", span, help)
        if name in places:
            message = f"`{name}` makes progress twice"
            raise _refused(message, span, "name each column once", (places[name], "first here"))
        places[name] = span
        _check_column(known[name], timeline)
    first = columns[0]
    if first.name not in places:
        raise _refused(
            f"`{first.name}`, the first column, makes no progress",
            timelines[0].span,
            f"a stream's first column is its timestamp: write `progress {first.name}, …`, or "
            f"declare `{timelines[0].column}` first",
        )
    for option in options:
        if option.name in OF_A_TIMELINE:
            raise _refused(
                f"`{option.name}` is said of no column",
                option.span,
                f"write it behind one, as in `progress {first.name} {option.span.text}`",
            )
    for timeline in timelines:
        for option in timeline.options:
            if option.name == "idle" and timeline.column != first.name:
                raise _refused(
                    "only the first column can be idle",
                    option.span,
                    "`idle` compares the first columns of streams with each other; for a time of "
                    f"the clock write `{ARRIVES_WITHIN} {option.span.text[5:]}`",
                )


def check_arrivals(
    of_stream: bool,
    columns: Sequence[Column],
    timelines: Sequence[Timeline],
    options: Sequence[Option],
) -> None:
    """Raises `Refused` if a declaration says of a time of arrival what cannot be."""
    arrivals = [column for column in columns if column.is_arrival]
    if not arrivals:
        return
    first, *more = arrivals
    if not of_stream:
        message, help = "the rows of a table do not arrive", "for rows that come declare a stream"
        raise _refused(message, first.span, help)
    if more:
        message = "a row arrives once"
        raise _refused(message, more[0].span, "declare one `arrival`", (first.span, "the first"))
    said = [o for t in timelines if t.column == first.name for o in t.options]
    said += options if not timelines and columns[0] is first else []
    for option in said:
        if option.name in OF_A_TIMELINE:
            raise _refused(
                f"`{option.name}` says nothing of `{first.name}`: rows are stamped in order, by "
                "the clock",
                option.span,
                f"leave out `{option.name}`",
                (first.span, "declared here"),
            )


def _check_column(column: Column, timeline: Timeline) -> None:
    if column.type not in (Type.TIME, Type.INT):
        found = "has no type" if column.type is None else f"is of type {column.type}"
        raise _refused(
            f"`{column.name}` {found}, and cannot make progress",
            timeline.span,
            f"declare it as a time: `{column.name}: time`",
            (column.span, "declared here"),
        )
    if column.optional:
        raise _refused(
            f"`{column.name}` makes progress, so it cannot be missing",
            column.span,
            "drop the `?` after its type",
        )


def _refused(
    message: str, span: Span, help: str, related: tuple[Span, str] | None = None
) -> Refused:
    others = (related,) if related else ()
    return Refused(finding("SL0105", message, span, related=others, help=(help,)))
