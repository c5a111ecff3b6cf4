"""`arrives within`: the wall clock moves a stream on."""

from __future__ import annotations

import pytest
from streaming import compiled

import streamlog
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine, EngineError
from streamlog.runtime.executor import BEGIN, END
from streamlog.runtime.progress import Clock, Progress
from streamlog.runtime.wall_clock import WallClock

SECOND = 1_000_000
SILENT = """
stream beat(T: time, sensor: string) slack 1s arrives within 5s.
output silent.
silent(T, S) <- beat(T, S), not (beat(T1, S), T < T1, T1 <= T + 30s).
"""
AT = "2026-11-15T08:00:"


def test_a_reading_moves_its_stream_alone() -> None:
    progress = Progress([Clock("a", within=5), Clock("b"), Clock("quiet", idle=10)])
    progress.tick(105, "b")
    assert progress.values() == dict.fromkeys(("a", "b", "quiet"), BEGIN)
    progress.tick(105, "a")
    assert progress.values() == {"a": 100, "b": BEGIN, "quiet": 90}
    progress.tick(90, "a")
    assert progress["a"].progress == 100
    assert progress.ticking
    progress.end("a")
    progress.tick(200, "a")
    assert progress["a"].progress == END
    assert not progress.ticking


def test_silence_is_noticed() -> None:
    engine = Engine(compiled(SILENT), Kernel)
    engine.push("beat", [(f"{AT}00Z", "a"), (f"{AT}10Z", "b")])
    assert engine.step() == {"silent": []}
    engine.tick("beat", f"{AT}35Z")  # 08:00:30 itself may still come
    assert engine.step() == {"silent": []}
    engine.tick("beat", f"{AT}35.000001Z")
    assert [row[1] for row in engine.step()["silent"]] == ["a"]
    engine.push("beat", [(f"{AT}29Z", "late"), (f"{AT}40Z", "b")])
    engine.tick("beat", f"{AT}50Z")
    assert engine.step() == {"silent": []}
    assert engine.report.streams["beat"].late == 1
    engine.end()
    assert [row[1] for row in engine.step()["silent"]] == ["b"]


def test_the_clock_and_rows_move_time_whichever_is_further() -> None:
    engine = streamlog.Engine(compiled(SILENT))
    engine.push("beat", [(f"{AT}50Z", "a")])
    engine.tick("beat", f"{AT}20Z")
    assert engine.progress["beat"].progress == engine.progress["beat"].seen - SECOND


def test_only_streams_tick() -> None:
    engine = Engine(compiled(SILENT), Kernel)
    with pytest.raises(EngineError, match="`silent` is not a stream"):
        engine.tick("silent", 0)
    with pytest.raises(EngineError, match="there is no predicate `beats`"):
        engine.tick("beats", 0)


def test_readings_never_decrease(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5_000, 3_000, 7_999])
    monkeypatch.setattr("time.time_ns", lambda: next(times))
    clock = WallClock()
    assert [clock.now(), clock.now(), clock.now()] == [5, 5, 7]


def test_a_stream_that_the_clock_moves_is_not_warned_of() -> None:
    assert not compiled(SILENT).diagnostics
    without = compiled(SILENT.replace("arrives within 5s", ""))
    assert [d.code for d in without.diagnostics] == ["SL0506"]
