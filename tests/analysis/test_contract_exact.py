"""The figures of the time contract, one by one, on programs that can be worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlog.analysis.contract import Extreme, Keeps, Kept, Released
from streamlog.analysis.sequential import Class
from streamlog.compiler import Mode, Program, compile_file, compile_source
from streamlog.diagnostics import Source

RULES = Path(__file__).parents[2] / "rules"
SECOND, MINUTE = 1_000_000, 60_000_000


def compiled(text: str, mode: Mode = Mode.STREAM) -> Program:
    return compile_source(Source("test.slog", text), mode=mode, until="close")


def accepted(text: str) -> Program:
    result = compiled(text)
    assert result.ok, [d.message for d in result.diagnostics]
    return result


def delays(compilation: Program, name: str) -> dict[str, int | None]:
    return {d.stream: d.by for d in compilation.contract[name].delays}


def released(compilation: Program, name: str) -> Released | None:
    return compilation.contract[name].released


def kept(compilation: Program, name: str) -> Kept:
    return compilation.contract[name].kept


def reach(compilation: Program, goal: str) -> list[tuple[int | None, int | None]]:
    """Look-back and look-ahead of every goal of a predicate."""
    return [(g.back, g.ahead) for t in compilation.times for g in t.goals if g.atom.pred == goal]


def kinds(compilation: Program) -> list[tuple[Class, int]]:
    return [(r.kind, r.waits) for r in compilation.contract.rules]


# ------------------------------------------------------------------------ whole programs


def test_a_timestamp_with_a_range_stays_a_timestamp() -> None:
    found = accepted(
        "stream w(T: int 0..100, x: string). k(a, 3).\n"
        "first(T, X) <- w(T, X), not (w(T1, X), T1 < T). q(T, X) <- k(X, T), w(T, X)."
    )
    assert delays(found, "first") == {"w": 0}
    assert delays(found, "q") == {"w": 0}
    assert reach(found, "w") == [(0, 0), (-100, -1), (0, 0)]
    assert found.assumptions == ()


def test_an_open_predicate_of_two_goals_waits_for_each_as_long_as_it_must() -> None:
    found = accepted(
        "o(T) <- s(T0), T0 <= T - 100, r(T1), T1 < T. p(T) <- r(T), not o(T).\n"
        "g(T) <- r(T). g(T + 1) <- g(T), T < 9, not o(T)."
    )
    executed = found.closed.contract
    assert delays(found, "p") == {"r": 0, "s": -100}
    assert {d.stream: d.by for d in executed["p"].delays} == {"r": 0, "s": -100}
    assert {d.stream: d.by for d in executed["g"].decided} == {"r": -2, "s": -101}


def test_example_4_first() -> None:
    first = compile_file(RULES / "streamlog" / "04_first.slog", until="close")
    assert delays(first, "first") == {"msg": 0}
    assert released(first, "first") is Released.ARRIVAL
    assert kept(first, "msg") == Kept(Keeps.PER_KEY, columns=("X",))
    assert kept(first, "first") == Kept(Keeps.NOTHING)
    assert kinds(first) == [(Class.SEQUENTIAL, 0), (Class.STRICTLY_SEQUENTIAL, 0)]
    assert reach(first, "previous") == [(0, 0)]
    assert reach(first, "msg") == [(0, 0), (None, -1)]


def test_example_5_second() -> None:
    """Executors keep the core of `befr` in place of the messages that it is made of."""
    second = compile_file(RULES / "streamlog" / "05_second.slog", until="close")
    for name in ("befr", "first", "msg"):
        assert kept(second, name) == Kept(Keeps.PER_KEY, columns=("Y",)), name
    assert [d.code for d in second.diagnostics] == []


def test_example_11_synchronized_union() -> None:
    """Whether a row was ever missing is one row, whichever it was."""
    union = compile_file(RULES / "streamlog" / "11_synchronized_union.slog", until="close")
    for name in ("sensr1", "sensr2", "msg"):
        assert kept(union, name) == Kept(Keeps.NOTHING), name
    for name in ("missing1", "missing2"):
        assert kept(union, name) == Kept(Keeps.PER_KEY), name
        assert kept(union, name).is_for_ever and not kept(union, name).is_unbounded


def test_an_open_predicate_over_two_goals_keeps_their_bounds() -> None:
    program = accepted(
        "p(T, X) <- s(T, X), not often(T, X).\n"
        "often(T, X) <- s(T1, X), s(T2, X), T - 30 <= T1, T1 < T2, T2 < T.\n"
    )
    assert kept(program, "s") == Kept(Keeps.SPAN, 29)  # the earlier one, until the later has come
    assert kept(program, "often") == Kept(Keeps.SPAN, 29)
    assert delays(program, "p") == {"s": 0}


def test_pc_alarm() -> None:
    alarm = compile_file(RULES / "airport" / "pc_alarm.slog", until="close")
    assert delays(alarm, "pc_alarm") == {"pre_alarm": 0, "report": 300_000_000}
    assert released(alarm, "pc_alarm") is Released.CLOSE
    assert kept(alarm, "pre_alarm") == Kept(Keeps.SPAN, 300_000_000)
    assert kept(alarm, "report") == Kept(Keeps.SPAN, 300_000_000)
    assert kept(alarm, "pc_alarm") == Kept(Keeps.NOTHING)
    assert kinds(alarm) == [(Class.WAITS, 300_000_000)]
    assert reach(alarm, "report") == [(0, 300_000_000)]


def test_a_tumbling_average() -> None:
    average = accepted(
        "stream tempr(T: time, place: string, celsius: float).\n"
        "output average.\n"
        "average(ceil(T, 20s), P, avg(C)) <- tempr(T, P, C).\n"
    )
    # A window's answer carries its end, so it never waits for a later reading.
    assert reach(average, "tempr") == [(-20 * SECOND + 1, 0)]
    assert delays(average, "average") == {"tempr": 0}
    assert released(average, "average") is Released.CLOSE
    assert kept(average, "tempr") == Kept(Keeps.SPAN, 20 * SECOND - 1)
    assert kinds(average) == [(Class.SEQUENTIAL, 0)]


def test_a_tumbling_average_by_its_beginning() -> None:
    average = accepted(
        "stream tempr(T: time, celsius: float).\naverage(floor(T, 20s), avg(C)) <- tempr(T, C).\n"
    )
    assert reach(average, "tempr") == [(0, 20 * SECOND - 1)]
    assert delays(average, "average") == {"tempr": 20 * SECOND - 1}
    assert kept(average, "tempr") == Kept(Keeps.SPAN, 20 * SECOND - 1)


CHAIN = """
stream s(T: time, X: int).
stream r(T: time, X: int).
a(T, X) <- s(T, X), not (r(T1, X), T <= T1, T1 <= T + 5min).
b(T, X) <- s(T, X), a(T1, X), T <= T1, T1 <= T + 3min.
c(T, X) <- s(T, X), not b(T + 10s, X).
"""


def test_delays_of_a_chain_add_up() -> None:
    chain = accepted(CHAIN)
    assert delays(chain, "a") == {"r": 5 * MINUTE, "s": 0}
    assert delays(chain, "b") == {"r": 8 * MINUTE, "s": 3 * MINUTE}
    assert delays(chain, "c") == {"r": 8 * MINUTE + 10 * SECOND, "s": 3 * MINUTE + 10 * SECOND}
    assert [released(chain, n) for n in "abc"] == [Released.CLOSE] * 3
    assert chain.strata.potential == {
        "s": 0,
        "r": 0,
        "a": 5 * MINUTE,
        "b": 8 * MINUTE,
        "c": 8 * MINUTE + 10 * SECOND,
    }
    # c at T is open until 8 min 10 s after T, and needs s at T.
    assert kept(chain, "s") == Kept(Keeps.SPAN, 8 * MINUTE + 10 * SECOND)
    assert kept(chain, "r") == Kept(Keeps.SPAN, 5 * MINUTE)
    assert kept(chain, "a") == Kept(Keeps.SPAN, 8 * MINUTE)
    assert kept(chain, "b") == Kept(Keeps.SPAN, 8 * MINUTE)


def test_two_streams_with_different_delays() -> None:
    program = accepted(
        "p(T) <- s(T), not (r(T1), T <= T1, T1 <= T + 7), not (u(T2), T2 < T, T2 >= T - 4).\n"
    )
    assert delays(program, "p") == {"r": 7, "s": 0, "u": -1}
    assert released(program, "p") is Released.CLOSE
    assert {n: kept(program, n).span for n in "sru"} == {"s": 7, "r": 7, "u": 11}


# --------------------------------------------------------------------------------- cycles


def test_a_negative_cycle_is_accepted() -> None:
    program = accepted("p(T, X) <- s(T, X), q(T + 5, X). q(T, X) <- s(T, X), not p(T - 10, X).")
    strata, graph = program.strata, program.graph
    assert strata.potential == {"p": 5, "q": 0, "s": 0}
    assert strata.stride[graph.component_of["p"]] == 5
    assert strata.stride[graph.component_of["s"]] is None
    assert delays(program, "p") == {"s": 5}
    assert delays(program, "q") == {"s": 0}
    assert reach(program, "p") == [(-10, -10)] and reach(program, "q") == [(5, 5)]


def test_the_stride_is_shared_by_the_marks_of_a_cycle() -> None:
    program = accepted("p(T) <- s(T), not q(T - 3). q(T) <- s(T), not p(T - 4).")
    assert program.strata.stride[program.graph.component_of["p"]] == 3  # 7 / 2


def test_a_zero_cycle_through_negation_is_refused() -> None:
    text = "p(T, X) <- s(T, X), not q(T + 5, X).\nq(T, X) <- s(T, X), p(T1, X), T1 <= T - 5.\n"
    for mode in Mode:
        result = compiled(text, mode)
        (refusal,) = [d for d in result.diagnostics if d.is_error]
        assert refusal.code == "SL0402"
        assert [label.span.text for label in refusal.labels] == ["q(T + 5, X)", "p(T1, X)"]
        assert [label.text for label in refusal.labels] == [
            "`p` at T needs no `q` at T + 5",
            "`q` at T needs `p` up to T - 5",
        ]


def test_one_step_less_is_accepted() -> None:
    program = accepted("p(T, X) <- s(T, X), not q(T + 5, X).\nq(T, X) <- s(T, X), p(T - 6, X).\n")
    assert program.strata.potential["p"] == 5
    assert program.strata.stride[program.graph.component_of["p"]] == 1


def test_a_cycle_that_looks_ahead_is_for_stored_data() -> None:
    text = "p(T) <- s(T). p(T) <- s(T), p(T + 2)."
    assert [d.code for d in compiled(text).diagnostics if d.is_error] == ["SL0403"]
    assert compiled(text, Mode.BATCH).ok
    negated = text + " p(T) <- s(T), not p(T - 1)."
    for mode in Mode:
        codes = [d.code for d in compiled(negated, mode).diagnostics if d.is_error]
        assert codes == ["SL0404"], mode


# ----------------------------------------------------------------------- single comparisons


@pytest.mark.parametrize(
    ("comparisons", "back", "ahead"),
    [
        ("T1 < T", None, -1),
        ("T1 <= T + 3, T1 > T - 3", -2, 3),
        ("T1 = T - 4", -4, -4),
        ("T1 != T", None, None),
        ("T1 != T, T1 <= T", None, -1),
        ("T1 != T, T1 <= T, T1 >= T", None, None),  # it cannot be: see below
        ("T1 != T + 2, T1 >= T, T1 <= T + 2", 0, 1),
        ("T1 != T - 2, T1 != T - 1, T1 <= T, T1 >= T - 2", 0, 0),
        ("T = max(T1, T1 - 3)", 0, 0),
        ("T = min(T1, T1 - 3)", 3, 3),
        ("T = max(T1, T1 + 4)", -4, -4),
        ("r(T2), T = max(T1, T2)", None, 0),
        ("r(T2), T = min(T1, T2)", 0, None),
        ("r(T2), T1 <= max(T2, T), T2 < T + 3", None, 2),
        ("r(T2), T1 >= min(T2, T), T2 > T - 3, T1 <= T", -2, 0),
        ("lgr(T1, T1 + 2, T)", -2, -2),
        ("abs(T1 - T) <= 6", -6, 6),
        ("T1 = floor(T, 10)", -9, 0),
        ("T1 = ceil(T, 10)", 0, 9),
        ("floor(T1, 10) = floor(T, 10)", -9, 9),
        ("floor(T1, 10) < floor(T, 10)", None, 8),  # safe; -1 is the truth
        ("Gap = T - T1, Gap <= 5, Gap > 0", -5, -1),
        ("Gap = T1 - T, Wide = Gap + 1, Wide <= 5, Wide >= 2", 1, 4),
        ("T - T1 < 8, T1 - T < 2", -7, 1),
        ("2 * T1 <= 2 * T + 5, T1 >= T", 0, 2),
    ],
)
def test_comparisons(comparisons: str, back: int | None, ahead: int | None) -> None:
    result = compiled(f"p(T) <- s(T), q(T1), {comparisons}.", Mode.BATCH)
    assert result.ok, [d.message for d in result.diagnostics]
    contradictory = "T1 != T, T1 <= T, T1 >= T" in comparisons
    assert reach(result, "q") == ([] if contradictory else [(back, ahead)])
    assert ("SL0503" in {d.code for d in result.diagnostics}) == contradictory


# ---------------------------------------------------------------- offsets from static data


@pytest.mark.parametrize(
    ("static", "back"),
    [
        ("w(3).", -3),
        ("w(3). w(8). w(5).", -8),
        ("table w(d: int 1..10).", -10),
        ("table w(d: int 1..10). w(3).", -10),
        ('table w(d: int) from "w.csv".', None),
        ('table w(d: int 1..10) from "w.csv".', -10),
    ],
)
def test_offsets_from_static_data(static: str, back: int | None) -> None:
    result = accepted(f"{static} p(T) <- s(T), q(T1), w(W), T1 <= T, T1 >= T - W.")
    assert reach(result, "q") == [(back, 0)]
    latest = Extreme("T1", highest=True, is_time=True)
    expected = Kept(Keeps.PER_KEY, best=(latest,)) if back is None else Kept(Keeps.SPAN, -back)
    assert kept(result, "q") == expected


def test_an_offset_by_a_constant_key() -> None:
    result = accepted(
        "w(fast, 3). w(slow, 8). p(T) <- s(T), q(T1), w(fast, W), T1 <= T, T1 >= T - W."
    )
    assert reach(result, "q") == [(-3, 0)]


def test_a_declared_range_of_durations() -> None:
    result = accepted(
        "stream s(T: time). stream q(T: time). table w(d: duration 1s..10s).\n"
        "p(T) <- s(T), not (q(T1), w(W), T <= T1, T1 <= T + W).\n"
    )
    assert reach(result, "q") == [(0, 10_000_000)]
    assert delays(result, "p") == {"q": 10_000_000, "s": 0}


def test_example_2_reads_its_window_from_a_fact() -> None:
    windowed = compile_file(RULES / "streamlog" / "02_windowed.slog", until="close")
    assert reach(windowed, "msg") == [(0, 0), (-3, -1)]
    assert kept(windowed, "msg") == Kept(Keeps.SPAN, 3)


# --------------------------------------------------------------------------------- memory


@pytest.mark.parametrize(("declared", "span"), [("1h", 60 * MINUTE), ("1min", 5 * MINUTE)])
def test_a_declared_keep(declared: str, span: int) -> None:
    """It is a lower bound: rules may need more."""
    result = accepted(
        f"stream s(T: time, X: int) keep {declared}.\n"
        "p(T, X) <- s(T, X), s(T1, X), T1 < T, T1 >= T - 5min.\n"
    )
    assert kept(result, "s") == Kept(Keeps.SPAN, span)


def test_a_row_per_key_beside_a_span() -> None:
    result = accepted(
        "p(T, X) <- s(T, X), not (r(T1, X, _), T1 < T).\n"
        "q(T, Y) <- s(T, X), r(T1, X, Y), T1 <= T, T1 >= T - 5.\n"
    )
    assert kept(result, "r") == Kept(Keeps.PER_KEY, 5, ("X",))


def test_what_nobody_asks_for_again_is_not_kept() -> None:
    result = accepted("p(T, X) <- s(T, X), not r(T, X). q(T, X) <- p(T, X).")
    assert [kept(result, n).what for n in "srpq"] == [Keeps.NOTHING] * 4
    assert released(result, "q") is Released.CLOSE


def test_history_with_timestamps_is_kept_for_ever() -> None:
    result = accepted("p(T, T1) <- s(T), r(T1), T1 < T.")
    assert kept(result, "r") == Kept(Keeps.EVERYTHING)
    assert released(result, "p") is Released.ARRIVAL
    assert "SL0502" in {d.code for d in result.diagnostics}
