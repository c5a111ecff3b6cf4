"""The Python API, as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

import streamlog

ALARM = """
stream pre_alarm(T: time, area: string) slack 10s.
stream report(T: time, area: string) slack 10s.
output pc_alarm.
pc_alarm(T, A) <- pre_alarm(T, A), not (report(T1, A), T <= T1, T1 <= T + 5min).
"""


def test_text_in_answers_out() -> None:
    engine = streamlog.Engine(streamlog.compile(ALARM))
    engine.push("pre_alarm", [("2026-11-15T08:00:00Z", "gate 1"), ("soon", "gate 2")])
    engine.advance("2026-11-15T08:05:00Z")
    assert engine.step()["pc_alarm"] == []
    engine.advance("2026-11-15T08:05:01Z")
    assert [area for _, area in engine.step()["pc_alarm"]] == ["gate 1"]
    assert [reject.raw for reject in engine.rejects] == [("soon", "gate 2")]


def test_a_file_and_its_tables(tmp_path: Path) -> None:
    program = tmp_path / "near.slog"
    program.write_text(
        "table next_to(a: string, b: string). stream fire(T: int, a: string). output near.\n"
        "near(T, B) <- fire(T, A), next_to(A, B).\n"
    )
    engine = streamlog.Engine(streamlog.compile(str(program)), {"next_to": [("x", "y")]})
    engine.push("fire", [(1, "x"), (2, "z")])
    engine.end()
    assert engine.step() == {"near": [(1, "y")]}


def test_a_refused_program_says_why() -> None:
    blocking = "last(T, X) <- msg(T, X), not (msg(T1, X), T1 > T)."
    with pytest.raises(streamlog.CompileError, match=r"<text>:1:31: SL0401: `last` would wait"):
        streamlog.compile(blocking)
    engine = streamlog.Engine(streamlog.compile(blocking, batch=True))
    engine.push("msg", [(1, "a"), (2, "a"), (3, "b")])
    engine.end()
    assert engine.step() == {"last": [(2, "a"), (3, "b")]}
