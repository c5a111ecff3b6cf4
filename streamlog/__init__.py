"""streamlog: rules over timestamped event streams, with a contract about time.

program = streamlog.compile("pc_alarm.slog")
engine = streamlog.Engine(program)
engine.push("pre_alarm", [("2026-11-15T08:00:00Z", "gate 1")])
engine.advance("2026-11-15T08:05:01Z")
engine.step()["pc_alarm"]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlog.compiler import Program
    from streamlog.diagnostics import Diagnostic
    from streamlog.runtime.engine import Engine as _Engine
    from streamlog.runtime.executor import Limits

__version__ = "0.1.0"
__all__ = ["CompileError", "Engine", "compile"]


class CompileError(Exception):
    """A program that has errors; `diagnostics` says where and what would be right."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        self.diagnostics = diagnostics
        lines = []
        for d in diagnostics:
            if d.is_error:
                line, column = d.span.source.position(d.span.start)
                lines.append(f"{d.span.source.path}:{line}:{column}: {d.code}: {d.message}")
        super().__init__("\n".join(lines))


def compile(program: str | Path, *, batch: bool = False) -> Program:
    """The program in a file (a Path, or a text that ends in `.slog`) or in a text.

    `batch` accepts what only a query over stored data can answer. Raises CompileError.
    """
    # Imported here so that `import streamlog` costs nothing.
    from streamlog.compiler import Mode, Program, compile_file, compile_source
    from streamlog.diagnostics import Source

    mode = Mode.BATCH if batch else Mode.STREAM
    if isinstance(program, Path) or program.endswith(".slog"):
        result = compile_file(Path(program), mode=mode)
    else:
        result = compile_source(Source("<text>", program), mode=mode)
    if not isinstance(result, Program):
        raise CompileError(result.diagnostics)
    return result


def Engine(  # noqa: N802 - to its users it is a class
    program: Program,
    tables: Mapping[str, Iterable[Any]] | None = None,
    *,
    limits: Limits | None = None,
    remember: bool = True,
) -> _Engine:
    """An engine that runs a compiled program in this process (see `runtime.engine`); `limits`
    (`runtime.executor`) say when a step is stopped."""
    from streamlog.kernel import Kernel
    from streamlog.runtime.engine import Engine as RuntimeEngine

    return RuntimeEngine(program, Kernel, tables or {}, limits, remember=remember)
