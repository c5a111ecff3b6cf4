"""streamlog: rules over timestamped event streams, with a contract about time.

program = streamlog.compile("pc_alarm.slog")
engine = streamlog.Engine(program)
engine.push("pre_alarm", [("2026-11-15T08:00:00Z", "gate 1")])
engine.advance("2026-11-15T08:05:01Z")
engine.step()["pc_alarm"]
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlog.compiler import Program
    from streamlog.diagnostics import Diagnostic
    from streamlog.runtime.engine import Engine as _Engine
    from streamlog.runtime.executor import Limits
    from streamlog.runtime.wall_clock import WallClock

__version__ = "0.1.0"
__all__ = ["CompileError", "Engine", "ProgramWarning", "compile"]


class CompileError(Exception):
    """A program that has errors; `diagnostics` says where and what would be right."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        self.diagnostics = diagnostics
        super().__init__("\n".join(_line(d) for d in diagnostics if d.is_error))


class ProgramWarning(UserWarning):
    """What `streamlog check` would warn of: a program that compiles and is probably wrong."""


def program_warnings(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """The texts of those that are warnings."""
    from streamlog.codes import Severity

    return [_line(d) for d in diagnostics if d.severity is Severity.WARNING]


def _line(diagnostic: Diagnostic) -> str:
    source = diagnostic.span.source
    line, column = source.position(diagnostic.span.start)
    return f"{source.path}:{line}:{column}: {diagnostic.code}: {diagnostic.message}"


def compile(program: str | Path, *, batch: bool = False) -> Program:
    """The program in a file (a Path, or a text that ends in `.slog`) or in a text.

    `batch` accepts what only a query over stored data can answer. Raises CompileError; what
    `streamlog check` warns of is a ProgramWarning.
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
    for line in program_warnings(result.diagnostics):
        warnings.warn(line, ProgramWarning, stacklevel=2)
    return result


def prepared(program: Program, on_error: str, allow_python: bool) -> Program:
    """The program as it is to be run: "stop" or "skip" says what an error in a rule does, and
    `allow_python` that its Python functions may be executed. Raises
    `analysis.skipping.SkipError` where skipping could change something else, and
    `runtime.python_functions.PythonError`."""
    from streamlog.compiler import skipping
    from streamlog.runtime.python_functions import allowed

    if on_error not in ("stop", "skip"):
        raise ValueError(f'on_error is "stop" or "skip", not {on_error!r}')
    program = skipping(program) if on_error == "skip" else program
    return allowed(program) if allow_python else program


def Engine(  # noqa: N802 - to its users it is a class
    program: Program,
    tables: Mapping[str, Iterable[Any]] | None = None,
    *,
    limits: Limits | None = None,
    remember: bool = True,
    on_error: str = "stop",
    allow_python: bool = False,
    clock: WallClock | None = None,
) -> _Engine:
    """An engine that runs a compiled program in this process (see `runtime.engine`). `tables` has
    the rows of every table that rules read and that has no facts, though it be an empty list; a
    stream that has no rows is ended by its name, `engine.end("payment")`, before all are;
    `limits` (`runtime.executor`) say when a step is stopped. With `on_error="skip"` solutions that
    cannot be computed are left out; they are in `errors`, and `report` counts them. `allow_python`
    lets a program call the Python functions that it declares. With a `clock`
    (`runtime.wall_clock`), rows of streams with a time of `arrival` are pushed without it, and
    stamped."""
    from streamlog.kernel import Kernel
    from streamlog.runtime.engine import Engine as RuntimeEngine
    from streamlog.runtime.missing_inputs import check_inputs

    program = prepared(program, on_error, allow_python)
    check_inputs(program, {*program.schema.streams, *(tables or {})}, "pass them in `tables`")
    return RuntimeEngine(
        program, Kernel, tables or {}, limits, remember=remember, named=True, clock=clock
    )
