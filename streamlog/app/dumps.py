"""What each pass of the compiler has made, as text: `check --dump-after PASS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attrs import evolve

from streamlog.analysis.types import ANY
from streamlog.app import show
from streamlog.app.graph import arrows
from streamlog.plan.explain import explain
from streamlog.rewrite.desugar import printable
from streamlog.stages import (
    Analysed,
    Bistated,
    Closed,
    Compilation,
    Narrowed,
    Opened,
    Parsed,
    Program,
    Resolved,
    Safe,
    Stratified,
    Timed,
    Typed,
)
from streamlog.syntax.ast import Module
from streamlog.syntax.pretty import pretty

WIDTH = 80


def _printable(module: Module) -> str:
    return pretty(evolve(module, statements=tuple(map(printable, module.statements))))


def _schema(program: Resolved) -> str:
    return _lines(
        f"{p.kind.value} {p.name}/{p.arity}{' with timestamp' if p.temporal else ''}"
        for _, p in sorted(program.schema.predicates.items())
    )


def _types(program: Typed) -> str:
    columns = program.types.columns

    def words(name: str, position: int) -> str:
        types = columns.get((name, position), ANY)
        text = "any" if types == ANY else " or ".join(sorted(map(str, types)))
        return text + "?" * ((name, position) in program.types.optional)

    return _lines(
        f"{name}({', '.join(words(name, i) for i in range(p.arity))})"
        for name, p in sorted(program.schema.predicates.items())
    )


def _safety(program: Safe) -> str:
    return _lines(
        f"{name}: open at {', '.join(str(p + 1) for p in sorted(positions))}"
        for name, positions in sorted(program.safety.open.items())
        if positions
    )


def _time(program: Timed) -> str:
    found = arrows(program.graph, program.clocks)
    return _lines(f"{head} <- {goal}: {away or 'now'}" for head, goal, away, _ in found)


def _open_predicates(program: Opened) -> str:
    return _lines(
        f"{pretty(split.rule)}\n    core      {pretty(split.core)}"
        f"\n    residual  {', '.join(map(pretty, split.residual))}"
        for split in program.open_rules
    )


def _lines(lines: Iterator[str]) -> str:
    return "\n".join(lines)


# By pass: the stage that has what it makes, and the text of that.
DUMPS: dict[str, tuple[type[Compilation], Callable[[Any], str]]] = {
    "parse": (Parsed, lambda p: pretty(p.parsed)),
    "load": (Parsed, lambda p: pretty(p.module)),
    "desugar": (Parsed, lambda p: _printable(p.module)),
    "schema": (Resolved, _schema),
    "types": (Typed, _types),
    "safety": (Safe, _safety),
    "timelines": (Safe, lambda p: _printable(p.module)),
    "time": (Timed, _time),
    "strata": (Stratified, lambda p: show.strata(p.graph, p.strata, p.clocks, WIDTH).plain),
    "contract": (Analysed, lambda p: show.contract(p.contract, p.source, WIDTH).plain),
    "open_predicates": (Opened, _open_predicates),
    "close": (Closed, lambda p: _printable(p.closed.module)),
    "constants": (Narrowed, lambda p: _printable(p.for_answers)),
    "bistate": (Bistated, lambda p: show.bistate(p.bistate)),
    "plan": (Program, lambda p: explain(p.closed.plan, p.clocks)),
}


def dump(program: Compilation, name: str) -> str | None:
    """What a pass has made; None when errors kept the compiler from coming that far."""
    stage, text = DUMPS[name]
    return text(program) if isinstance(program, stage) else None
