"""That the benchmarks can be run as they are described; what they measure is no test."""

from __future__ import annotations

import sys
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks import environments
from benchmarks.__main__ import BEGIN, END, HERE, PAGE, SYSTEMS
from benchmarks.goals import GOALS, LOCAL, table
from benchmarks.growth import exponent
from benchmarks.workloads import WORKLOADS
from streamlog.compiler import Mode, compile_source
from streamlog.diagnostics import Source


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads(name: str, tmp_path: Path) -> None:
    """Each has a program with its outputs, data for its inputs, and something to compare with."""
    workload = WORKLOADS[name]
    source = Source(str(workload.program), workload.program.read_text(encoding="utf-8"))
    program = compile_source(source, mode=Mode.STREAM, root=workload.program.parent)
    if not program.ok:
        program = compile_source(source, mode=Mode.BATCH, root=workload.program.parent)
    assert program.ok
    assert set(workload.outputs) <= set(program.contract.outputs)
    workload.make(tmp_path, 400)
    assert {path.stem for path in tmp_path.iterdir()} == set(program.schema.inputs)
    systems = {s for s in SYSTEMS if (HERE / "systems" / s / f"{name}.py").exists()}
    assert LOCAL in systems
    assert len(systems) > 1


def test_goals_are_of_what_is_measured() -> None:
    for goal in GOALS:
        for system in (goal.system, *goal.peers):
            assert (HERE / "systems" / system / f"{goal.workload}.py").exists(), goal
    text = table({"first": {LOCAL: 2.0, "duckdb": 1.0}, "latest": {LOCAL: 3.0, "polars": 2.0}})
    assert "| first | streamlog_local | duckdb | 1.3× | 24× | 2.0×, missed |" in text
    assert "| latest | streamlog_local | duckdb or polars | 1.5× | – | 1.5× |" in text
    assert "| week_sum | streamlog_local | duckdb | 1.3× | 20× | – |" in text


def test_the_exponent() -> None:
    assert exponent([100, 200, 400], [0.5, 1.0, 2.0]) == pytest.approx(1)
    assert exponent([100, 200, 400], [1.0, 4.0, 16.0]) == pytest.approx(2)


def test_the_page_has_a_place_for_results() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.index(BEGIN) < text.index(END)
    medium = HERE / "results" / "medium.md"
    if medium.exists():
        assert medium.read_text(encoding="utf-8") in text


def test_an_environment_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    system, made = tmp_path / "polars", []
    system.mkdir()
    (system / "requirements.txt").touch()
    create = venv.create

    def watched(folder: Path, **options: bool) -> None:
        made.append(folder)
        create(folder, **options)

    monkeypatch.setattr(environments, "ENVIRONMENTS", tmp_path / "cache")
    monkeypatch.setattr(venv, "create", watched)
    with ThreadPoolExecutor(2) as pool:
        pythons = set(pool.map(environments.environment, [system, system]))
    (folder,) = made
    assert pythons == {str(folder / "bin" / "python")}
    # What is not an environment any more is that of the machine.
    (folder / "pyvenv.cfg").unlink()
    with pytest.raises(SystemExit, match="delete"):
        environments.environment(system)
