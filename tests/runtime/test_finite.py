"""Floats are finite: a result that is not stops the run, with the rule."""

from __future__ import annotations

import pytest

from streamlog.compiler import compile_source
from streamlog.diagnostics import Source
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.runtime.functions import EvaluationError

BEYOND = {
    "in a head": "p(T, X * X) <- s(T, X).",
    "in an equation": "p(T, Y) <- s(T, X), Y = X * X.",
    "not a number": "p(T, X * X - X * X) <- s(T, X).",
    "a sum": "p(T, sum(Y)) <- s(T, X), Y = X * 1.0, t(_). t(1). t(2).",
}


@pytest.mark.parametrize("rules", BEYOND.values(), ids=BEYOND.keys())
def test_a_result_beyond_the_range_of_floats(rules: str) -> None:
    text = f"stream s(T: int, x: float). table t(n: int). {rules}"
    engine = Engine(compile_source(Source("finite", text)), Kernel)
    engine.push("s", [(1, 1.7e308)])
    engine.end()
    with pytest.raises(EvaluationError, match="beyond the range of floats"):
        engine.step()
