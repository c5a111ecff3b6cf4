"""The oracle against programs small enough to see the answer."""

from __future__ import annotations

import pytest

from oracle import naive
from oracle.naive import EndlessError, EvaluationError, UndefinedError, model
from streamlog.compiler import Mode, Program, compile_source
from streamlog.diagnostics import Source
from streamlog.runtime.executor import Row


def compiled(text: str, mode: Mode = Mode.STREAM) -> Program:
    compilation = compile_source(Source("test", text), mode=mode, until="contract")
    assert compilation.ok, [d.message for d in compilation.diagnostics]
    return compilation


def answers(text: str, pred: str = "p", **facts: list[Row]) -> list[Row]:
    return sorted(model(compiled(text), facts)[pred])


S: list[Row] = [(1, "a", 2), (2, "b", 3), (2, "a", 2), (4, "a", 5)]

# ---------------------------------------------------------------------------------- goals


def test_equations_are_solved_for_their_unknown() -> None:
    text = "p(T, Y) <- s(T, _, N), 10 - Y = N + 1."
    assert answers(text, s=S) == [(1, 7), (2, 6), (2, 7), (4, 4)]


def test_facts_of_the_text_count_and_tick_is_every_timestamp_of_a_stream() -> None:
    text = "stream s(T: int, X: string). stream r(T: int). s(9, z). p(T) <- tick(T)."
    assert answers(text, s=[(1, "a")], r=[(1,), (3,)]) == [(1,), (3,), (9,)]


def test_a_column_of_floats_holds_floats() -> None:
    (row,) = answers("stream s(T: int, F: float). p(T, F) <- s(T, F).", s=[(1, 2)])
    assert type(row[1]) is float


# -------------------------------------------------------------------------------- negation


def test_negated_conjunction_has_local_variables() -> None:
    text = "p(T, X) <- s(T, X, _), not (s(T1, X, N), T1 < T, N >= 2)."
    assert answers(text, s=S) == [(1, "a"), (2, "b")]


def test_negation_in_negation() -> None:
    # Every earlier row of the same key has a row of another key at its timestamp.
    text = "p(T, X) <- s(T, X, _), not (s(T1, X, _), T1 < T, not (s(T1, Y, _), Y != X))."
    assert answers(text, s=S) == [(1, "a"), (2, "b")]
    assert answers(text, s=[*S, (1, "b", 0)]) == [(1, "a"), (1, "b"), (2, "a"), (2, "b"), (4, "a")]


def test_recursion_through_negation_at_earlier_times() -> None:
    text = "p(T) <- s(T), not (p(T1), T1 < T, T <= T1 + 2)."
    assert answers(text, s=[(t,) for t in range(9)]) == [(0,), (3,), (6,)]


def test_facts_that_are_neither_true_nor_false_are_found() -> None:
    compilation = compile_source(
        Source("test", "p(T) <- s(T), not q(T). q(T) <- s(T), not p(T)."), until="strata"
    )
    assert [d.code for d in compilation.diagnostics] == ["SL0402"]
    object.__setattr__(compilation, "diagnostics", ())  # let it pass
    with pytest.raises(UndefinedError, match=r"p\(1,\)"):
        model(compilation, {"s": [(1,)]})


# ------------------------------------------------------------------------------- recursion


def test_closure() -> None:
    text = """
    p(T, X, Y) <- e(T, X, Y).
    p(T, X, Z) <- p(T1, X, Y), e(T2, Y, Z), lgr(T1, T2, T).
    """
    found = answers(text, e=[(1, "a", "b"), (2, "b", "c"), (3, "c", "a")])
    assert {row[1:] for row in found if row[0] <= 2} == {("a", "b"), ("b", "c"), ("a", "c")}
    assert {row[1:] for row in found} == {(x, y) for x in "abc" for y in "abc"}


def test_timer() -> None:
    text = "p(T) <- s(T). p(T + 2) <- p(T), T < 5, not r(T)."
    assert answers(text, s=[(0,)], r=[]) == [(0,), (2,), (4,), (6,)]
    assert answers(text, s=[(0,)], r=[(2,)]) == [(0,), (2,)]


def test_endless_recursion_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naive, "MOST_ROUNDS", 50)
    with pytest.raises(EndlessError):
        answers("p(T, N) <- s(T, N). p(T, M) <- p(T, N), M = N + 1.", s=[(1, 1)])


# ------------------------------------------------------------------------------- aggregates


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("p(T, count())", [(1, 1), (2, 2), (4, 1)]),
        ("p(T, count(X))", [(1, 1), (2, 2), (4, 1)]),
        ("p(T, sum(N))", [(1, 2), (2, 5), (4, 5)]),
        ("p(T, avg(N))", [(1, 2.0), (2, 2.5), (4, 5.0)]),
        ("p(T, max(X))", [(1, "a"), (2, "b"), (4, "a")]),
        ("p(T, X, sum(N * 2))", [(1, "a", 4), (2, "a", 4), (2, "b", 6), (4, "a", 10)]),
        ("p(floor(T, 2), count_distinct(X))", [(0, 1), (2, 2), (4, 1)]),
        ("p(T, min(N), max(N))", [(1, 2, 2), (2, 2, 3), (4, 5, 5)]),
    ],
)
def test_aggregate_groups_by_the_other_terms(head: str, expected: list[Row]) -> None:
    assert answers(f"{head} <- s(T, X, N).", s=S) == expected


def test_aggregate_ranges_over_solutions_anonymous_variables_included() -> None:
    rows: list[Row] = [(1, "a", 2), (1, "b", 2)]
    assert answers("p(T, sum(N)) <- s(T, _, N).", s=rows) == [(1, 4)]
    assert answers("q(T, N) <- s(T, _, N). p(T, sum(N)) <- q(T, N).", s=rows) == [(1, 2)]
    # What a negation binds inside is not part of the solution.
    text = "p(T, sum(N)) <- s(T, _, N), not (s(T1, _, _), T1 < T)."
    assert answers(text, s=rows) == [(1, 4)]


def test_branches_are_one_aggregate() -> None:
    text = "p(T, count()) <- (s(T, X, N) ; r(T, X, N))."
    assert answers(text, s=[(1, "a", 2)], r=[(1, "a", 2), (1, "a", 3)]) == [(1, 2)]
    # The names that desugaring gives to T + 1 are nobody's variables.
    text = "p(T, count()) <- t(T), (s(T + 1, X) ; r(T + 1, X))."
    assert answers(text, t=[(0,)], s=[(1, "a")], r=[(1, "a"), (1, "b")]) == [(0, 2)]


def test_rules_of_one_minimum_are_one_aggregate_and_others_are_not() -> None:
    rules = "p(T, {0}(N)) <- s(T, N). p(T, {0}(N)) <- r(T, N)."
    rows: dict[str, list[Row]] = {"s": [(1, 5), (1, 6)], "r": [(1, 3)]}
    assert answers(rules.format("min"), **rows) == [(1, 3)]
    assert answers(rules.format("max"), **rows) == [(1, 6)]
    assert answers(rules.format("sum"), **rows) == [(1, 3), (1, 11)]


def test_first_and_last_follow_the_timestamps_of_the_goals() -> None:
    text = "p(T, {}(N)) <- r(T), s(T1, _, N), T1 <= T."
    assert answers(text.format("first"), s=S, r=[(3,), (4,)]) == [(3, 2), (4, 2)]
    # Two rows share the timestamp 2: the smaller value counts.
    assert answers(text.format("last"), s=S, r=[(3,), (4,)]) == [(3, 2), (4, 5)]


def test_average_of_durations_is_a_duration() -> None:
    text = "stream s(T: time, D: duration). p(T, avg(D)) <- s(T, D)."
    assert answers(text, s=[(1, 1), (1, 2)]) == [(1, 1)]


def test_aggregate_of_an_aggregate() -> None:
    text = "q(T, X, sum(N)) <- s(T, X, N). p(T, max(N)) <- q(T1, _, N), tick(T), T1 <= T."
    assert answers(text, s=S) == [(1, 2), (2, 3), (4, 5)]


def test_minimum_in_recursion_keeps_the_best_and_nothing_comes_of_the_others() -> None:
    text = """
    q(T, X, Y, min<D>) <- e(T, X, Y, D).
    q(T, X, Z, min<D>) <- q(T1, X, Y, D1), e(T2, Y, Z, D2), lgr(T1, T2, T), D = D1 + D2.
    p(T, D) <- q(T, a, c, D).
    """
    arcs: list[Row] = [(1, "a", "b", 1), (1, "b", "a", 1), (1, "a", "c", 9), (1, "b", "c", 2)]
    assert answers(text, e=arcs) == [(1, 3)]


# ---------------------------------------------------------------------------- open positions


def test_open_predicate_called_with_and_without_negation() -> None:
    rules = "before(T, X) <- s(T1, X, _), T1 < T. p(T, X) <- r(T), {}."
    assert answers(rules.format("before(T, X)"), s=S, r=[(0,), (2,), (3,)]) == [
        (2, "a"),
        (3, "a"),
        (3, "b"),
    ]
    text = rules.format("s(T, X, _), not before(T, X)")
    assert answers(text, s=S, r=[(1,), (2,), (4,)]) == [(1, "a"), (2, "b")]


def test_aggregate_over_an_open_predicate() -> None:
    text = "before(T, X) <- s(T1, X, _), T1 < T. p(T, count()) <- r(T), before(T, X)."
    assert answers(text, s=S, r=[(1,), (2,), (3,)]) == [(2, 1), (3, 2)]


def test_open_predicate_with_open_data_constants_and_several_rules() -> None:
    text = """
    worse(T, a, N) <- s(T1, a, M), T1 < T, M <= N.
    worse(T, X, N) <- s(T, X, M), M < N.
    p(T, X, N) <- s(T, X, N), not worse(T, X, N).
    """
    rows: list[Row] = [(1, "a", 3), (2, "a", 3), (2, "a", 2), (2, "b", 1), (2, "b", 2)]
    assert answers(text, s=rows) == [(1, "a", 3), (2, "a", 2), (2, "b", 1)]


def test_open_predicate_that_negates_itself_at_earlier_times() -> None:
    # On at T when the latest row before T was not preceded by an odd row, and so on.
    text = """
    on(T) <- s(T1), T1 < T, T <= T1 + 1, not on(T1).
    p(T) <- s(T), on(T).
    """
    assert answers(text, s=[(t,) for t in range(6)]) == [(1,), (3,), (5,)]


def test_open_predicate_that_recurs() -> None:
    text = """
    table e(x: string, y: string).
    reach(T, X) <- s(T1, X), T1 < T - 3.
    reach(T, Y) <- s(T1, Y), T1 <= T, reach(T1, X), e(X, Y).
    p(T, X) <- r(T), reach(T, X).
    """
    edges: list[Row] = [("a", "b"), ("b", "c"), ("c", "c")]
    rows: list[Row] = [(0, "a"), (5, "b"), (5, "c"), (6, "d")]
    assert answers(text, s=rows, r=[(3,), (4,), (7,)], e=edges) == [
        (4, "a"),
        (7, "a"),
        (7, "b"),
        (7, "c"),
    ]


# --------------------------------------------------------------------------------- failures


def test_failure_names_the_rule() -> None:
    with pytest.raises(EvaluationError, match=r"division by zero, in the rule p\(T, 6 / N\)"):
        answers("p(T, 6 / N) <- s(T, N).", s=[(1, 0)])
    with pytest.raises(EvaluationError, match="64 bits"):
        answers("p(T, sum(N)) <- s(T, N).", s=[(1, 2**63 - 1), (1, 1)])


@pytest.mark.parametrize(
    "body",
    [
        "M = 6 / N, N != 0",
        "N != 0, M = 6 / N",
        "M = 6 / N, not zero(N)",
        "M = 6 / N, not (z(T, K), K = N)",
    ],
)
def test_failure_counts_only_in_a_solution(body: str) -> None:
    text = f"zero(0). p(T, M) <- s(T, N), {body}."
    assert answers(text, s=[(1, 0), (1, 2)], **({"z": [(1, 0)]} if "z(" in body else {})) == [
        (1, 3.0)
    ]


def test_failure_in_a_negation_counts_unless_the_negation_is_false_anyway() -> None:
    text = "p(T) <- r(T), not (s(T, N), 6 / N > 2)."
    assert answers(text, r=[(1,)], s=[(1, 0), (1, 2)]) == []
    with pytest.raises(EvaluationError):
        answers(text, r=[(1,)], s=[(1, 0), (1, 6)])


def test_derived_predicates_are_not_given() -> None:
    with pytest.raises(ValueError, match="derived"):
        model(compiled("p(T) <- s(T)."), {"p": [(1,)]})


def test_refused_programs_have_no_model() -> None:
    with pytest.raises(ValueError, match="refused"):
        model(compile_source(Source("test", "p(T) <- s(T), not p(T).")), {})
