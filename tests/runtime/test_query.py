"""One-time queries over what has been received and released."""

from __future__ import annotations

import pytest
from streaming import FIRST

from streamlog.runtime.query import QueryError

MSG = FIRST + "table colour(name: string, warm: bool).\ncolour(red, true). colour(blue, false).\n"
ROWS = [(1, "red"), (2, "blue"), (3, "red"), (5, "green")]


@pytest.fixture
def ran(engine):
    e = engine(MSG)
    e.push("msg", ROWS)
    e.end()
    e.step()
    return e


@pytest.mark.parametrize(
    ("query", "answers"),
    [
        ("?first(T, red).", [{"T": 1}]),
        ("first(T, X)", [{"T": 1, "X": "red"}, {"T": 2, "X": "blue"}, {"T": 5, "X": "green"}]),
        ("?- first(T, _).", [{"T": 1}, {"T": 2}, {"T": 5}]),
        ("msg(T, X), not first(T, X)", [{"T": 3, "X": "red"}]),
        ("msg(T, X), T > 1, T <= 3", [{"T": 2, "X": "blue"}, {"T": 3, "X": "red"}]),
        ("msg(T, X), colour(X, W)", None),
        ("msg(T, X), not colour(X, _)", [{"T": 5, "X": "green"}]),
        ("previous(4, X)", [{"X": "blue"}, {"X": "red"}]),
        ("previous(1, red)", []),
        ("previous(2, red)", [{}]),
        ("msg(T, X), previous(T, X)", [{"T": 3, "X": "red"}]),
        ("msg(T, X), N = length(X), N > 4", [{"T": 5, "X": "green", "N": 5}]),
        ("msg(T, red), T = U - 1", [{"T": 1, "U": 2}, {"T": 3, "U": 4}]),
        ('msg(T, X), (X = "red" ; T = 5)', None),
        ("tick(T), T > 2", [{"T": 3}, {"T": 5}]),
        ("msg(T, X), contains(X, ee)", [{"T": 5, "X": "green"}]),
        ('msg(T, X), matches(X, "^b")', [{"T": 2, "X": "blue"}]),
        ("msg(T, X), starts_with(X, gr)", [{"T": 5, "X": "green"}]),
        ("msg(T, red), not (msg(T1, red), T1 > T)", [{"T": 3}]),
        ('msg(1, X), Y = upper(X) ++ "!"', [{"X": "red", "Y": "RED!"}]),
        ("msg(T, X), T % 2 = 0, Y = T / 4", [{"T": 2, "X": "blue", "Y": 0.5}]),
    ],
)
def test_answers(ran, query: str, answers: list[dict[str, object]] | None) -> None:
    found = ran.query(query)
    if answers is None:
        assert len(found) == 3
    else:
        assert found == answers


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("frist(T, X)", "there is no predicate `frist`.*did you mean `first`"),
        ("first(T)", "`first` has 2 arguments"),
        ("previous(T, X)", "can only test a value of its first argument"),
        ("msg(T, X), X > 5, X = red", "does not take|where"),
        ("msg(T, X", "expected"),
        ("p(T) <- msg(T, X)", "expected|one query"),
        ("msg(T, X), Y > 5", "nothing binds `Y`"),
        ("msg(T, X), Y = T // 0", "division by zero"),
        ("msg(T, X), Y = T * 9223372036854775807, T > 1", "does not fit into 64 bits"),
        ('msg(T, X), matches(X, "(")', "is not a regular expression"),
    ],
)
def test_refusals(ran, query: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        ran.query(query)


def test_a_comparison_of_different_kinds(engine) -> None:
    e = engine("p(T, X) <- m(T, X).")
    e.push("m", [(1, "a"), (2, 3)])
    e.end()
    e.step()
    with pytest.raises(QueryError, match="values of different kinds meet"):
        e.query("m(T, X), m(T1, Y), X < Y")


def test_alternatives_may_have_variables_of_their_own(ran) -> None:
    assert ran.query("msg(T, red) ; msg(U, blue)") == [{"T": 1}, {"T": 3}, {"U": 2}]


CHAIN = """
step(T, N) <- s(T, N).
linked(T, N) <- s(T1, N), T1 < T, N = 0.
linked(T, N) <- s(T1, N), T1 < T, M = N - 1, linked(T1, M).
"""


@pytest.mark.parametrize(
    ("query", "answers"),
    [
        ("linked(9, N)", [{"N": 0}, {"N": 1}, {"N": 2}, {"N": 3}]),
        ("step(T, N), linked(T, N)", []),
        ("step(T, N), not linked(4, N)", [{"T": 4, "N": 3}]),
        ("step(T, N), linked(8 // T, N), not step(8 // T, 3)", [{"T": 1, "N": 0}]),
        ("step(T, N), not (U = T + 1, linked(U, N))", []),
    ],
)
def test_an_open_predicate_that_calls_itself(engine, query: str, answers: list[object]) -> None:
    e = engine(CHAIN)
    e.push("s", [(n + 1, n) for n in range(4)])
    e.end()
    e.step()
    assert e.query(query) == answers


def test_an_open_predicate_that_calls_itself_too_often(engine) -> None:
    e = engine(CHAIN)
    e.push("s", [(n + 1, n) for n in range(150)])
    e.end()
    e.step()
    with pytest.raises(QueryError, match="`linked` calls itself more than 100 times here"):
        e.query("linked(150, 148)")


def test_the_same_query_may_be_asked_again(ran) -> None:
    assert ran.query("first(T, red)") == ran.query("first(T, red)")


def test_open_predicates_cannot_be_listed(ran) -> None:
    with pytest.raises(QueryError, match="infinitely many answers"):
        ran.facts("previous")


KEPT = """
stream a(T: int, x: string).
stream b(T: int, x: string) keep 10.
output p.
p(T, X) <- a(T, X), b(T1, X), T - 3 <= T1, T1 <= T, X != "never".
"""


def test_dropped_history_is_refused_with_its_horizon(engine) -> None:
    e = engine(KEPT, remember=False)
    assert e.query("b(T, X)") == []  # nothing has come, so nothing is gone
    e.push("b", [(t, "x") for t in range(0, 101, 5)])
    e.push("a", [(100, "x")])
    e.step()
    with pytest.raises(QueryError, match=r"`b` is kept for 10: .* at or before 90 .* `T > 90`"):
        e.query("b(T, X)")
    with pytest.raises(QueryError, match="kept for 10"):
        e.query("b(T, X), T >= 90")
    assert e.query("b(T, X), T > 90") == [{"T": 95, "X": "x"}, {"T": 100, "X": "x"}]
    assert e.query("b(95, X)") == [{"X": "x"}]
    e.end()
    e.step()
    assert e.query("b(T, X), T > 96") == [{"T": 100, "X": "x"}]


def test_what_declares_no_keep_is_refused(engine) -> None:
    """Rules may need some of it; that is not the same as all of it."""
    e = engine(KEPT, remember=False)
    e.push("a", [(100, "x")])
    e.step()
    with pytest.raises(QueryError, match=r"of `p` are not kept; run with an engine that remember"):
        e.query("p(T, X)")
    with pytest.raises(QueryError, match=r"of `a` are not kept; declare `keep` for it, or run"):
        e.query("a(T, X), T > 99")
    with pytest.raises(QueryError, match=r"of `tick` are not kept"):
        e.query("tick(T)")


def test_kept_is_all_of_it_whatever_rules_read(engine) -> None:
    text = (
        "stream m(T: int, x: string) keep 5.\noutput p.\np(T) <- m(T, red), m(T0, red), T0 < T.\n"
    )
    e = engine(text, remember=False)
    e.push("m", [(1, "blue"), (2, "red"), (3, "blue"), (3, "red")])
    e.step()
    assert e.query("m(T, X), T > 2") == [{"T": 3, "X": "blue"}, {"T": 3, "X": "red"}]


def test_kept_history_survives_a_restart(engine) -> None:
    e, again = (engine(KEPT, remember=False) for _ in range(2))
    e.push("b", [(t, "x") for t in range(0, 101, 5)])
    e.step()
    again.load(e.save())
    assert again.query("b(T, X), T > 90") == e.query("b(T, X), T > 90") != []


def test_an_engine_that_remembers_refuses_nothing(engine) -> None:
    e = engine(KEPT)
    e.push("b", [(t, "x") for t in range(0, 101, 5)])
    e.push("a", [(100, "x")])
    e.step()
    assert len(e.query("b(T, X)")) == 21


PARTLY_READ = """
stream a(T: int, x: string).
stream b(T: int, x: string, note: string) {keep}.
output p.
p(T, X) <- a(T, X), b(T1, X, _), T - 10 <= T1, T1 <= T.
"""


def test_what_no_rule_reads_is_not_kept(engine) -> None:
    e = engine(PARTLY_READ.replace(" {keep}", ""), remember=False)
    e.push("b", [(95, "x", "one"), (100, "x", "two")])
    e.push("a", [(100, "x")])
    e.step()
    with pytest.raises(QueryError, match="the facts of `b` are not kept"):
        e.query("b(T, X, N), T > 90")


def test_a_declaration_keeps_whole_facts(engine) -> None:
    e = engine(PARTLY_READ.replace("{keep}", "keep 20"), remember=False)
    e.push("b", [(t, "x", "note") for t in range(0, 101, 5)])
    e.push("a", [(100, "x")])
    e.step()
    assert len(e.query("b(T, X, N), T > 80")) == 4
    with pytest.raises(QueryError, match="`b` is kept for 20"):
        e.query("b(T, X, N), T > 79")
