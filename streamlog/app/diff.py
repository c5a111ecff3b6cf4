"""`streamlog diff`: what a change of programs changes for those who wait for answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from streamlog.app.inputs import batch_option

if TYPE_CHECKING:
    from streamlog.analysis.contract import PredicateContract
    from streamlog.app.comparison import Comparison, Row

_HEADINGS = ("predicate", "change", "before", "after", "because of")


@click.command("diff")
@click.argument("old")
@click.argument("new")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "markdown", "json"]),
    default="table",
    show_default=True,
    help="A table for people, Markdown for pull requests, or JSON for programs.",
)
@batch_option
@click.pass_context
def command(ctx: click.Context, /, old: str, new: str, form: str, batch: bool) -> None:
    """Compare two versions of programs.

    What is compared is their contracts, and what their rules mean. OLD and NEW are files, or
    folders (all .slog files below them), or these at a revision of git, as REVISION:PATH.
    Exit code 1 means that something is worse: an answer comes later, is released only when
    its instant closes, or is gone; more is kept; or a program is refused.

    \b
    streamlog diff main:rules rules
    streamlog diff before.slog after.slog
    streamlog diff --format markdown HEAD~1:rules/airport rules/airport
    """
    from streamlog.app.comparison import compare
    from streamlog.app.revisions import side
    from streamlog.compiler import Mode

    mode = Mode.BATCH if batch else Mode.STREAM
    with side(old) as before, side(new) as after:
        if before.path.is_dir() != after.path.is_dir():
            raise click.UsageError("a file and a folder cannot be compared")
        olds, news = before.programs(), after.programs()
        shown = (before.shown, after.shown)
        found = [
            compare(place or new, olds.get(place), news.get(place), shown, mode)
            for place in sorted({*olds, *news})
        ]
    click.echo({"table": _table, "markdown": _markdown, "json": _json}[form](found))
    ctx.exit(any(c.worse for c in found))


def _counts(found: Sequence[Comparison]) -> str:
    """`compared 3 programs: 2 changes, 1 of them worse`."""
    from streamlog.app.formats import count

    changes = [row for c in found for row in c.rows]
    worse = sum(c.effect.value == "worse" for c in changes)
    said = "no difference" if not changes else count(len(changes), "change")
    return f"compared {count(len(found), 'program')}: {said}" + (
        f", {worse:,} of them worse" if worse else ", nothing worse" if changes else ""
    )


def _cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """A predicate is named once for all its changes."""
    cells: list[tuple[str, ...]] = []
    last = None
    for row in rows:
        name = "" if row.predicate == last else row.predicate
        last = row.predicate
        # The name of the file is enough below the name of the program.
        reasons = [place.rsplit("/", 1)[-1] for place in row.places]
        reasons += [f"reads {name}" for name in row.through]
        cells.append((name, row.change, row.before, row.after, ", ".join(reasons)))
    return cells


def _table(found: Sequence[Comparison]) -> str:
    from rich.text import Text

    from streamlog.app.render import console
    from streamlog.app.tables import flat, plain_table

    out = console()
    parts: list[str] = []
    for comparison in (c for c in found if c.rows):
        table = plain_table(*_HEADINGS)
        for cells in _cells(comparison.rows):
            table.add_row(*map(Text, cells))
        parts.append(f"{comparison.path}\n{flat(table, out.width).plain}")
    return "\n\n".join([*parts, _counts(found)])


def _markdown(found: Sequence[Comparison]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(c.replace("|", "\\|").replace("\n", "<br>") for c in cells) + " |"

    parts = [_counts(found) + "."]
    for comparison in (c for c in found if c.rows):
        parts += [f"**{comparison.path}**", ""]
        lines = [line(_HEADINGS), line(["---"] * len(_HEADINGS))]
        for row, (name, change, before, after, places) in zip(
            comparison.rows, _cells(comparison.rows), strict=True
        ):
            change = f"**{change}**" if row.effect.value == "worse" else change
            lines.append(line((f"`{name}`" if name else "", change, before, after, places)))
        parts[-1] = "\n".join(lines)
    return "\n\n".join(parts)


def _json(found: Sequence[Comparison]) -> str:
    return json.dumps(
        {
            "worse": any(c.worse for c in found),
            "programs": [
                {"path": c.path, "worse": c.worse, "changes": [_change(row) for row in c.rows]}
                for c in found
            ],
        },
        indent=2,
    )


def _change(row: Row) -> dict[str, Any]:
    before, after = row.contract
    return {
        "predicate": row.predicate or None,
        "change": row.change,
        "effect": row.effect.value,
        "before": {"text": row.before, "contract": before and _data(before)},
        "after": {"text": row.after, "contract": after and _data(after)},
        "because": [
            {"path": path, "line": int(line)}
            for path, _, line in (place.rpartition(":") for place in row.places)
        ],
        "through": list(row.through),
    }


def _data(entry: PredicateContract) -> dict[str, Any]:
    """As `explain` gives it, but for the places of rules, which are those of another time."""
    from streamlog.app.show import predicate_data

    found = predicate_data(entry)
    for part in (found["kept"], *found["delays"]):
        del part["because"]
    return found
