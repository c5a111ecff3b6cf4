"""`matches`: RE2's dialect, in linear time, the same wherever a rule runs."""

from __future__ import annotations

import time

import pytest
from dialect import DIALECT

import streamlog
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.runtime.functions import EvaluationError, matches


@pytest.mark.parametrize(("text", "pattern", "found"), DIALECT)
def test_dialect(text: str, pattern: str, found: bool) -> None:
    assert matches(text, pattern) is found


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "(.*)*b", "^(a?){40}a{40}$"])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    began = time.thread_time()
    matches("a" * 20_000 + "!", pattern)
    assert time.thread_time() - began < 5


@pytest.mark.parametrize("pattern", ["((((", r"(a)\1", "(?=a)", "a{1001}", "\ud800"])
def test_what_it_is_not(pattern: str) -> None:
    with pytest.raises(EvaluationError, match="is not a regular expression"):
        matches("a", pattern)


def test_a_pattern_from_the_data_names_the_rule() -> None:
    program = streamlog.compile("output p.\np(T, X) <- s(T, X, P), matches(X, P).")
    engine = Engine(program, Kernel)
    engine.push("s", [(1, "a", "^a"), (2, "a", "((")])
    engine.end()
    with pytest.raises(EvaluationError, match=r"`\(\(` is not a regular expression: .*: p\(T, X\)"):
        engine.step()
