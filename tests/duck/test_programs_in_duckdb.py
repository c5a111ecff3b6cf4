"""Every program there is, in DuckDB: its own tests, and rows by chance in steps, for which the
kernel's answers are expected."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from runtime.test_kept import batches, tables_by_chance

from streamlog.app.ruletest import Options, run_suite, suite_of
from streamlog.compiler import Program, compile_file
from streamlog.duck import DuckExecutor
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import END, ExecutorFactory, Row

ROOT = Path(__file__).parents[2]
RULES, PROGRAMS = (
    sorted(p.relative_to(ROOT) for p in (ROOT / folder).rglob("*.slog") if p.parent.name != "lib")
    for folder in ("rules", "tests/programs")
)


@pytest.mark.parametrize("path", RULES, ids=str)
def test_rules(path: Path) -> None:
    found = run_suite(suite_of(str(ROOT / path)), Options(shuffle=False, executor=DuckExecutor))
    assert found.verdicts
    assert [v.problems for v in found.verdicts if not v.passed] == []


def answers(
    program: Program, executor: ExecutorFactory, rows: list[tuple[str, Row]], cuts: list[int]
) -> dict[str, list[Row]]:
    engine = Engine(program, executor, tables_by_chance(program))
    for cut in [*cuts, END]:
        for stream, row in rows:
            if row[0] < cut:
                engine.push(stream, [row])
        rows = [(stream, row) for stream, row in rows if row[0] >= cut]
        engine.advance(cut) if cut < END else engine.end()
        engine.step()
    return {name: engine.facts(name) for name in program.contract.outputs}


@pytest.mark.parametrize("path", PROGRAMS, ids=str)
def test_rows_by_chance_in_steps(path: Path) -> None:
    program = compile_file(ROOT / path)
    given = [entry for batch, _ in list(batches(program))[:3] for entry in batch]
    rows = sorted(dict.fromkeys(given), key=lambda entry: entry[1][0])
    times = sorted({row[0] for _, row in rows})
    cuts = sorted(Random(str(path)).sample(times, 2))
    assert answers(program, DuckExecutor, rows, cuts) == answers(program, Kernel, rows, cuts)
