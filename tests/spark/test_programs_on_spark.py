"""Every program there is, on Spark: its own tests, and rows by chance, at once and in steps, for
which the kernel's answers are expected."""

from __future__ import annotations

from math import isclose
from pathlib import Path
from random import Random

import pytest
from oracle.programs import on_views
from pyspark.sql import SparkSession
from runtime.test_kept import batches, tables_by_chance

from streamlog.app.ruletest import Options, run_suite, suite_of
from streamlog.compiler import Mode, Program, compile_file
from streamlog.kernel import Kernel
from streamlog.runtime.columns import column_types, types_of_rows
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import END, Row
from streamlog.spark import run, wire
from streamlog.spark.executor import SparkExecutor

ROOT = Path(__file__).parents[2]
RULES, PROGRAMS = (
    sorted(p.relative_to(ROOT) for p in (ROOT / folder).rglob("*.slog") if p.parent.name != "lib")
    for folder in ("rules", "tests/programs")
)


@pytest.mark.parametrize("path", RULES, ids=str)
def test_rules(path: Path) -> None:
    found = run_suite(suite_of(str(ROOT / path)), Options(shuffle=False, executor=SparkExecutor))
    assert found.verdicts
    assert [v.problems for v in found.verdicts if not v.passed] == []


def rows_by_chance(program: Program) -> dict[str, list[Row]]:
    """The first of those that the test of what is kept uses."""
    rows: dict[str, list[Row]] = {s: [] for s in program.schema.streams}
    for batch, _ in list(batches(program))[:3]:
        for stream, row in batch:
            rows[stream].append(row)
    return {stream: sorted(set(some)) for stream, some in rows.items()}


def answers(
    program: Program, rows: dict[str, list[Row]], tables: dict[str, list[Row]]
) -> dict[str, list[Row]]:
    known = Engine(program, Kernel, tables).tables
    facts = on_views(rows, program.schema.views)
    found = Kernel(program.closed, known).step(facts, dict.fromkeys(facts, END))
    return {name: sorted(found.get(name, [])) for name in program.contract.outputs}


def same(found: list[Row], wanted: list[Row]) -> bool:
    """Sums of floats depend on the order in their last digits."""
    return len(found) == len(wanted) and all(
        a == b or (isinstance(a, float) and isclose(a, b))
        for one, other in zip(found, wanted, strict=True)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("path", [*RULES, *PROGRAMS], ids=str)
def test_rows_by_chance_at_once(path: Path, spark: SparkSession) -> None:
    mode = Mode.BATCH if "stored" in path.parts else Mode.STREAM
    program = compile_file(ROOT / path, mode=mode)
    rows, tables = rows_by_chance(program), tables_by_chance(program)
    types = column_types(program.closed, types_of_rows({**rows, **tables}))
    names = program.schema.column_names
    frames = {
        s: spark.createDataFrame(wire.relation(some, types[s]), wire.columns(types[s])).toDF(
            *names[s]
        )
        for s, some in {**rows, **tables}.items()
        if some and s in types
    }
    empty = [name for name in program.schema.inputs if name not in frames]
    found = run(program, frames, spark=spark, empty=empty)
    for name, wanted in answers(program, rows, tables).items():
        assert same(sorted(map(tuple, found.relations[name].collect())), wanted), name
    found.release()


@pytest.mark.parametrize("path", PROGRAMS, ids=str)
def test_rows_by_chance_in_steps(path: Path) -> None:
    program = compile_file(ROOT / path)
    rows, tables = rows_by_chance(program), tables_by_chance(program)
    expected = answers(program, rows, tables)
    rng = Random(str(path))
    engine = Engine(program, SparkExecutor, tables)
    times = sorted(row[0] for some in rows.values() for row in some)
    for cut in [*sorted(rng.sample(times, 2)), END]:
        for stream, some in rows.items():
            engine.push(stream, [r for r in some if r[0] < cut])
            rows[stream] = [r for r in some if r[0] >= cut]
        engine.advance(cut) if cut < END else engine.end()
        engine.step()
    for name, wanted in expected.items():
        assert same(engine.facts(name), wanted), name
