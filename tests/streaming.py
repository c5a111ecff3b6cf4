"""Helpers for tests that run programs."""

from __future__ import annotations

from streamlog.compiler import Mode, Program, compile_source
from streamlog.diagnostics import Source


def compiled(text: str, mode: Mode = Mode.STREAM) -> Program:
    program = compile_source(Source("test.slog", text), mode=mode)
    assert program.ok, program.diagnostics
    return program


ALARM = """
stream pre_alarm(T: time, area: string) slack 10s.
stream report(T: time, area: string) slack 10s idle 30s.
output pc_alarm.
pc_alarm(T, A) <- pre_alarm(T, A), not (report(T1, A), T <= T1, T1 <= T + 5min).
"""

FIRST = """
first(T, X) <- msg(T, X), not previous(T, X).
previous(T, X) <- msg(T0, X), T0 < T.
"""
