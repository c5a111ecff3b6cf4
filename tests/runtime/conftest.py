"""Programs and engines for tests of the runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from oracle.executor import NaiveExecutor
from streaming import compiled

from streamlog.compiler import Mode
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine

MakeEngine = Callable[..., Engine]


@pytest.fixture(params=[NaiveExecutor, Kernel], ids=["naive", "kernel"])
def engine(request: pytest.FixtureRequest) -> MakeEngine:
    """Make an engine for a program's text, once with each executor."""

    def make(text: str, mode: Mode = Mode.STREAM, **options: Any) -> Engine:
        program, executor = compiled(text, mode), request.param
        if executor is NaiveExecutor:  # of the rules as they were written
            return Engine(program, lambda _, *given: NaiveExecutor(program, *given), **options)
        return Engine(program, executor, **options)

    return make
