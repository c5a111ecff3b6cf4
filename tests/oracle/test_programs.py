"""Random programs: the generator is worth its name, and the contract holds for what it makes."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from oracle.executor import NaiveExecutor
from oracle.naive import model
from oracle.programs import Case, arrival_orders, executor_steps, random_case
from streamlog.analysis.dependency import Mark
from streamlog.analysis.schema import Kind
from streamlog.analysis.sequential import Class
from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Source
from streamlog.runtime.executor import END, Row


def compiled(case: Case) -> Program:
    return compile_source(Source("random", case.text), until="contract")


def derived(compilation: Program, found: dict[str, set[Row]]) -> dict[str, set[Row]]:
    schema = compilation.schema
    return {n: rows for n, rows in found.items() if schema[n].kind is Kind.DERIVED and rows}


@pytest.mark.parametrize("seed", range(60))
def test_steps_end_with_the_model_and_take_nothing_back(seed: int) -> None:
    rng = Random(seed)
    case = random_case(rng)
    compilation = compiled(case)
    executor = NaiveExecutor(compilation, case.tables)
    found: dict[str, set[Row]] = {}
    for arrived, progress in executor_steps(rng, case.facts):
        for name, rows in executor.step(arrived, progress).items():
            assert not found.setdefault(name, set()) & set(rows), "returned twice"
            found[name] |= set(rows)
    expected = derived(compilation, model(compilation, {**case.facts, **case.tables}))
    assert found == expected, case.text


def test_generator_mixes_everything() -> None:
    kinds: Counter[str] = Counter()
    count = 60
    for seed in range(count):
        compilation = compiled(random_case(Random(seed)))
        graph = compilation.graph
        marks = {e.mark for e in graph.edges}
        kinds["negation"] += Mark.NEGATION in marks
        kinds["aggregate"] += bool({Mark.AGGREGATE, Mark.EXTREMUM} & marks)
        kinds["recursion"] += any(map(graph.is_internal, graph.edges))
        kinds["marked recursion"] += any(e.mark and graph.is_internal(e) for e in graph.edges)
        kinds["waits"] += any(r.kind is Class.WAITS for r in compilation.rules)
        kinds["open"] += any(compilation.safety.open.values())
        kinds["min or max in recursion"] += bool(compilation.strata.extrema)
    assert all(number >= count / 20 for number in kinds.values()) and len(kinds) == 7, kinds


@pytest.mark.parametrize("slack", [0, 3])
def test_arrival_orders_keep_the_slack(slack: int) -> None:
    for seed in range(50):
        rng = Random(seed)
        facts = random_case(rng).facts
        batches = arrival_orders(rng, facts, slack)
        order = [arrival for batch in batches for arrival in batch]
        assert sorted(order) == sorted((n, row) for n, rows in facts.items() for row in rows)
        latest: dict[str, int] = {}
        for name, row in order:
            latest[name] = max(latest.get(name, row[0]), row[0])
            assert row[0] >= latest[name] - slack


def test_steps_are_what_an_executor_asks_for() -> None:
    for seed in range(50):
        rng = Random(seed)
        facts = random_case(rng).facts
        before: dict[str, int] = {}
        came: dict[str, list[Row]] = {name: [] for name in facts}
        for arrived, progress in executor_steps(rng, facts):
            for name, rows in arrived.items():
                assert all(row[0] >= before.get(name, row[0]) for row in rows)
                came[name] += rows
            assert all(progress[n] >= time for n, time in before.items())
            before = progress
        assert came == {name: sorted(rows) for name, rows in facts.items()}
        assert set(before.values()) <= {END}
