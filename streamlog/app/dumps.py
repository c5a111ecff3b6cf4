"""What each pass of the compiler has made, as text: `check --dump-after PASS`.

Every function answers None when errors kept the compiler from coming that far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import evolve

from streamlog.analysis.types import ANY
from streamlog.app import show
from streamlog.app.graph import arrows
from streamlog.compiler import Compilation, the
from streamlog.plan.explain import explain
from streamlog.rewrite.desugar import printable
from streamlog.syntax.ast import Module
from streamlog.syntax.pretty import pretty

WIDTH = 80


def _parse(compilation: Compilation) -> str | None:
    return pretty(compilation.parsed) if compilation.parsed else None


def _module(compilation: Compilation) -> str | None:
    return pretty(compilation.module) if compilation.module else None


def _desugar(compilation: Compilation) -> str | None:
    return _printable(compilation.module) if compilation.module else None


def _close(compilation: Compilation) -> str | None:
    return _printable(the(compilation.closed.module)) if compilation.closed else None


def _constants(compilation: Compilation) -> str | None:
    return _printable(compilation.for_answers) if compilation.for_answers else None


def _printable(module: Module) -> str:
    return pretty(evolve(module, statements=tuple(map(printable, module.statements))))


def _schema(compilation: Compilation) -> str | None:
    if compilation.schema is None:
        return None
    return _lines(
        f"{p.kind.value} {p.name}/{p.arity}{' with timestamp' if p.temporal else ''}"
        for _, p in sorted(compilation.schema.predicates.items())
    )


def _types(compilation: Compilation) -> str | None:
    if compilation.types is None:
        return None
    columns = compilation.types.columns

    def words(name: str, position: int) -> str:
        types = columns.get((name, position), ANY)
        return "any" if types == ANY else " or ".join(sorted(map(str, types)))

    return _lines(
        f"{name}({', '.join(words(name, i) for i in range(p.arity))})"
        for name, p in sorted(the(compilation.schema).predicates.items())
    )


def _safety(compilation: Compilation) -> str | None:
    if compilation.safety is None:
        return None
    return _lines(
        f"{name}: open at {', '.join(str(p + 1) for p in sorted(positions))}"
        for name, positions in sorted(compilation.safety.open.items())
        if positions
    )


def _time(compilation: Compilation) -> str | None:
    if compilation.graph is None:
        return None
    found = arrows(compilation.graph, compilation.clocks)
    return _lines(f"{head} <- {goal}: {away or 'now'}" for head, goal, away, _ in found)


def _strata(compilation: Compilation) -> str | None:
    if compilation.graph is None or compilation.strata is None:
        return None
    return show.strata(compilation.graph, compilation.strata, compilation.clocks, WIDTH).plain


def _contract(compilation: Compilation) -> str | None:
    if compilation.contract is None:
        return None
    return show.contract(compilation.contract, compilation.source, WIDTH).plain


def _open_predicates(compilation: Compilation) -> str | None:
    if compilation.contract is None:
        return None
    return _lines(
        f"{pretty(split.rule)}\n    core      {pretty(split.core)}"
        f"\n    residual  {', '.join(map(pretty, split.residual))}"
        for split in compilation.open_rules
    )


def _bistate(compilation: Compilation) -> str | None:
    return show.bistate(compilation.bistate) if compilation.bistate else None


def _plan(compilation: Compilation) -> str | None:
    return explain(compilation.plan, compilation.clocks) if compilation.plan else None


def _lines(lines: Iterator[str]) -> str:
    return "\n".join(lines)


DUMPS: dict[str, Callable[[Compilation], str | None]] = {
    "parse": _parse,
    "load": _module,
    "desugar": _desugar,
    "schema": _schema,
    "types": _types,
    "safety": _safety,
    "time": _time,
    "strata": _strata,
    "contract": _contract,
    "open_predicates": _open_predicates,
    "close": _close,
    "constants": _constants,
    "bistate": _bistate,
    "plan": _plan,
}
