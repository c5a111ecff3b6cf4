"""Streams that make progress on several columns: when rows leave, who is late, what is known."""

from __future__ import annotations

import pytest

import streamlog
from streamlog.kernel import Kernel
from streamlog.runtime.data_files import SourceError
from streamlog.runtime.engine import Engine, EngineError
from streamlog.runtime.missing_inputs import check_inputs
from streamlog.syntax.walk import atoms

# TSA, section 2: the two minutes lie between the detection, in application time, and the reception
# of the report, in system time.
ALARM = """
stream detection(app: time, area: string).
stream report(app: time, sys: time, area: string) progress app, sys.
output alarm.
alarm(T, A) <- detection(T, A), not (report(_, S, A), T <= S, S <= T + 2min).
"""
TWO = """
stream s(t: int, u: int, x: string) progress t slack 2, u.
output p.
p(T, X) <- s(T, _, X).
"""


def engine(text: str) -> Engine:
    made = streamlog.compile(text)
    assert made.ok, made.diagnostics
    return Engine(made, Kernel)


def at(minute: int, second: int = 0) -> str:
    return f"2026-11-15T08:{minute:02}:{second:02}Z"


def test_the_precautionary_alarm_of_the_paper() -> None:
    run = engine(ALARM)
    run.push("detection", [(at(0), "a"), (at(1), "b")])
    # Two minutes after the detection by the clock of the reports, though none has come.
    run.advance(at(2), "report.sys")
    assert run.step()["alarm"] == []
    run.advance(at(2, 1), "report.sys")
    run.advance(at(2), "detection")
    assert [row[1] for row in run.step()["alarm"]] == ["a"]
    # Sent in time, received too late; and one that is received in time, of a time long ago.
    run.push("report", [(at(1, 5), at(2, 59), "b")])
    run.advance(at(10))
    assert run.step()["alarm"] == []
    assert run.report.streams["report"].late == 0


def test_a_report_that_is_received_too_late_does_not_count() -> None:
    run = engine(ALARM)
    run.push("detection", [(at(0), "a")])
    run.push("report", [(at(1), at(3), "a")])
    run.end()
    assert [row[1] for row in run.step()["alarm"]] == ["a"]


def test_a_row_is_late_if_one_timeline_has_passed_it() -> None:
    run = engine(TWO)
    run.push("s", [(10, 5, "a"), (9, 4, "late on u"), (7, 6, "late on t"), (8, 6, "in time")])
    assert [(late.row[2], late.timeline) for late in run.late] == [
        ("late on u", "s.u"),
        ("late on t", "s"),
    ]
    assert run.late[0].reason == "4 is earlier than 5, which `s.u` has passed"
    assert run.late[1].reason == "7 is earlier than 8, which `s` has passed"
    assert run.report.streams["s"].late == 2


def test_a_row_is_known_when_one_timeline_has_passed_it() -> None:
    run = engine(TWO)
    run.push("s", [(10, 5, "a"), (20, 3 + 2, "b"), (30, 90, "c")])
    assert [row[1] for row in run.step()["p"]] == ["a", "b", "c"]  # u has come to 90
    run.push("s", [(40, 91, "d")])
    run.advance(0, "s.u")
    assert [row[1] for row in run.step()["p"]] == ["d"]


def test_duplicates_are_left_out_as_long_as_they_may_come() -> None:
    run = engine(TWO)
    run.push("s", [(10, 5, "a"), (10, 5, "a")])
    assert len(run.step()["p"]) == 1
    run.push("s", [(10, 5, "a"), (11, 6, "b")])
    assert [row[1] for row in run.step()["p"]] == ["b"]
    assert run.report.streams["s"].duplicates == 2
    run.push("s", [(10, 5, "a")])
    assert run.report.streams["s"].late == 1


def test_what_waits_survives_a_restart() -> None:
    text = """
    stream s(t: int, u: int, x: string) progress t slack 10, u slack 10.
    output p.
    p(U, X) <- s(_, U, X), not (s(_, V, X), V > U, V <= U + 3).
    """
    rows = [(1, 1, "a"), (2, 3, "a"), (5, 9, "b"), (30, 4, "b"), (31, 31, "a"), (32, 60, "b")]
    whole = engine(text)
    whole.push("s", rows)
    whole.end()
    expected = whole.step()["p"]
    for cut in range(len(rows)):
        first = engine(text)
        first.push("s", rows[:cut])
        found = first.step()["p"]
        second = engine(text)
        second.load(first.save())
        assert second.save() == first.save()
        second.push("s", rows[cut:])
        found += second.step()["p"]
        second.end()
        assert sorted(found + second.step()["p"]) == expected


def test_the_first_column_has_a_name_too() -> None:
    run = engine(TWO)
    run.advance(5, "s.t")
    assert (run.progress["s"].progress, run.progress["s.u"].progress) == (5, -(2**63))
    run.advance(6, "s.u")
    assert run.progress["s.u"].progress == 6
    with pytest.raises(EngineError, match=r"there is no predicate `s\.x`"):
        run.advance(7, "s.x")


def test_a_horizon_on_one_timeline() -> None:
    run = engine("""
    stream s(t: int, u: int, x: string) progress t, u horizon 10.
    output p.
    p(T, X) <- s(T, _, X).
    """)
    run.push("s", [(1, 1, "a"), (2, 100, "doubted"), (900, 5, "b")])
    assert [reject.raw[2] for reject in run.rejects] == ["doubted"]
    assert run.rejects[0].reason.startswith("100 is more than the horizon of 10 after 1")
    assert run.progress["s"].progress == 900


def test_the_wall_clock_moves_the_timeline_that_asks_for_it() -> None:
    run = engine(ALARM.replace("sys.", "sys arrives within 1s."))
    run.push("detection", [(at(0), "a")])
    run.end("detection")
    run.tick("report", at(2))
    assert run.step()["alarm"] == []
    run.tick("report", at(2, 2))
    assert len(run.step()["alarm"]) == 1


def test_the_facts_of_a_program_come_at_once() -> None:
    run = engine(TWO + 's(1, 9, "a"). s(2, 1, "b").')
    assert not run.late and [row[1] for row in run.step()["p"]] == ["a", "b"]


def test_queries_and_explanations_see_the_stream() -> None:
    run = engine(ALARM)
    run.push("report", [(at(1), at(3), "a")])
    assert len(run.facts("report")) == 1
    assert run.query("?report(_, S, A).")[0]["A"] == "a"


def test_a_stream_of_which_only_another_timeline_is_read_is_missed() -> None:
    program = streamlog.compile(ALARM)
    assert not any(a.pred == "report" for r in program.closed.schema.rules for a in atoms(r.body))
    with pytest.raises(SourceError, match="stream `report` has no rows"):
        check_inputs(program, {"detection"}, "")


# Garbage collection, Figures 9 to 11: to a reader a row is relevant while it is later than that
# reader's keep value on both columns, and it goes when it is relevant to none.
READERS = """
stream now(T: int).
stream d(p1: int, p2: int) progress p1, p2.
output q1, q2.
q1(T, A, B) <- now(T), d(A, B), A <= T, A > T - 10, B <= T, B > T - 2.
q2(T, A, B) <- now(T), d(A, B), A <= T, A > T - 2, B <= T, B > T - 10.
"""


def test_what_is_relevant_to_two_readers() -> None:
    run = engine(READERS)
    rows = {(a, b) for a in range(85, 101) for b in range(85, 101)}
    for row in rows:
        run.buffers["d"].fresh.append(row)  # all at once, none late
    run.advance(100)
    run.step()
    kept = {tuple(row) for row in run.executor.holding()["d"]}
    first = {(a, b) for a, b in rows if a > 90 and b > 98}  # Figure 9
    second = {(a, b) for a, b in rows if a > 98 and b > 90}
    assert kept == first | second
    # Figure 10 keeps the rectangle around both, as the paper does to save time; here not even what
    # is irrelevant to both is kept.
    around = {(a, b) for a, b in rows if a > 90 and b > 90}
    assert kept < around and (95, 95) in around - kept
    # Figure 11: each reader sees of what is left what is relevant to it.
    run.push("now", [(100,)])
    run.push("d", [(101, 101)])
    run.advance(101)
    answers = run.step()
    assert {row[1:] for row in answers["q1"]} == first
    assert {row[1:] for row in answers["q2"]} == second
