"""The closing table of a run: what became of the rows, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.table import Table

from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import Measured

_DEAREST = 5


def closing_tables(engine: Engine, seconds: float) -> Iterator[Table | str]:
    """Rows by input, answers by output, the dearest rules, and one line about state and time."""
    report = engine.report
    columns = ("rows", "late", "rejected", "duplicates")
    rows_in = {n: (c.rows, c.late, c.rejected, c.duplicates) for n, c in report.streams.items()}
    yield from figures_tables(columns, rows_in, report.answers)
    if isinstance(engine.executor, Measured) and seconds >= 1:
        times = _table("time went into", "seconds")
        spent = sorted(engine.executor.seconds.items(), key=lambda s: -s[1])
        for what, s in spent[:_DEAREST]:
            times.add_row(what, f"{s:.1f}")
        yield times
    rows = sum(c.rows for c in report.streams.values())
    time = f"; {seconds:.1f} s ({rows / seconds:,.0f} rows a second)" if seconds >= 1 else ""
    yield f"state: {report.state_high:,} rows at most{time}"


def figures_tables(
    columns: Sequence[str], rows: Mapping[str, Sequence[int]], answers: Mapping[str, int]
) -> Iterator[Table]:
    """What became of the rows of each input, and how many answers each output has."""
    inputs = _table("input", *columns)
    for name, figures in sorted(rows.items()):
        inputs.add_row(name, *(f"{n:,}" for n in figures))
    yield inputs
    outputs = _table("output", "answers")
    for name, count in sorted(answers.items()):
        outputs.add_row(name, f"{count:,}")
    yield outputs


def strategies_table(used: Mapping[str, tuple[str, str]]) -> Table:
    """How the rules of each predicate were evaluated, and why: strategy and reason. Those that were
    evaluated in the same way for the same reason share a row."""
    predicates: dict[tuple[str, str], list[str]] = {}
    for name, how in used.items():
        predicates.setdefault(how, []).append(name)
    table = _table("predicate", "strategy", "reason")
    for how, names in predicates.items():
        table.add_row(", ".join(names), *how)
    for column in table.columns:
        column.justify = "left"
    return table


def _table(*columns: str) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        header_style="bold",
        border_style="dim",
    )
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table
