"""Programs in a notebook: contracts and answers as tables, and cells that are programs.

    %load_ext streamlog.notebook

    %%slog alarms --input smoke=readings
    stream smoke(T: time, area: string).
    alarm(T, A) <- smoke(T, A), A != kitchen.

The cell is compiled; `alarms` is the program from then on. What is not an error is shown: the
contract, and the answers over the facts of the program and the rows that `--input` names.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from attrs import frozen
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import streamlog
from streamlog.app import show
from streamlog.app.answers import columns_of
from streamlog.app.formats import count
from streamlog.app.render import render_diagnostic
from streamlog.app.tables import MOST_ROWS, value_text
from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Source
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import Row
from streamlog.runtime.ingest import HOLDING
from streamlog.syntax.ast import Type

_USAGE = "%%slog [NAME] [--input PREDICATE=VARIABLE]…"


def load_ipython_extension(shell: InteractiveShell) -> None:
    """What `%load_ext streamlog.notebook` calls."""
    shell.register_magic_function(_slog(shell), "cell", "slog")
    if shell.display_formatter is not None:
        shell.display_formatter.formatters["text/html"].for_type(Program, contract_html)


# --------------------------------------------------------------------------------- the magic


def _slog(shell: InteractiveShell) -> Any:
    def slog(line: str, cell: str) -> Answers | Program:
        name, variables = _arguments(line)
        program = compile_source(Source(name or "<cell>", cell))
        for diagnostic in program.diagnostics:
            if not diagnostic.is_error:
                print(render_diagnostic(diagnostic).plain, end="\n\n")
        if not isinstance(program, Program):
            errors = (render_diagnostic(d).plain for d in program.diagnostics if d.is_error)
            raise UsageError("\n\n".join(["the program is refused", *errors]))
        if name:
            shell.user_ns[name] = program
        missing = [v for v in variables.values() if v not in shell.user_ns]
        if missing:
            raise UsageError(f"there is no variable {missing[0]}")
        inputs = {pred: shell.user_ns[variable] for pred, variable in variables.items()}
        given = {*inputs, *program.schema.facts_of}
        return answers(program, inputs) if given >= {*program.schema.inputs} else program

    slog.__doc__ = __doc__
    return slog


def _arguments(line: str) -> tuple[str | None, dict[str, str]]:
    """The name of the program, and the variables of inputs."""
    words = iter(shlex.split(line))
    name: str | None = None
    variables: dict[str, str] = {}
    for word in words:
        if word == "--input":
            pred, equals, variable = next(words, "").partition("=")
            if not equals or not pred or not variable:
                raise UsageError(_USAGE)
            variables[pred] = variable
        elif name is None and word.isidentifier():
            name = word
        else:
            raise UsageError(_USAGE)
    return name, variables


# ------------------------------------------------------------------------------ what is shown


@frozen
class Answers:
    """The answers of a program: rows by predicate, and in a notebook a table of each."""

    program: Program
    rows: Mapping[str, Sequence[Row]]
    engine: Engine

    def __getitem__(self, name: str) -> Sequence[Row]:
        return self.rows[name]

    def _repr_html_(self) -> str:
        parts = [contract_html(self.program), *_set_aside(self.engine)]
        for name, rows in self.rows.items():
            names, types = columns_of(self.engine, name)
            parts.append(_titled(name, names, rows, types))
        return "\n".join(parts)


def _set_aside(engine: Engine) -> Iterator[str]:
    """A word about rows that came too late or are not rows of their input."""
    for what, found in (("late", engine.late), ("rejected", engine.rejects)):
        if found:
            counted = count(len(found), f"{what} row")
            yield f"<p>{counted}, the first because {escape(found[0].reason)}</p>"


def answers(program: Program, inputs: Mapping[str, Any] | None = None) -> Answers:
    """The answers of a program over complete data: its own facts, and `inputs`, which are
    DataFrames of pandas or rows in the order of their arrival."""
    given = {name: _rows(rows) for name, rows in (inputs or {}).items()}
    streams = {*program.schema.streams}
    unknown = given.keys() - {*program.schema.inputs}
    if unknown:
        raise ValueError(f"`{min(unknown)}` is not an input of this program")
    tables = {name: rows for name, rows in given.items() if name not in streams}
    engine = streamlog.Engine(program, tables)
    for name in sorted(streams & given.keys()):
        engine.push(name, given[name])
    engine.end()
    engine.step()
    return Answers(program, {n: engine.facts(n) for n in program.contract.outputs}, engine)


def _rows(rows: Any) -> Iterable[Any]:
    found: Iterable[Any] = rows.to_dict("records") if hasattr(rows, "to_dict") else rows
    return found


def contract_html(program: Program) -> str:
    """The contract of a program as a table."""
    promised = program.contract
    rows = []
    for p in promised.predicates:
        released = "when asked" if p.is_open else p.released.value if p.released else ""
        delay = "" if p.is_open else show.delay_text(p)
        cells = (show.class_text(p, promised), delay, released, show.kept_text(p))
        rows.append((p.predicate.name, *cells))
    names = ("predicate", "class", "delay", "released", "kept")
    return f"<p>{escape(show.summary(promised))}</p>\n{_table(names, rows)}"


def _titled(
    name: str, names: Sequence[str], rows: Sequence[Row], types: Sequence[Type | None]
) -> str:
    shown = rows[:MOST_ROWS]
    cells = [
        [value_text(v, t) for v, t in zip(row or HOLDING, types, strict=True)] for row in shown
    ]
    more = f"<p>… and {len(rows) - len(shown):,} more</p>" if len(rows) > len(shown) else ""
    title = f"<p><b>{escape(name)}</b>{'' if rows else ': no answers'}</p>"
    return title + (_table(names, cells) + more if rows else "")


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(tag: str, cells: Iterable[str]) -> str:
        inside = (escape(cell).replace("\n", "<br>") for cell in cells)
        return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in inside)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', names)}</thead><tbody>{body}</tbody></table>"
