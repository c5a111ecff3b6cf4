"""The ends of logical time: offsets added to what is let in stay within 64 bits."""

from __future__ import annotations

import pytest
from streaming import compiled

import streamlog
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine, EngineError

DECLARED = "stream s(T: int, x: int). output p. p(T + 10, X) <- s(T, X)."
UNDECLARED = "p(T + 10, X) <- s(T, X)."
ENDS = "logical time goes from -4611686018427387904 to 4611686018427387904"
AROUND = [-(2**63), -(2**62) - 1, -(2**62), 0, 2**62, 2**62 + 1, 2**63 - 1]


@pytest.mark.parametrize("text", [DECLARED, UNDECLARED])
@pytest.mark.parametrize("as_text", [False, True])
def test_rows(text: str, as_text: bool) -> None:
    engine = Engine(compiled(text), Kernel)
    check = engine.checkers["s"].text
    engine.push("s", [check([str(t), "1"]) if as_text else (t, 1) for t in AROUND])
    engine.end()
    assert engine.step() == {"p": [(t + 10, 1) for t in AROUND if abs(t) <= 2**62]}
    assert [r.reason for r in engine.rejects] == [
        f"column `{engine.checkers['s'].names[0]}`: {t} is not a valid timestamp: {ENDS}"
        for t in AROUND
        if abs(t) > 2**62
    ]


def test_a_declared_range_stands_beside_it() -> None:
    text = "stream s(T: int 0..9223372036854775807). output p. p(T) <- s(T)."
    engine = Engine(compiled(text), Kernel)
    engine.push("s", [(-1,), (5,), (2**62 + 1,)])
    assert [r.reason.split(": ")[1] for r in engine.rejects] == [
        "-1 is outside the declared range 0 to 9223372036854775807",
        f"{2**62 + 1} is not a valid timestamp",
    ]


@pytest.mark.parametrize("time", [-(2**63), -(2**62) - 1, 2**62 + 1, 2**63 - 1])
def test_facts_and_advance(time: int) -> None:
    for text in (DECLARED, UNDECLARED, "q(T, X) <- s(T, X). s(T, X) <- r(T, X)."):
        with pytest.raises(streamlog.CompileError, match=f"SL0301: {time} is not .*: {ENDS}"):
            streamlog.compile(f"{text}\ns({time}, 1).")
    with pytest.raises(EngineError, match=f"^{time} is not a valid timestamp: {ENDS}"):
        Engine(compiled(DECLARED), Kernel).advance(time)


def test_the_ends_themselves() -> None:
    engine = Engine(compiled(f"{DECLARED}\ns({2**62}, 1). s({-(2**62)}, 2)."), Kernel)
    engine.advance(2**62)
    engine.end()
    assert engine.step() == {"p": [(-(2**62) + 10, 2), (2**62 + 10, 1)]}
