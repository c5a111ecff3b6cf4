"""The reorder buffer: in any order in, in the order of time out, nothing twice."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from streamlog.runtime.executor import BEGIN, END
from streamlog.runtime.reorder import Buffer


def test_what_is_later_than_progress_is_held() -> None:
    buffer = Buffer()
    buffer.fresh += [(3, "c"), (1, "a"), (2, "b")]
    assert buffer.take(2) == [(1, "a"), (2, "b")]
    assert len(buffer) == 1
    assert buffer.earliest() == 3
    assert buffer.take(2) == []
    assert buffer.take(END) == [(3, "c")]
    assert buffer.earliest() is None


def test_rows_of_one_time_keep_their_order() -> None:
    buffer = Buffer()
    buffer.fresh += [(2, "z"), (1, "b"), (1, "a"), (2, "y")]
    assert buffer.take(1) == [(1, "b"), (1, "a")]
    buffer.fresh += [(2, "x")]
    assert buffer.take(2) == [(2, "z"), (2, "y"), (2, "x")]


def test_duplicates_leave_once() -> None:
    buffer = Buffer()
    buffer.fresh += [(1, "a"), (1, "a"), (2, "b"), (1, "a")]
    assert buffer.take(1) == [(1, "a")]
    assert buffer.duplicates == 2
    buffer.fresh += [(1, "a"), (1, "c"), (2, "b")]  # at the instant of progress, so not late
    assert buffer.take(1) == [(1, "c")]
    assert buffer.duplicates == 3
    buffer.fresh += [(1, "c"), (1, "a")]
    assert buffer.take(2) == [(2, "b")]
    assert buffer.duplicates == 6


def test_a_take_can_be_undone() -> None:
    buffer = Buffer()
    buffer.fresh += [(1, "a"), (2, "b"), (1, "a")]
    before = buffer.rows()
    assert buffer.take(1) == [(1, "a")]
    buffer.put_back()
    assert (buffer.rows(), buffer.edge(), buffer.duplicates) == (before, [], 0)
    assert buffer.take(2) == [(1, "a"), (2, "b")]
    assert buffer.duplicates == 1


def test_restored_it_goes_on() -> None:
    buffer = Buffer()
    buffer.fresh += [(1, "a"), (3, "b")]
    buffer.take(1)
    other = Buffer()
    other.restore(buffer.rows(), buffer.edge(), buffer.duplicates)
    other.fresh += [(1, "a"), (2, "c")]
    assert other.take(END) == [(2, "c"), (3, "b")]
    assert other.duplicates == 1


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab"))), st.randoms())
def test_any_cut_gives_the_same_rows(rows: list[tuple[int, str]], rng: random.Random) -> None:
    buffer, progress, out = Buffer(), BEGIN, []
    accepted = []
    for row in rows:
        if row[0] >= progress:
            buffer.fresh.append(row)
            accepted.append(row)
        if rng.random() < 0.3:
            progress = max(progress, row[0] - rng.randrange(3))
            out += buffer.take(progress)
    out += buffer.take(END)
    assert [r[0] for r in out] == sorted(r[0] for r in out)
    assert len(out) == len(set(out))
    assert set(out) == set(accepted)
    assert buffer.duplicates == len(accepted) - len(out)
