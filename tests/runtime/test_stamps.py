"""`sys: time arrival`: rows are stamped as they come, and a replay has the same answers."""

from __future__ import annotations

import streamlog
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.runtime.wall_clock import WallClock

PROGRAM = """
stream report(app: time, sys: time arrival, area: string) progress app slack 10s, sys
    where app <= sys, sys <= app + 1h.
stream key(T: time arrival, what: string).
output log, pressed, unreported.
log(S, A, W) <- report(A, S, W).
pressed(T, W) <- key(T, W).
unreported(T, W) <- key(T, W), not (report(_, S, W), T <= S, S <= T + 2s).
"""
BEGIN = 1_800_000_000_000_000


class Readings(WallClock):
    """A clock that shows what it is told to."""

    def __init__(self, reading: int = BEGIN) -> None:
        self.reading = reading

    def now(self) -> int:
        return self.reading


def engine(clock: WallClock | None = None) -> Engine:
    return Engine(streamlog.compile(PROGRAM), Kernel, clock=clock)


def test_no_two_rows_have_the_same_stamp() -> None:
    clock = Readings()
    live = engine(clock)
    live.push("key", [("a",), {"what": "b"}, ("a",)])
    live.push("report", [(BEGIN, "a")])
    clock.reading -= 5  # a clock that is set back
    live.push("key", [("a",)])
    clock.reading += 1_000_000
    live.push("key", [("a",)])
    live.end()
    answers = live.step()
    stamps = [(BEGIN, "a"), (BEGIN + 1, "b"), (BEGIN + 2, "a"), (BEGIN + 4, "a")]
    assert answers["pressed"] == [*stamps, (BEGIN + 999_995, "a")]
    assert answers["log"] == [(BEGIN + 3, BEGIN, "a")]


def test_a_stamp_is_not_earlier_than_what_has_been_passed() -> None:
    live = engine(Readings())
    live.advance(BEGIN + 7, "report.sys")
    live.push("report", [(BEGIN, "a")])
    live.tick("key", BEGIN + 9)
    live.push("key", [("a",)])
    live.end()
    answers = live.step()
    assert answers["log"] == [(BEGIN + 7, BEGIN, "a")]
    assert answers["pressed"] == [(BEGIN + 9, "a")]
    assert live.report.streams["report"].late == 0


def test_relations_with_a_stamp_hold() -> None:
    live = engine(Readings())
    live.push("report", [(BEGIN + 1, "future"), (BEGIN - 3_600_000_001, "old"), (BEGIN, "b")])
    reasons = [reject.reason for reject in live.rejects]
    assert [reason.partition(":")[0] for reason in reasons] == [
        "breaks `where app <= sys`",
        "breaks `where sys <= app + 1h`",
    ]
    live.end()
    assert [row[2] for row in live.step()["log"]] == ["b"]


def test_the_clock_moves_time_in_silence() -> None:
    clock = Readings()
    live = engine(clock)
    live.push("key", [("a",)])
    assert live.step()["unreported"] == []
    live.tick("report", BEGIN + 2_000_000)
    assert live.step()["unreported"] == []
    live.tick("report", BEGIN + 2_000_001)
    assert live.step()["unreported"] == [(BEGIN, "a")]


def test_a_log_gives_the_same_answers() -> None:
    live = engine(Readings())
    live.push("key", [("a",), ("b",)])
    live.push("report", [(BEGIN, "b")])
    live.end()
    answers = live.step()
    replay = engine()
    replay.push("key", live.facts("key"))
    replay.push("report", live.facts("report"))
    replay.end()
    assert replay.step() == answers
    assert answers["unreported"] == [(BEGIN, "a")]


def test_a_restart_goes_on_behind_the_last_stamp() -> None:
    first = engine(Readings())
    first.push("key", [("a",)] * 3)
    second = engine(Readings(BEGIN - 100))
    second.load(first.save())
    second.push("key", [("b",)])
    second.end()
    assert second.step()["pressed"] == [(BEGIN + i, "a") for i in range(3)] + [(BEGIN + 3, "b")]


def test_facts_say_when_they_arrived() -> None:
    program = streamlog.compile(f"{PROGRAM}\nkey(@2026-11-15T08:00:00Z, x).")
    live = Engine(program, Kernel, clock=Readings())
    live.push("key", [("y",)])
    live.end()
    assert [what for _, what in live.step()["pressed"]] == ["x", "y"]
