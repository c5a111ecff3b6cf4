"""Why a fact holds, by both executors: derivations, negations, aggregates, and what is missing."""

from __future__ import annotations

from streamlog.compiler import Mode
from streamlog.runtime.absence import Bound, Closed
from streamlog.runtime.executor import END
from streamlog.runtime.why import Derived, Fact, Given, Missing, Origin, Proof, Wait, why

MINUTE = 60_000_000
ALARM = """
stream pre_alarm(T: time, area: string).
stream report(T: time, area: string).
alarm(T, A) <- pre_alarm(T, A), not (report(T1, A), T <= T1, T1 <= T + 5min).
"""
FIRST = "first(T, X) <- msg(T, X), not previous(T, X).\nprevious(T, X) <- msg(T0, X), T0 < T.\n"
REACH = "reach(X, Y) <- edge(X, Y).\nreach(X, Z) <- reach(X, Y), reach(Y, Z).\n"


def derived(found: object) -> Derived:
    assert isinstance(found, Derived)
    return found


def facts_of(proof: Proof) -> list[Fact]:
    """All facts of a derivation, from the top."""
    below = proof.goals if isinstance(proof, Derived) else ()
    return [proof.fact, *(f for goal in below for f in facts_of(goal))]


def height(proof: Proof) -> int:
    return 1 + max(map(height, proof.goals), default=0) if isinstance(proof, Derived) else 0


def test_a_negated_goal_says_what_closed_it(engine) -> None:
    running = engine(ALARM)
    running.push("pre_alarm", [(0, "gate1")])
    running.advance(5 * MINUTE + 1)
    running.step()
    found = derived(why(running, "alarm", (0, "gate1")))
    assert found.binding["A"] == "gate1"
    assert found.goals == (Given(Fact("pre_alarm", (0, "gate1")), Origin.ARRIVED),)
    (absence,) = found.absences
    (gone,) = absence.goals
    assert (gone.pred, [k[:2] for k in gone.known]) == ("report", [("area", "gate1")])
    assert (gone.low, gone.high) == (Bound(0, False), Bound(5 * MINUTE, False))
    assert [(c.stream, c.needed, c.progress) for c in absence.closed] == [
        ("report", 5 * MINUTE, 5 * MINUTE + 1)
    ]


def test_a_fact_that_waits_says_for_what(engine) -> None:
    running = engine(ALARM)
    running.push("pre_alarm", [(0, "gate1")])
    running.advance(5 * MINUTE)
    running.step()
    found = why(running, "alarm", (0, "gate1"))
    assert isinstance(found, Missing)
    assert found.waits == (Wait("report", 5 * MINUTE, 5 * MINUTE),)
    (candidate,) = found.candidates
    assert (candidate.goals, candidate.against) == ((Fact("pre_alarm", (0, "gate1")),), ())


def test_a_fact_that_is_excluded_says_by_what(engine) -> None:
    running = engine(ALARM)
    running.push("pre_alarm", [(0, "gate1")])
    running.push("report", [(MINUTE, "gate1")])
    running.end()
    running.step()
    found = why(running, "alarm", (0, "gate1"))
    assert isinstance(found, Missing)
    assert found.waits == ()
    assert found.candidates[0].against == (Fact("report", (MINUTE, "gate1")),)


def test_a_fact_that_nothing_gives(engine) -> None:
    running = engine(ALARM)
    running.end()
    running.step()
    assert why(running, "alarm", (0, "gate1")) == Missing(Fact("alarm", (0, "gate1")), (), ())


def test_an_open_predicate_is_seen_through_its_rule(engine) -> None:
    running = engine(FIRST)
    running.push("msg", [(1, "red"), (3, "red")])
    running.step()
    (absence,) = derived(why(running, "first", (1, "red"))).absences
    ((rule, inner),) = absence.through
    assert rule.head.pred == "previous"
    assert (inner.goals[0].pred, inner.goals[0].high) == ("msg", Bound(1, True))
    assert inner.closed == (Closed("msg", 0, 3, running.clock("msg")),)
    shown = derived(why(running, "previous", (2, "red")))
    assert shown.goals == (Given(Fact("msg", (1, "red")), Origin.ARRIVED),)


def test_the_end_of_the_data_closes_too(engine) -> None:
    running = engine("last(T, X) <- m(T, X), not (m(T1, X), T1 > T).", Mode.BATCH)
    running.push("m", [(1, "a"), (2, "a")])
    running.end()
    running.step()
    (absence,) = derived(why(running, "last", (2, "a"))).absences
    assert absence.goals[0].low == Bound(2, True)
    assert [(c.needed, c.progress) for c in absence.closed] == [(None, END)]


def test_expressions_in_a_negated_goal(engine) -> None:
    running = engine("lone(T) <- a(T), not b(T + 2), not (c(T1, N), T1 = T, N > T).")
    running.push("a", [(1,)])
    running.end()
    running.step()
    first, second = derived(why(running, "lone", (1,))).absences
    assert (first.goals[0].low, first.goals[0].high) == (Bound(3, False), Bound(3, False))
    assert second.goals[0].low == Bound(1, False)
    assert second.conditions == ("N > 1",)


def test_the_smallest_derivation_of_a_recursion(engine) -> None:
    edges = "".join(f"edge(n{i}, n{i + 1}).\n" for i in range(8))
    running = engine(f"table edge(a: string, b: string).\n{edges}edge(n8, n0).\n{REACH}")
    running.step()
    found = derived(why(running, "reach", ("n0", "n8")))
    assert height(found) == 4  # halves of halves
    leaves = [f for f in facts_of(found) if f.pred == "edge"]
    assert [f.row for f in leaves] == [(f"n{i}", f"n{i + 1}") for i in range(8)]


def test_a_cycle_does_not_explain_itself(engine) -> None:
    running = engine("table edge(a: string, b: string).\nedge(a, b).\nedge(b, a).\n" + REACH)
    running.step()
    facts = facts_of(derived(why(running, "reach", ("a", "a"))))
    assert facts.count(Fact("reach", ("a", "a"))) == 1


def test_a_long_chain_needs_no_stack(engine) -> None:
    running = engine("n(T, N) <- start(T, N).\nn(T, M) <- n(T, N), N < 300, M = N + 1.")
    running.push("start", [(1, 0)])
    running.end()
    running.step()
    assert height(derived(why(running, "n", (1, 300)))) == 301


def test_where_facts_come_from(engine) -> None:
    running = engine(
        "table size(n: int).\ntable more(n: int).\nsize(3).\n"
        "p(T) <- a(T), size(N), more(M), N < M, tick(T).",
        tables={"more": [(5,)]},
    )
    running.push("a", [(1,)])
    running.step()
    goals = derived(why(running, "p", (1,))).goals
    assert [g.origin for g in goals if isinstance(g, Given)] == [
        Origin.ARRIVED,
        Origin.PROGRAM,
        Origin.TABLE,
        Origin.TICK,
    ]


def test_an_aggregate_has_its_solutions(engine) -> None:
    running = engine("vol(T, X, sum(C)) <- sale(T, X, C, _).")
    running.push("sale", [(1, "a", n, "s") for n in range(5)] + [(1, "b", 7, "s")])
    running.end()
    running.step()
    group = derived(why(running, "vol", (1, "a", 10))).group
    assert group is not None
    assert group.count == 5
    assert [s[0].fact.row for s in group.samples] == [(1, "a", n, "s") for n in range(3)]


def test_a_minimum_has_its_best(engine) -> None:
    running = engine("best(T, min<C>) <- offer(T, C, _).")
    running.push("offer", [(1, 5, "a"), (1, 3, "b"), (1, 4, "c")])
    running.end()
    running.step()
    group = derived(why(running, "best", (1, 3))).group
    assert group is not None
    assert (group.count, [s[0].fact.row for s in group.samples]) == (3, [(1, 3, "b")])


def test_the_best_of_a_recursion_does_not_rest_on_itself(engine) -> None:
    running = engine(
        "p(T, X, Y, max<D>) <- s(T, X, Y, D).\n"
        "p(T, X, Z, max<D>) <- p(T1, X, Y, D1), p(T2, Y, Z, D2), lgr(T1, T2, T),\n"
        "    D = min(D1, D2), T2 <= T1 + 4."
    )
    running.push("s", [(4, "b", "a", 1), (6, "a", "a", 0), (8, "c", "c", 0), (8, "b", "b", 2)])
    running.push("s", [(11, "a", "c", 1), (12, "a", "b", 3), (12, "b", "b", 3)])
    running.end()
    running.step()
    for row in running.facts("p"):
        assert Fact("p", row) not in facts_of(derived(why(running, "p", row)))[1:]


def test_alternatives_that_find_one_solution(engine) -> None:
    running = engine("n(T, count(T)) <- (Y >= 1 ; X >= 1), a(T, X), b(T, Y).")
    running.push("a", [(1, 1), (1, 2)])
    running.push("b", [(1, 1)])
    running.end()
    running.step()
    group = derived(why(running, "n", (1, 2))).group
    assert group is not None
    assert group.count == 2


def test_values_in_a_negated_goal(engine) -> None:
    running = engine("p(T, V) <- a(T, X), V = 2.0 - X, not (b(T, Y), -X < Y, Y < V).")
    running.push("a", [(1, 1)])
    running.end()
    running.step()
    (absence,) = derived(why(running, "p", (1, 1.0))).absences
    assert absence.conditions == ("-1.0 < Y", "Y < 1.0")


def test_heads_with_expressions(engine) -> None:
    running = engine("due(T + 1, X, N * 2) <- a(T, X, N).")
    running.push("a", [(1, "x", 3), (2, "x", 4)])
    running.end()
    running.step()
    found = derived(why(running, "due", (3, "x", 8)))
    assert found.goals[0].fact == Fact("a", (2, "x", 4))


def test_heads_with_sums_of_floats(engine) -> None:
    running = engine("stream a(T: int, x: float).\np(T, X + 0.1) <- a(T, X).")
    running.push("a", [(n, n / 7) for n in range(30)])
    running.end()
    running.step()
    for row in running.facts("p"):
        (goal,) = derived(why(running, "p", row)).goals
        assert goal.fact.row[0] == row[0]


def test_the_rule_whose_aggregate_it_is(engine) -> None:
    running = engine("total(T, sum(N)) <- a(T, N).\ntotal(T, sum(N)) <- b(T, N).")
    running.push("a", [(1, 1), (1, 2)])
    running.push("b", [(1, 5)])
    running.end()
    running.step()
    found = derived(why(running, "total", (1, 5)))
    assert [g.fact for g in found.goals] == [Fact("b", (1, 5))]


def test_an_input(engine) -> None:
    running = engine(FIRST)
    running.push("msg", [(1, "red")])
    running.step()
    assert why(running, "msg", (1, "red")) == Given(Fact("msg", (1, "red")), Origin.ARRIVED)
    assert isinstance(why(running, "msg", (2, "red")), Missing)


def test_a_fact_of_a_predicate_that_rules_define(engine) -> None:
    running = engine(
        "table edge(a: string, b: string).\nedge(a, b).\nreach(a).\n"
        "reach(Y) <- reach(X), edge(X, Y)."
    )
    running.step()
    given = Given(Fact("reach", ("a",)), Origin.PROGRAM)
    assert why(running, "reach", ("a",)) == given
    assert derived(why(running, "reach", ("b",))).goals[0] == given
