"""Relations between columns, declared and inferred, and what they are good for."""

from __future__ import annotations

import pytest

import streamlog
from streamlog.analysis.column_relations import at
from streamlog.compiler import Program
from streamlog.runtime.engine import Engine

SECOND, MINUTE, HOUR = 10**6, 60 * 10**6, 3600 * 10**6


def bounds(program: Program, pred: str) -> dict[tuple[int, int], int]:
    """The largest difference of each pair of columns that has one."""
    relation = program.relations.get(pred)
    arity = program.schema[pred].arity
    pairs = ((a, b) for a in range(arity) for b in range(arity) if a != b)
    found = {(a, b): relation.most(at(a), at(b)) for a, b in pairs} if relation else {}
    return {pair: most for pair, most in found.items() if most is not None}


def kept(program: Program, pred: str) -> tuple[str, int]:
    entry = program.contract[pred].kept
    return entry.what.value, entry.span


def delays(program: Program, pred: str) -> dict[str, int | None]:
    return {d.stream: d.by for d in program.contract[pred].delays}


REPORT = (
    "stream report(end: time, begin: time, area: string) where begin <= end, end <= begin + 1h.\n"
)


def test_a_clause_is_a_matrix() -> None:
    program = streamlog.compile(f"{REPORT}p(T, A) <- report(T, _, A).")
    assert bounds(program, "report") == {(0, 1): HOUR, (1, 0): 0}
    strict = "stream s(T: int, U: int, V: int) where U > T - 3, V = U + 2. p(T) <- s(T, _, _)."
    assert bounds(streamlog.compile(strict), "s") == {
        (0, 1): 2,
        (1, 2): -2,
        (2, 1): 2,
        (0, 2): 0,
    }


def test_a_bound_of_a_row_bounds_a_rule() -> None:
    """An alarm during a report: how long reports are is said once, in their declaration."""
    rule = "stream alarm(T: time, area: string). output p.\n"
    rule += "p(T, A) <- alarm(T, A), report(E, B, A), B <= T, T <= E."
    program = streamlog.compile(REPORT + rule)
    assert delays(program, "p") == {"alarm": 0, "report": HOUR}
    assert kept(program, "alarm") == kept(program, "report") == ("span", HOUR)
    with pytest.raises(streamlog.CompileError, match="SL0401"):
        streamlog.compile(REPORT.split(" where")[0] + ".\n" + rule)


def test_a_negated_goal_has_its_relation_too() -> None:
    program = streamlog.compile(
        REPORT + "stream alarm(T: time, area: string). output p.\n"
        "p(T, A) <- alarm(T, A), not (report(E, B, A), T <= E, B <= T)."
    )
    assert delays(program, "p") == {"alarm": 0, "report": HOUR}


def test_lazy_windows_as_tsa_prints_them() -> None:
    """The window's start is computed in one rule and used in another: ten seconds are kept."""
    program = streamlog.compile("""
        stream fire(T: time, area: string).
        stream smoke(T: time, area: string, value: float).
        output average.
        window(End, Start, A) <- fire(End, A), Start = End - 10s.
        window(End + 1s, Start + 1s, A) <-
            window(End, Start, A), fire(T, A), T <= End, End < T + 1h.
        average(End, A, avg(V)) <- window(End, Start, A), smoke(T, A, V), Start <= T, T <= End.
    """)
    assert bounds(program, "window") == {(0, 1): 10 * SECOND, (1, 0): -10 * SECOND}
    assert kept(program, "smoke") == ("span", 10 * SECOND)


def test_the_thesis_with_begin_and_end() -> None:
    """Events are intervals there: the answer of a pre-alarm waits for the end of a report."""
    program = streamlog.compile("""
        stream pre_alarm(end: time, begin: time, area: string) where begin = end.
        stream report(end: time, begin: time, area: string) where begin = end.
        output alarm.
        alarm(E, A) <- pre_alarm(E, B, A), not (report(E1, B1, A), B <= B1, B1 <= B + 5min).
    """)
    assert delays(program, "alarm") == {"pre_alarm": 0, "report": 5 * MINUTE}
    assert kept(program, "pre_alarm") == kept(program, "report") == ("span", 5 * MINUTE)


def test_fire_of_the_deliverable() -> None:
    """D4.7: smoke and heat that begin within five seconds, where readings are intervals."""
    program = streamlog.compile("""
        stream smoke(end: time, begin: time, area: string) where begin <= end, end <= begin + 1s.
        stream heat(end: time, begin: time, area: string) where begin <= end, end <= begin + 1s.
        output fire.
        fire(E, A) <- smoke(E1, B1, A), heat(E2, B2, A), B1 <= B2, B2 <= B1 + 5s, E = max(E1, E2).
    """)
    assert kept(program, "smoke") == ("span", 6 * SECOND)
    assert kept(program, "heat") == ("span", SECOND)
    assert set(delays(program, "fire").values()) == {0}


def test_the_best_time_keeps_its_bounds_but_two_of_them_do_not_go_together() -> None:
    program = streamlog.compile("""
        stream s(T: int, U: int, x: string) where U <= T, T <= U + 4.
        p(T, min(U), X) <- s(T, U, X).
        q(T, min(U), max(V), X) <- s(T, U, X), V = U.
        r(T, sum(U), X) <- s(T, U, X).
    """)
    assert bounds(program, "p") == {(0, 1): 4, (1, 0): 0}
    found = bounds(program, "q")
    assert found[1, 2] == found[2, 1] == 4  # by way of T, and not 0
    assert bounds(program, "r") == {}


def test_a_predicate_has_the_weakest_of_its_rules_and_facts() -> None:
    program = streamlog.compile("""
        stream s(T: int, x: string).
        p(T, U, X) <- s(T, X), U = T - 3.
        p(T, U, X) <- s(T, X), U = T + 1.
        p(7, 0, a).
    """)
    assert bounds(program, "p") == {(0, 1): 7, (1, 0): 1}


def test_in_recursion_a_bound_that_grows_is_given_up() -> None:
    program = streamlog.compile("""
        stream s(T: int, x: string).
        chain(T, S, X) <- s(T, X), S = T.
        chain(T, S, X) <- chain(T0, S, X), s(T, X), T0 < T, T <= T0 + 5.
        short(T, S, X) <- s(T, X), S = T.
        short(T, S, X) <- short(T0, S, X), s(T, X), T0 < T, T <= S + 9.
    """)
    assert bounds(program, "chain") == {(1, 0): 0}
    assert bounds(program, "short") == {(1, 0): 0, (0, 1): 9}


def test_where_nothing_changes_nothing_is_said() -> None:
    program = streamlog.compile(f"{REPORT}output p. p(T, A) <- report(T, _, A).")
    assert not any(time.related for time in program.times)


def test_a_constant_in_a_goal() -> None:
    program = streamlog.compile("""
        stream s(T: int, U: int) where U <= T + 2, T <= U + 2.
        stream t(T: int). output p.
        p(T) <- t(T), not (s(V, 100), V <= T + 50).
    """)
    assert delays(program, "p") == {"s": 50, "t": 0}


# ---------------------------------------------------------------------------------- rows


def engine(text: str, tables: dict[str, list[tuple[object, ...]]] | None = None) -> Engine:
    return streamlog.Engine(streamlog.compile(text), tables)


def test_a_row_that_breaks_the_clause_is_rejected_and_moves_nothing() -> None:
    run = engine(f"{REPORT}output p. p(T, A) <- report(T, B, A), B = T.")
    day = "2026-11-15T"
    run.push("report", [(f"{day}08:00:00Z", f"{day}08:00:00Z", "a")])
    before = run.progress["report"].progress
    run.push("report", [(f"{day}10:00:00Z", f"{day}08:00:00Z", "a")])
    assert run.progress["report"].progress == before
    assert [r.reason for r in run.rejects] == [
        "breaks `where end <= begin + 1h`: `end` is 2026-11-15T10:00:00Z and `begin` is "
        "2026-11-15T08:00:00Z"
    ]


def test_rows_of_a_table() -> None:
    text = """
        table open(low: int, high: int) where low <= high, high <= low + 4.
        stream s(T: int). output p.
        p(L) <- s(T), open(L, H), L <= T, T <= H.
    """
    run = engine(text, {"open": [(3, 5), (1, 9), (6, 5)]})
    assert len(run.rejects) == 2
    assert delays(run.program, "p") == {"s": 4}
    run.push("s", [(4,), (6,)])
    run.end()
    assert run.step() == {"p": [(3,)]}


def test_ints_far_apart() -> None:
    run = engine("stream s(T: int, n: int) where T <= n + 5. output p. p(T, N) <- s(T, N).")
    least = -(2**63)
    run.push("s", [(1, least), (2, -least - 1)])
    assert [r.raw for r in run.rejects] == [(1, least)]
