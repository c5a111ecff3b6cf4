"""Python functions that a program declares: `function risk(float): float from "risk.py".`

Nothing of a file is executed unless the user allows it (`allowed`). Then its text is part of the
program: of its fingerprint, and of what goes to other processes. There it is executed once, as a
module of its own. Times and durations are whole numbers of microseconds.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import inf, isfinite
from pathlib import Path
from types import ModuleType
from typing import Any

from attrs import evolve

from streamlog.analysis.builtins import WHOLE
from streamlog.compiler import Planned, Program
from streamlog.plan.python.terms import spelled
from streamlog.runtime.errors import EvaluationError
from streamlog.syntax.ast import INT64_MAX, INT64_MIN, Function, Type
from streamlog.syntax.python_source import PythonSource


class PythonError(Exception):
    """A Python function may not be called, or is not there."""


def allowed(program: Program) -> Program:
    """The program with the text of its Python functions, which may be executed from now on."""
    python = []
    for function in program.schema.functions.values():
        assert function.file is not None
        try:
            text = Path(function.file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PythonError(f"'{function.path}' cannot be read: {error}") from None
        python.append(PythonSource(function, text))
    return evolve(program, closed=evolve(program.closed, python=tuple(python)))


def check_allowed(program: Program) -> None:
    """Raise `PythonError` if the program has functions that it may not call, or that are not
    there."""
    if not program.closed.python:
        for function in program.schema.functions.values():
            raise PythonError(
                f"`{function.name}` is a Python function, from '{function.path}', which is "
                "executed only with --allow-python (in Python: allow_python=True)"
            )
    callables(program.closed)


def callables(program: Planned) -> Mapping[str, Callable[..., Any]]:
    """What generated code calls, by its name there."""
    return {spelled("python", s.function.name): _checked(s) for s in program.python}


@lru_cache(100)
def _module(path: str, text: str) -> ModuleType:
    module = ModuleType(Path(path).stem)
    module.__file__ = path
    try:
        exec(compile(text, path, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        raise PythonError(f"'{path}' cannot be executed: {_last_line(error)}") from error
    return module


def _checked(source: PythonSource) -> Callable[..., Any]:
    function = source.function
    called = getattr(_module(function.path, source.text), function.name, None)
    if not callable(called):
        raise PythonError(f"'{function.path}' has no function `{function.name}`")

    usual = float if function.result is Type.FLOAT else None

    def call(*args: Any) -> Any:
        try:
            result = called(*args)
        except (Exception, SystemExit) as error:
            raise EvaluationError(f"{_title(function)}: {_last_line(error)}") from error
        if result.__class__ is usual and isfinite(result):  # what every row pays
            return result
        return _value(function, result)

    return call


def _value(function: Function, result: Any) -> Any:
    """The result, if it is one of the declared type."""
    title, wanted = _title(function), function.result
    is_whole = isinstance(result, int) and not isinstance(result, bool)
    if wanted is Type.FLOAT and (is_whole or isinstance(result, float)):
        try:
            value = float(result)
        except OverflowError:
            value = inf
        if not isfinite(value):
            raise EvaluationError(f"{title} gives a number that is not finite")
        return value
    if wanted in WHOLE and is_whole:
        if not INT64_MIN <= result <= INT64_MAX:
            raise EvaluationError(f"{title} gives a number beyond 64 bits")
        return int(result)
    if wanted is Type.STRING and isinstance(result, str):
        if any("\ud800" <= c <= "\udfff" for c in result):
            raise EvaluationError(f"{title} gives a text with half a character")
        return str(result)
    if wanted is Type.BOOL and isinstance(result, bool):
        return result
    raise EvaluationError(f"{title} gives a value of type {type(result).__name__}, not {wanted}")


def _title(function: Function) -> str:
    return f"`{function.name}` of '{function.path}'"


def _last_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].strip()
