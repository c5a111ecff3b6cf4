"""Expectations rewritten to what was released; the rest of a file stays byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

from streamlog.app.fmt import replace_file
from streamlog.app.ruletest import Problem, Verdict
from streamlog.app.test_script import fact_atom
from streamlog.compiler import Program
from streamlog.diagnostics import Source, Span
from streamlog.runtime.ingest import surface
from streamlog.runtime.sinks import open_sink
from streamlog.runtime.sources import SourceError, inside
from streamlog.syntax.ast import Expect, ExpectFrom, ExpectNone, PredName
from streamlog.syntax.pretty import INDENT, pretty

_BREAK = re.compile(r"\r\n|\r|\n")


@frozen
class _Edit:
    span: Span
    text: str


def update(verdicts: Iterable[Verdict]) -> int:
    """Rewrite what failed in the tests of one file; returns how many expectations changed."""
    edits: list[_Edit] = []
    changed = 0
    path = ""
    for verdict in verdicts:
        program, path = verdict.suite.program_of(verdict.test), verdict.suite.path
        for problem in verdict.problems:
            if program is None or problem.step is None:
                continue
            if isinstance(problem.step, ExpectFrom):
                changed += _write_rows(program, problem.step, problem)
            else:
                edits.append(_Edit(problem.step.span, _rewritten(program, problem)))
    if edits:
        _apply(Path(path), edits)
    return changed + len(edits)


def _write_rows(program: Program, step: ExpectFrom, problem: Problem) -> bool:
    schema, types, pred = program.schema, program.types, step.pred.name
    found = [types.column(pred, i) for i in range(schema[pred].arity)]
    names, columns = surface(schema.column_names[pred], found)
    try:
        sink = open_sink(inside(program, step.path, step.span.source.path), names, columns)
    except SourceError:  # the path itself is wrong, as the failure says
        return False
    sink.write(problem.released[pred])
    sink.close()
    return True


def _rewritten(program: Program, problem: Problem) -> str:
    """One `expect` for what there is, and an `expect none` for each predicate without facts."""
    span = problem.span
    found = [fact_atom(program, p, row) for p, rows in problem.released.items() for row in rows]
    steps: list[Expect | ExpectNone] = [Expect(tuple(found), span=span)] if found else []
    steps += (
        ExpectNone(PredName(pred, span=span), span=span)
        for pred, rows in problem.released.items()
        if not rows
    )
    return "\n".join(map(pretty, steps))


def _apply(path: Path, edits: Iterable[_Edit]) -> None:
    data = path.read_bytes()
    text = data.decode("utf-8")
    starts = _raw_offsets(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    for edit in sorted(edits, key=lambda e: e.span.start, reverse=True):
        indent = _indent(edit.span.source, edit.span.start)
        inserted = edit.text.replace("\n", newline + indent)
        text = text[: starts[edit.span.start]] + inserted + text[starts[edit.span.end] :]
    replace_file(path, text)


def _indent(source: Source, offset: int) -> str:
    line = source.line(source.position(offset)[0])
    return line[: len(line) - len(line.lstrip())] or INDENT


def _raw_offsets(text: str) -> list[int]:
    """Where each character of the text as the compiler has it (without a byte-order mark, with
    one kind of line end) stands in the file."""
    at = 1 if text.startswith("\ufeff") else 0
    result: list[int] = []
    for match in _BREAK.finditer(text):
        result += range(at, match.start() + 1)
        at = match.end()
    return [*result, *range(at, len(text) + 1)]
