"""How far streams have come: facts, slack, advance, end, idle and horizon."""

from __future__ import annotations

import pytest
from streaming import ALARM, compiled

from streamlog.runtime.executor import BEGIN, END
from streamlog.runtime.progress import Clock, Progress


def saw(progress: Progress, stream: str, time: int) -> None:
    clock = progress[stream]
    progress.saw(clock, time, time - clock.slack)


def test_the_declarations_are_read() -> None:
    progress = Progress.of(compiled(ALARM))
    assert progress["report"] == Clock(
        "report", progress["report"].type, 10_000_000, 30_000_000, None
    )
    assert progress.values() == {"pre_alarm": BEGIN, "report": BEGIN}


def test_a_fact_moves_it_to_its_time_less_slack() -> None:
    progress = Progress([Clock("a", slack=3), Clock("b")])
    saw(progress, "a", 10)
    assert progress.values() == {"a": 7, "b": BEGIN}
    saw(progress, "a", 9)
    assert progress["a"].progress == 7
    assert progress["a"].last_seen == 10
    assert progress["b"].last_seen is None


def test_advance_and_end() -> None:
    progress = Progress([Clock("a"), Clock("b")])
    progress.advance(5)
    assert progress.values() == {"a": 5, "b": 5}
    progress.advance(8, "a")
    progress.advance(2)
    assert progress.values() == {"a": 8, "b": 5}
    progress.end("a")
    progress.advance(9)
    assert progress.values() == {"a": END, "b": 9}
    progress.end()
    assert progress.values() == {"a": END, "b": END}


def test_an_idle_stream_is_lifted() -> None:
    progress = Progress([Clock("a"), Clock("quiet", idle=10), Clock("c")])
    saw(progress, "a", 5)
    assert progress["quiet"].progress == -5  # more than 10 behind: the beginning is far away
    saw(progress, "quiet", 0)
    saw(progress, "a", 10)
    assert progress["quiet"].progress == 0
    saw(progress, "c", 25)
    assert progress.values() == {"a": 10, "quiet": 15, "c": 25}
    # When it comes back, it is not idle any more.
    saw(progress, "quiet", 30)
    assert progress["quiet"].progress == 30


def test_the_end_of_one_stream_is_no_time_for_another() -> None:
    progress = Progress([Clock("a"), Clock("quiet", idle=10)])
    saw(progress, "a", 50)
    progress.end("a")
    assert progress["quiet"].progress == 40
    progress.advance(0)
    assert progress["quiet"].progress == 40


def test_idle_streams_do_not_lift_each_other() -> None:
    progress = Progress([Clock("a", idle=1), Clock("b", idle=1)])
    saw(progress, "a", 10)
    assert progress.values() == {"a": 10, "b": 9}
    progress.advance(0)
    assert progress.values() == {"a": 10, "b": 9}


@pytest.mark.parametrize("stream", ["a", "b"])
def test_what_vouches_for_a_time(stream: str) -> None:
    progress = Progress([Clock("a"), Clock("b", slack=5)])
    assert progress.known(stream) == BEGIN
    saw(progress, "a", 10)
    assert progress.known(stream) == 10
    saw(progress, "b", 12)
    assert progress.known("b") == 12
    assert progress.known("a") == 10  # of another stream only the progress counts
