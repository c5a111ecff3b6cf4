"""The engine: rows in, answers out, and what it says about itself."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from streaming import ALARM, FIRST, compiled

from streamlog.compiler import Mode
from streamlog.runtime.engine import Engine, EngineError
from streamlog.runtime.executor import END, LimitError
from streamlog.runtime.query import QueryError
from streamlog.runtime.report import StreamCount

# Logical time, so that times can be read.
LOGICAL = """
stream pre(T: int, area: string) slack 2.
stream report(T: int, area: string) slack 2 idle 10.
output alarm.
alarm(T, A) <- pre(T, A), not (report(T1, A), T <= T1, T1 <= T + 5).
"""


def test_an_answer_comes_when_its_time_is_closed(engine) -> None:
    e = engine(LOGICAL)
    e.push("pre", [(10, "gate1")])
    e.advance(15)
    assert e.step() == {"alarm": []}  # a report at 15 could still come
    e.advance(16)
    assert e.step() == {"alarm": [(10, "gate1")]}
    e.end()
    assert e.step() == {"alarm": []}
    assert e.facts("alarm") == [(10, "gate1")]


def test_facts_close_time_too(engine) -> None:
    e = engine(LOGICAL)
    e.push("pre", [(10, "gate1"), (18, "gate2")])
    e.push("report", [(12, "gate9"), (18, "gate9")])
    assert e.step() == {"alarm": [(10, "gate1")]}


def test_nothing_is_evaluated_before_a_step(engine) -> None:
    e = engine(LOGICAL)
    e.push("pre", [(10, "gate1")])
    e.end()
    assert e.facts("alarm") == []
    assert e.facts("pre") == [(10, "gate1")]


def test_slack_lets_rows_come_out_of_order(engine) -> None:
    rows = [(10, "a"), (11, "b"), (12, "c")]
    for order in itertools.permutations(rows):
        e = engine("stream s(T: int, x: string) slack 2.\noutput p.\np(T, X) <- s(T, X).")
        e.push("s", order)
        e.end()
        assert e.step() == {"p": rows}
        assert e.late == []


def test_late_rows_change_nothing(engine) -> None:
    e = engine(LOGICAL)
    e.push("pre", [(10, "gate1"), (7, "gate2"), (8, "gate3")])
    assert [(x.stream, x.row) for x in e.late] == [("pre", (7, "gate2"))]
    assert e.late[0].reason == "7 is earlier than 8, which `pre` has passed"
    e.end("report")
    e.push("report", [(20, "gate1")])
    assert e.late[1].reason == "`report` has ended"
    e.end()
    assert e.step() == {"alarm": [(8, "gate3"), (10, "gate1")]}
    assert e.report.streams["pre"] == StreamCount(rows=3, late=1)
    assert e.report.streams["report"] == StreamCount(rows=1, late=1)


def test_lateness_does_not_depend_on_the_cut(engine) -> None:
    rows = [(10, "a"), (7, "b"), (8, "c"), (14, "d"), (11, "e"), (12, "f")]
    found = []
    for cut in range(1, len(rows) + 1):
        e = engine(LOGICAL)
        for i in range(0, len(rows), cut):
            e.push("pre", rows[i : i + cut])
            e.step()
        found.append([x.row for x in e.late])
    assert all(late == [(7, "b"), (11, "e")] for late in found)


def test_duplicates_collapse_and_are_counted(engine) -> None:
    e = engine(LOGICAL)
    e.push("pre", [(10, "gate1"), (10, "gate1"), (11, "gate1"), (10, "gate1")])
    e.step()
    e.end()
    assert e.step()["alarm"] == [(10, "gate1"), (11, "gate1")]
    assert e.report.streams["pre"] == StreamCount(rows=4, duplicates=2)
    assert e.facts("pre") == [(10, "gate1"), (11, "gate1")]


def test_an_idle_stream_stops_holding_the_others_back(engine) -> None:
    e = engine(LOGICAL)
    e.push("pre", [(10, "gate1"), (27, "gate2")])
    assert e.progress.values() == {"pre": 25, "report": 15}
    assert e.step() == {"alarm": []}
    e.push("pre", [(28, "gate2")])
    assert e.step() == {"alarm": [(10, "gate1")]}


def test_one_absurd_time_does_not_close_time_for_everyone(engine) -> None:
    e = engine(LOGICAL.replace("slack 2.", "slack 2 horizon 100.", 1))
    e.push("pre", [(10, "gate1"), (9_999, "noise"), (90, "gate2"), (190, "gate3"), (291, "x")])
    assert [r.raw for r in e.rejects] == [(9_999, "noise"), (291, "x")]
    assert e.rejects[0].reason == (
        "9999 is more than the horizon of 100 after 10, the latest time known"
    )
    e.end()
    assert e.step() == {"alarm": [(10, "gate1"), (90, "gate2"), (190, "gate3")]}


def test_another_streams_progress_vouches_for_a_time(engine) -> None:
    e = engine(LOGICAL.replace("slack 2.", "slack 2 horizon 100.", 1))
    e.push("pre", [(10, "gate1")])
    e.push("report", [(5_000, "gate9")])
    e.push("pre", [(5_000, "gate2")])
    assert e.rejects == []


def test_program_facts_come_first_in_the_order_of_time(engine) -> None:
    e = engine(FIRST + "msg(3, red). msg(1, red). msg(2, blue).")
    e.end()
    assert e.step() == {"first": [(1, "red"), (2, "blue")]}
    assert e.late == []
    e = engine(FIRST + "msg(3, red). msg(1, red).")
    e.push("msg", [(2, "green"), (3, "blue")])
    assert [x.row for x in e.late] == [(2, "green")]


def test_program_facts_are_believed_beyond_the_horizon(engine) -> None:
    e = engine("stream s(T: int) horizon 5.\noutput p.\np(T) <- s(T).\ns(1). s(1000).")
    e.end()
    assert e.step() == {"p": [(1,), (1000,)]}


def test_tables(engine) -> None:
    text = """
    stream seen(T: int, a: string).
    table adjacent(a: string, b: string).
    output near.
    near(T, B) <- seen(T, A), adjacent(A, B).
    adjacent(x, y).
    """
    e = engine(text, tables={"adjacent": [("y", "z"), {"a": "x", "b": "w"}, ("bad",), ("x", "y")]})
    e.push("seen", [(1, "x")])
    e.end()
    assert e.step() == {"near": [(1, "w"), (1, "y")]}
    assert e.facts("adjacent") == [("x", "w"), ("x", "y"), ("y", "z")]
    assert e.rejects[0].reason == "1 values where 2 are wanted"
    with pytest.raises(EngineError, match="`seen` is not a table"):
        engine(text, tables={"seen": []})


def test_batch_programs_answer_at_the_end(engine) -> None:
    text = "output last.\nlast(T, X) <- s(T, X), not (s(T1, X), T1 > T)."
    e = engine(text, mode=Mode.BATCH)
    e.push("s", [(1, "a"), (2, "b"), (3, "a")])
    e.advance(100)
    assert e.step() == {"last": []}
    assert str(e.status()[0]) == "last at 1: waiting for `s`, last seen 3"
    assert e.status()[0].needs is None
    e.end()
    assert e.step() == {"last": [(2, "b"), (3, "a")]}
    assert e.status() == ()


def test_what_holds_an_output_back(engine) -> None:
    e = engine(ALARM)
    e.push("pre_alarm", [("2026-11-15T08:00:10Z", "gate1"), ("2026-11-15T08:04:19Z", "gate2")])
    e.push("report", [("2026-11-15T08:04:10Z", "gate9")])
    e.step()
    (held,) = e.status()
    assert str(held) == (
        "pc_alarm at 2026-11-15T08:00:10Z: waiting for `report`, last seen 08:04:10"
    )
    assert (held.output, held.stream) == ("pc_alarm", "report")
    assert held.needs == held.at + 300_000_000
    assert held.progress == held.seen - 10_000_000
    e.end()
    e.step()
    assert e.status() == ()


def test_a_stream_that_was_never_seen_is_named(engine) -> None:
    e = engine(LOGICAL.replace(" idle 10", ""))
    e.push("pre", [(10, "gate1"), (20, "gate1")])
    e.step()
    assert str(e.status()[0]) == "alarm at 10: waiting for `report`, never seen"


def test_figures(engine) -> None:
    e = engine(LOGICAL)
    e.push("pre", [(10, "gate1"), (10, "gate1"), (1, "late"), ("x", "y")])
    e.step()
    assert e.report.state_high >= 1
    e.end()
    e.step()
    report = e.report
    assert report.streams["pre"] == StreamCount(rows=4, late=1, rejected=1, duplicates=1)
    assert report.answers == {"alarm": 1}
    assert report.steps == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.push("repot", []), "there is no predicate `repot`.*did you mean `report`"),
        (lambda e: e.push("alarm", []), "`alarm` is not a stream but a derived predicate"),
        (lambda e: e.advance(5, "nothing"), "there is no predicate `nothing` in this program"),
        (lambda e: e.end("alarm"), "is not a stream"),
        (lambda e: e.advance(2**64), "is not a valid timestamp"),
        (lambda e: e.facts("nothing"), "there is no predicate"),
    ],
)
def test_misuse(engine, call: Any, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        call(engine(LOGICAL))


def test_a_program_with_errors_does_not_run() -> None:
    from oracle.executor import NaiveExecutor

    from streamlog.compiler import compile_source
    from streamlog.diagnostics import Source

    with pytest.raises(EngineError, match="the program has errors"):
        Engine(compile_source(Source("x", "p(T) <- .")), NaiveExecutor)


class Failing:
    """An executor that gives up."""

    def __init__(self, *_: object) -> None:
        self.fails = True

    def step(self, arrived: Any, progress: Any) -> Any:
        raise LimitError("rule 1 has run 100 rounds")

    def holding(self) -> dict[str, Any]:
        return {}

    save = holding

    def load(self, saved: Any) -> None:
        pass


def test_a_limit_passes_through_and_no_row_is_lost() -> None:
    e = Engine(compiled(LOGICAL), Failing)
    e.push("pre", [(10, "gate1"), (20, "gate2")])
    with pytest.raises(LimitError, match="100 rounds"):
        e.step()
    assert e.facts("pre") == [(10, "gate1"), (20, "gate2")]
    with pytest.raises(EngineError, match="cut short: rule 1 has run 100 rounds"):
        e.step()
    with pytest.raises(EngineError, match="cut short"):
        e.save()


def test_rows_before_a_failing_source_are_kept(engine) -> None:
    def rows() -> Any:
        yield (10, "gate1")
        raise OSError("the disk is gone")

    e = engine(LOGICAL)
    with pytest.raises(OSError, match="disk"):
        e.push("pre", rows())
    assert e.facts("pre") == [(10, "gate1")]
    assert e.progress["pre"].progress == 8
    assert e.report.streams["pre"].rows == 1


def test_an_engine_may_forget(engine) -> None:
    e = engine(LOGICAL, remember=False)
    e.push("pre", [(10, "gate1")])
    e.end()
    assert e.step() == {"alarm": [(10, "gate1")]}
    with pytest.raises(QueryError, match="does not remember the facts of `alarm`"):
        e.facts("alarm")


def test_an_undeclared_clock_is_what_the_rows_say(engine) -> None:
    e = engine(FIRST)
    assert e.clock("first") is None
    e.push("msg", [("2026-11-15T08:00:00Z", "red")])
    assert str(e.clock("first")) == "time"
    e.end()
    assert e.progress["msg"].progress == END
    assert e.step() == {"first": [(1794729600000000, "red")]}


def test_a_long_join_is_stopped_though_it_is_no_recursion() -> None:
    from streamlog.kernel import Kernel
    from streamlog.runtime.executor import Limits

    e = Engine(compiled("p(T, X) <- s(T, X)."), Kernel, limits=Limits(seconds=0.0))
    e.push("s", [(t, "x") for t in range(5_000)])
    with pytest.raises(
        LimitError, match=r"stopped after 0 seconds \(--max-seconds\): in joins that start from s"
    ):
        e.step()
