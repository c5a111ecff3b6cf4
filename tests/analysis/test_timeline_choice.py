"""On which timeline a goal reads its stream, and what the contract says of it."""

from __future__ import annotations

import pytest

import streamlog
from streamlog.analysis.contract import Keeps
from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Source
from streamlog.syntax.pretty import pretty

DECLARED = """
stream e(T: int, x: string).
stream s(t: int, u: int, x: string) progress t, u{where}.
output p.
"""


def program(rules: str, where: str = "") -> Program:
    made = streamlog.compile(DECLARED.format(where=where) + rules)
    assert isinstance(made, Program)
    return made


def delays(made: Program, name: str = "p") -> list[tuple[tuple[str, int | None], ...]]:
    return [delay.ways for delay in made.contract[name].delays]


@pytest.mark.parametrize(
    ("rule", "goal"),
    [
        # Bounded on both: the first that is declared.
        ("p(T, X) <- e(T, X), not (s(T1, U, X), T1 = T, U = T).", "s(T1, U, X)"),
        # On one alone.
        ("p(T, X) <- e(T, X), not (s(_, U, X), T <= U, U <= T + 5).", "s.u(U, _, X)"),
        ("p(T, X) <- e(T, X), not (s(T1, U, X), T <= U, U <= T + 5).", "s.u(U, T1, X)"),
        # Bounded on both, but on the first without an end in the past.
        ("p(T, X) <- e(T, X), s(T1, U, X), T1 <= T, U <= T, U > T - 9.", "s.u(U, T1, X)"),
        # The head's timestamp may be any of them.
        ("p(U, X) <- s(T, U, X).", "s.u(U, T, X)"),
        ("p(T, X) <- s(T, U, X).", "s(T, U, X)"),
    ],
)
def test_a_goal_is_put_on_the_timeline_that_suits_it(rule: str, goal: str) -> None:
    (time,) = program(rule).times
    assert goal in [pretty(g.atom) for g in time.goals]


def test_delays_are_by_stream_and_column() -> None:
    made = program("p(T, X) <- e(T, X), not (s(_, U, X), T <= U, U <= T + 5).")
    assert delays(made) == [(("e", 0),), (("s.u", 5),)]
    assert made.contract["s.u"].kept.span == 5


def test_any_timeline_that_has_passed_it_is_enough() -> None:
    """TSA, Definition 25."""
    rule = "p(T, X) <- e(T, X), not (s(T1, U, X), T1 >= T, T1 <= T + 3, U >= T, U <= T + 5)."
    assert delays(program(rule)) == [(("e", 0),), (("s", 3), ("s.u", 5))]


def test_what_is_declared_of_columns_counts() -> None:
    rule = "p(T, X) <- e(T, X), not (s(_, U, X), T <= U, U <= T + 5)."
    (_, on_both) = delays(program(rule, " where t <= u, u <= t + 2"))
    assert on_both == (("s", 5), ("s.u", 5))


def test_a_reader_of_one_timeline_waits_for_that_one() -> None:
    """A predicate that is read through another: both timelines add up alike."""
    made = program("""
        q(T, X) <- e(T, X), not (s(T1, U, X), T1 >= T, T1 <= T + 3, U >= T, U <= T + 5).
        p(T, X) <- e(T, X), not (q(T1, X), T1 >= T, T1 <= T + 10).
    """)
    assert delays(made) == [(("e", 10),), (("s", 13), ("s.u", 15))]
    # The wait for one alone is the longer one.
    made = program("""
        p(T, X) <- e(T, X), not (s(T1, U, X), T1 >= T, T1 <= T + 3, U >= T, U <= T + 5),
            not (s(T1, _, _), T1 = T + 3).
    """)
    assert delays(made) == [(("e", 0),), (("s", 3),)]


def test_a_goal_that_no_timeline_bounds_is_refused() -> None:
    text = DECLARED.format(where="") + "p(T, X) <- e(T, X), not (s(T1, U, X), T1 >= T, U >= T)."
    made = compile_source(Source("p.slog", text))
    assert [d.code for d in made.diagnostics if d.is_error] == ["SL0401"]


def test_one_timeline_is_as_it_was() -> None:
    rules = "output p. p(T, X) <- s(T, _, X), not (s(T1, U, X), T < T1, T1 <= T + 5, U > 3)."
    said = streamlog.compile("stream s(t: int, u: int, x: string) progress t slack 3." + rules)
    plain = streamlog.compile("stream s(t: int, u: int, x: string) slack 3." + rules)
    assert isinstance(said, Program) and isinstance(plain, Program)
    assert said.schema.timelines == plain.schema.timelines == ("s",)
    assert said.contract == plain.contract
    assert said.schema["s"].option("slack") == plain.schema["s"].option("slack")


def test_predictions() -> None:
    """A forecast is made before the time it is for: the latest that was made up to now."""
    made = streamlog.compile("""
        stream forecast(made: int, holds_at: int, place: string, level: int)
            progress made, holds_at where made <= holds_at, holds_at <= made + 24.
        stream now(T: int).
        output flood.
        flood(T, H, P) <- now(T), forecast(M, H, P, L), M <= T, H >= T, H <= T + 6, L > 9,
            not (forecast(M1, H, P, _), M < M1, M1 <= T).
    """)
    assert isinstance(made, Program)
    kept = {p.predicate.name: p.kept for p in made.contract.predicates}
    assert kept["forecast"].what is not Keeps.EVERYTHING
    assert delays(made, "flood") == [(("forecast", 0), ("forecast.holds_at", 6)), (("now", 0),)]


def test_the_first_column_must_make_progress() -> None:
    made = compile_source(Source("p.slog", "stream s(t: int, u: int) progress u."))
    (found,) = made.diagnostics
    assert found.message == "`t`, the first column, makes no progress"


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("progress t, v", "the stream has no column `v`"),
        ("progress t, t", "`t` makes progress twice"),
        ("progress t, x", "`x` is of type string, and cannot make progress"),
        ("progress t, o", "`o` makes progress, so it cannot be missing"),
        ("slack 3 progress t, u", "`slack` is said of no column"),
        ("progress t, u idle 3", "only the first column can be idle"),
        ("progress t slack 3 slack 4", "`slack` is given twice"),
    ],
)
def test_what_cannot_be(clause: str, message: str) -> None:
    text = f"stream s(t: int, u: int, x: string, o: int?) {clause}."
    made = compile_source(Source("p.slog", text))
    assert [d.message for d in made.diagnostics] == [message]


def test_a_table_makes_no_progress() -> None:
    made = compile_source(Source("p.slog", "table s(t: int, u: int) progress t."))
    assert [d.message for d in made.diagnostics] == ["a table makes no progress"]


def test_options_of_the_stream_stand_at_the_end_too() -> None:
    made = streamlog.compile('stream s(t: int, u: int) progress t slack 2, u slack 3 from "s.csv".')
    assert isinstance(made, Program)
    stream, view = made.schema["s"], made.schema["s.u"]
    assert stream.option("from") and stream.option("slack").value.value == 2
    assert view.option("slack").value.value == 3 and view.option("from") is None
