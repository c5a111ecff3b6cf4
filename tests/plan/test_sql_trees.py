"""Programs to queries: `fixtures/sql.txt`, in Spark's dialect; and what every query must be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from fixture_pairs import compare, pairs, params
from sqlglot import exp

from streamlog.compiler import Mode, compile_source
from streamlog.diagnostics import Source
from streamlog.plan.explain_sql import statements
from streamlog.plan.sql import Context, Unsupported, rule_query
from streamlog.plan.steps import Extend, RulePlan
from streamlog.plan.walk import joins
from streamlog.syntax.walk import variables

sys.path.insert(0, str(Path(__file__).parents[1]))
from oracle.programs import random_case


def context_of(text: str, mode: Mode = Mode.STREAM) -> Context:
    program = compile_source(Source("fixture", text), mode=mode)
    assert program.ok, program.diagnostics
    closed = program.closed
    return Context(program.closed.plan, closed.types, closed.times)


@pytest.mark.parametrize(("name", "title", "program", "expected"), params("sql"))
def test_queries(name: str, title: str, program: str, expected: str) -> None:
    found = "\n\n".join(s.text for s in statements(context_of(program)))
    compare(name, title, found, expected)


# ---------------------------------------------------------------------------------- no products


def without_equality(query: exp.Query) -> Iterator[exp.Join]:
    """Joins for which an engine must look at every pair of rows."""
    for join in query.find_all(exp.Join):
        on = join.args.get("on")
        conditions = on.flatten() if isinstance(on, exp.And) else [on]
        if not any(isinstance(c, exp.EQ) and _is_across(c, join) for c in conditions):
            yield join


def _is_across(condition: exp.EQ, join: exp.Join) -> bool:
    tables = {c.table for c in condition.find_all(exp.Column)}
    return join.this.alias in tables and len(tables) > 1


def is_keyed(rule: RulePlan) -> bool:
    """Whether every goal but the first one is looked up by some value that is no constant."""
    steps = [*rule.pipelines[0].steps, *rule.checks]
    if any(isinstance(s, Extend) and not any(variables(s.term)) for s in steps):
        return False
    return all(j.index.key for j in joins(steps))


def products(text: str) -> Iterator[str]:
    context = context_of(text, Mode.BATCH)
    for rule in filter(is_keyed, context.plan.rules):
        try:
            query = rule_query(rule, context)
        except Unsupported:
            continue
        yield from (join.sql("spark") for join in without_equality(query))


RANGES = """\
stream on(T: int, X: string).
stream off(T: int, X: string, N: int).
before(T, X) <- on(T, X), not (off(T1, X, _), T1 < T).
since(T, X) <- on(T, X), off(T1, X, _), T1 >= T - 4.
near(T, X) <- on(T, X), not (off(T1, X, _), T1 >= T - 4, T1 <= T + 4).
large(T, X) <- on(T, X), not (off(T1, X, N), T1 >= T - 4, T1 <= T, N > 3).
later(T, X) <- off(T, X, N), not (on(T1, X), T1 <= T, T1 >= T - N).
pair(T, X) <- on(T, X), not (off(T1, X, N), T1 < T, off(T2, X, M), T2 < T1, M > N).
apart(T, X) <- on(T, X), off(T, X, M), not (off(T1, X, N), T1 < T, on(T, Y), off(T1, Y, N)).
both(T, X) <- on(T, X), not (on(T - 1, Y), off(T, X, _), Y != X).
week(T, X, max(N)) <- on(T, X), off(T1, X, N), T1 <= T, T1 > T - 7.
"""


def test_a_product_is_noticed() -> None:
    context = context_of("table b(Y: int).\np(T, Y) <- a(T), b(Y), T > Y.\n")
    assert list(without_equality(rule_query(context.plan.rules[0], context)))


@pytest.mark.parametrize("text", [RANGES, *(program for _, program, _ in pairs("sql"))])
def test_a_goal_with_a_key_is_joined_by_it(text: str) -> None:
    assert list(products(text)) == []


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_random_goals_with_keys_are_joined_by_them(first: int) -> None:
    for seed in range(first, first + 20):
        text = random_case(Random(seed)).text
        assert list(products(text)) == [], f"seed {seed}:\n{text}"
