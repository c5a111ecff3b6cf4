"""One-time queries with a head, over the rows at hand."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from streamlog.compiler import Program, compile_file, compile_source
from streamlog.diagnostics import Source
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.runtime.once import answer_once, one_time_rule
from streamlog.runtime.query import QueryError

SHOP = """
stream sale(T: time, shop: string, amount: float).
table city(shop: string, name: string).
state open(S) since sale(_, S, _) for at most 1h.
output big.
big(T, S, A) <- sale(T, S, A), A > 0.6.
later(T, X) <- sale(T0, X, _), T0 < T.
city(a, "Ulm"). city(b, "Bonn"). city(c, "Ulm").
"""
ROWS = [(0, "a", 1.0), (1, "a", 1.0), (2, "b", 5.0), (3, "c", 0.5)]


@pytest.fixture(scope="module")
def engine() -> Engine:
    made = Engine(compile_source(Source("shop.slog", SHOP)), Kernel)
    made.push("sale", ROWS)
    made.end()
    made.step()
    return made


def asked(engine: Engine, text: str) -> list[tuple[object, ...]]:
    rule = one_time_rule(text)
    assert rule is not None
    return answer_once(engine.program, rule, engine.relation, Kernel).rows


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("?n(count()) <- sale(_, _, _).", [(4,)]),
        ("?top(S, sum(A)) <- sale(_, S, A) limit 2 by sum(A) desc.", [("b", 5.0), ("a", 2.0)]),
        ("?top(S, sum(A)) <- sale(_, S, A) limit 2 by sum(A).", [("c", 0.5), ("a", 2.0)]),
        ("?n(C, count(), max(T)) <- sale(T, S, _), city(S, C).", [("Bonn", 1, 2), ("Ulm", 3, 3)]),
        ("?mean(S, sum(A) / count()) <- sale(_, S, A), A < 2.0.", [("a", 1.0), ("c", 0.5)]),
        ("?n(count()) <- big(_, S, _), not city(S, bonn).", [(3,)]),
        ("?s(S) <- open(S) at @1970-01-01T00:59:59Z.", [("a",), ("b",), ("c",)]),
        ("?s(S) <- open(S) at @1970-01-01T01:00:00.000002Z.", [("c",)]),
    ],
)
def test_rows(engine: Engine, query: str, rows: list[tuple[object, ...]]) -> None:
    assert asked(engine, query) == rows


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?x(S) <- sael(_, S, _).", "no predicate `sael`.*did you mean `sale`"),
        ("?x(S, first(A)) <- sale(_, S, A).", "write `arg_min"),
        ("?x(T) <- T every 1h, sale(T, _, _).", "`every` is a clock"),
        ("?x(T) <- tick(T).", "`tick` is not a table"),
        ("?big(S) <- sale(_, S, _).", "`big` is a predicate of this program"),
        ("?x(X) <- later(1, X).", "open position"),
        ("?x(Y) <- sale(_, _, _).", "nothing binds `Y`"),
        ("?x(S) <- shut(S) at @1970-01-01T00:59:59Z.", "`shut` is not a state"),
    ],
)
def test_what_cannot_be_asked(engine: Engine, query: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        asked(engine, query)


def test_a_query_without_a_head_is_none_of_these() -> None:
    assert one_time_rule("?sale(T, S, A).") is None
    assert one_time_rule("?sale(T, S.") is None


RULES = (
    "p(T, X) <- a(T, X), b(U, X), T - 3us <= U, U <= T.",
    "p(T, X) <- a(T, X), not (b(U, X), T - 2us <= U, U <= T + 1us).",
    "p(T, X, count()) <- a(T, X), b(X) over [T - 4us, T].",
    "p(T, X) <- a(T, X), held(X) at T.",
    "p(T, X) <- a(T, X), not held(X) at T - 1us.",
)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(5))
def test_what_is_asked_for_ever_and_what_is_asked_once_are_the_same(rule: str, seed: int) -> None:
    """Theorem 1 of the CTA paper: a continuous query has given what it gives once, now."""
    rng = Random(seed)
    declared = (
        "stream a(T: time, x: string). stream b(T: time, x: string).\n"
        "state held(X) since b(_, X) for at most 3us.\n"
    )
    program = compile_source(Source("t.slog", f"{declared}output p.\n{rule}\n"))
    assert isinstance(program, Program), program.diagnostics
    engine = Engine(program, Kernel)
    given: set[tuple[object, ...]] = set()
    for start in range(0, 12, 3):
        for stream in ("a", "b"):
            times = (start + rng.randrange(3) for _ in range(3))
            engine.push(stream, sorted({(t, rng.choice("xy")) for t in times}))
        given |= set(engine.step().get("p", ()))
    engine.end()
    given |= set(engine.step().get("p", ()))
    assert given == set(asked(engine, "?" + rule.replace("p(", "q(", 1)))


MARKET = Path(__file__).parents[2] / "rules" / "market" / "q4_news_impact.slog"
SOURCES = """?source(Source, avg(P), count_distinct(S)) <-
    news_impact(_, _, Source, S, P), P > 50.0 limit 10 by avg(P) desc."""


def test_the_sources_whose_news_matter_in_order() -> None:
    """Q4'' of the CTA paper, as it asks it: once, grouped and ordered."""
    program = compile_file(MARKET)
    assert isinstance(program, Program)
    engine = Engine(program, Kernel)
    second = 1_000_000
    trades = [(0, "o1", "Tesla", 100), (0, "o2", "Google", 100), (0, "o3", "Apple", 100)]
    trades += [(3, "o1", "Tesla", 200), (3, "o2", "Google", 400), (3, "o3", "Apple", 110)]
    engine.push("trade", [(t * second, *rest) for t, *rest in trades])
    stories = [("n1", "Tesla", "Times"), ("n2", "Google", "Journal"), ("n3", "Apple", "Post")]
    engine.push("news", [(second, *story) for story in stories])
    engine.end()
    engine.step()
    assert asked(engine, SOURCES) == [("Journal", 300.0, 1), ("Times", 100.0, 1)]
