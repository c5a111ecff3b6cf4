"""A source is asked how far it is when its stream alone holds an answer back."""

from __future__ import annotations

import streamlog
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine

# Streamlog, section 6: a union of two streams waits for the one of which nothing comes.
UNION = """
stream sensr1(T: int, x: string).
stream sensr2(T: int, x: string).
output msg.
msg(T, X) <- sensr1(T, X), not blocked(T, X).
msg(T, X) <- sensr2(T, X), not blocked(T, X).
blocked(T, X) <- sensr1(T, X), sensr2(T, X).
"""


class Source:
    """Says how far it is, and counts how often it was asked."""

    def __init__(self, *answers: int | None) -> None:
        self.answers, self.asked = list(answers), 0

    def __call__(self) -> int | None:
        self.asked += 1
        return self.answers.pop(0) if self.answers else None


def engine(text: str = UNION) -> Engine:
    return Engine(streamlog.compile(text), Kernel)


def test_a_stream_that_alone_holds_an_answer_back_is_asked() -> None:
    run, source = engine(), Source(4, 11)
    run.ask("sensr2", source)
    run.push("sensr1", [(3, "a"), (10, "b"), (20, "c")])
    assert run.step()["msg"] == [(3, "a")]  # a wait for 4 was over at once
    assert source.asked == 1
    assert run.step()["msg"] == [(10, "b")]
    assert source.asked == 2
    assert run.progress["sensr2"].progress == 11


def test_nobody_is_asked_while_two_hold_it_back_or_none_does() -> None:
    run, first, second = engine(), Source(), Source()
    run.ask("sensr1", first)
    run.ask("sensr2", second)
    run.step()
    assert (first.asked, second.asked) == (0, 0)  # no event has come
    run.push("sensr1", [(5, "a")])  # at 5 more may come on either
    run.step()
    assert (first.asked, second.asked) == (0, 0)
    run.push("sensr1", [(6, "a")])
    run.step()
    assert (first.asked, second.asked) == (0, 1)
    run.advance(9)
    assert run.step()["msg"] == [(5, "a"), (6, "a")]
    assert (first.asked, second.asked) == (0, 1)


def test_who_was_asked_is_in_the_status() -> None:
    run = engine()
    run.push("sensr1", [(5, "a"), (6, "b")])
    run.step()
    assert [h.message for h in run.status()] == ["msg at 5: waiting for `sensr2`, never seen"]
    run.ask("sensr2", Source())
    run.step()
    (held,) = run.status()
    assert held.message == "msg at 5: waiting for `sensr2`, never seen; its source was asked"


def test_the_answers_are_those_without_asking() -> None:
    plain, asking = engine(), engine()
    asking.ask("sensr2", Source(2, 3, None, 9))
    rows = [("sensr1", (1, "a")), ("sensr1", (3, "b")), ("sensr1", (7, "c")), ("sensr2", (9, "c"))]
    found = []
    for stream, row in rows:
        plain.push(stream, [row])
        asking.push(stream, [row])
        found += asking.step()["msg"]
    plain.end()
    asking.end()
    assert sorted(found + asking.step()["msg"]) == plain.step()["msg"]


def test_a_source_of_a_stream_with_two_timelines() -> None:
    run, source = (
        engine("""
        stream e(T: int, x: string).
        stream s(t: int, u: int, x: string) progress t, u.
        output p.
        p(T, X) <- e(T, X), not (s(_, U, X), T <= U, U <= T + 5).
        """),
        Source(7),
    )
    run.push("e", [(1, "a"), (9, "b")])
    run.ask("s", Source(100))
    assert run.step()["p"] == []  # `t` does not bound it
    run.ask("s.u", source)
    assert run.step()["p"] == [(1, "a")] and source.asked == 1
