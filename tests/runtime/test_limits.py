"""Where an evaluation is stopped, and what is said of it."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from threading import Thread

import pytest
from streaming import compiled

import streamlog
from streamlog.compiler import Mode
from streamlog.kernel import Kernel
from streamlog.runtime import memory
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import LimitError, Limits

COUNTING = """
stream s(T: int, n: int).
output last.
p(T, N) <- s(T, N).
p(T, M) <- p(T, N), N < {most}, M = N + 1.
last(T, N) <- p(T, N), N >= {most}.
"""
GROWING = "stream s(T: int, x: {}). output p. p(T, X) <- s(T, X). p(T, Y) <- p(T, X), Y = X {}."
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="no limit can be kept elsewhere")


def ended(text: str, row: tuple, limits: Limits | None = None) -> dict:
    engine = Engine(compiled(text, Mode.BATCH), Kernel, limits=limits)
    engine.push("s", [row])
    engine.end()
    return engine.step()


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_a_recursion_of_many_rounds_ends() -> None:
    assert ended(COUNTING.format(most=150_000), (1, 0)) == {"last": [(1, 150_000)]}


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(rounds=99), "99 rounds (--max-rounds): the recursion of p had 101 rows by then"),
        (Limits(rows=2_000), "2,000 rows (--max-rows): the recursion of p had 2,001 rows by then"),
        (Limits(seconds=0.1), "0.1 seconds (--max-seconds): the recursion of p had "),
    ],
)
def test_a_limit_is_named_and_no_more_is_claimed(limits: Limits, said: str) -> None:
    with pytest.raises(LimitError) as stopped:
        ended(GROWING.format("int", "+ 1"), (1, 0), limits)
    message = str(stopped.value)
    assert message.startswith(f"stopped after {said}")
    assert "if it should go on, raise the limit" in message
    assert message.endswith("p(T, Y) <- p(T, X), Y = X + 1.")


def test_limits_of_the_public_engine() -> None:
    program = streamlog.compile(COUNTING.format(most=100))
    engine = streamlog.Engine(program, limits=Limits(rows=50))
    engine.push("s", [(1, 0)])
    engine.end()
    with pytest.raises(LimitError, match="50 rows"):
        engine.step()


def test_a_limit_of_rounds_is_for_the_recursion_alone() -> None:
    with pytest.raises(LimitError):
        ended(COUNTING.format(most=100), (1, 0), Limits(rounds=50))
    assert ended(COUNTING.format(most=100), (1, 0), Limits(rounds=101, rows=101))


@ON_LINUX
@pytest.mark.parametrize(
    ("text", "first"),
    [
        (GROWING.format("string", "++ X"), "a"),  # one text that doubles
        (GROWING.format("int", "* 2").replace("Y = X * 2", "(Y = X * 2 ; Y = X * 2 + 1)"), 1),
    ],
)
def test_memory_is_limited(text: str, first: object) -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = resident() + 32 * 2**20
    with pytest.raises(LimitError) as stopped:
        ended(text, (1, first), Limits(memory=allowed))
    said = f"stopped for lack of memory (--max-memory is {memory.size(allowed)}): more was needed"
    assert str(stopped.value).startswith(said)
    assert "p(T, Y) <- p(T, X)" in str(stopped.value)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@ON_LINUX
def test_an_error_of_memory_in_a_step_breaks_the_engine_visibly() -> None:
    engine = Engine(compiled(GROWING.format("string", "++ X"), Mode.BATCH), Kernel, limits=None)
    engine.executor.limits = Limits(memory=resident() + 2**25)  # type: ignore[attr-defined]
    engine.push("s", [(1, "a")])
    engine.end()
    with pytest.raises(LimitError):
        engine.step()
    with pytest.raises(Exception, match="cut short: stopped for lack of memory"):
        engine.step()


@ON_LINUX
def test_steps_in_several_threads_leave_the_process_as_it_was() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)

    def many() -> None:
        for _ in range(200):
            with memory.at_most(2**40):
                pass

    threads = [Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@ON_LINUX
def test_the_share_of_a_process() -> None:
    assert memory.share(1) == memory.machine() // 2
    assert 2**20 < memory.share(1000) <= memory.share(1)  # type: ignore[operator]


def test_a_system_that_keeps_no_limit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert ended(COUNTING.format(most=9), (1, 0))
    with pytest.raises(LimitError, match="--max-memory cannot be kept on this system"):
        ended(COUNTING.format(most=9), (1, 0), Limits(memory=2**40))


@pytest.mark.parametrize(
    ("count", "said"), [(2**30, "1 GB"), (3 * 2**29, "1.5 GB"), (2**20, "1 MB"), (5, "5 bytes")]
)
def test_sizes(count: int, said: str) -> None:
    assert memory.size(count) == said
