"""The expected answers of the papers' index, each as data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oracle import naive
from oracle.executor import NaiveExecutor
from oracle.naive import model
from streamlog.compiler import Mode, compile_file, compile_source
from streamlog.diagnostics import Source
from streamlog.runtime.executor import END, Row

RULES = Path(__file__).parents[2] / "rules" / "streamlog"


def rows(text: str, shape: str) -> set[Row]:
    """`3red 5red` by a shape such as `(\\d+)(\\w+)`; digits are numbers."""
    found = set()
    for word in text.split():
        match = re.fullmatch(shape, word)
        assert match, word
        found.add(tuple(int(g) if g.isdigit() else g for g in match.groups()))
    return found


MESSAGE = r"(\d+)([a-z]+)"  # 3red
ARC = r"(\d+)([a-z])([a-z])(\d+)"  # 1ac2
SENSOR = r"(\d+)([xy]\d)"  # 4x4
TEMPERATURE = r"(\d+)(l\d)=(\d+)"  # 1l1=20

MSG = {"msg": rows("1red 2blue 3red 5red 5green 8blue", MESSAGE)}
ARCS = {"arc": rows("1ac2 2ab4 3bc3 4ab1 5ac2 6cd1 7bd3", ARC)}
CYCLE = {"arc": rows("1ab1 2ba1 3ac7 4bc2 5ca1 6ab1", ARC)}
SENSORS = {"sensr1": rows("1x1 4x4 6x6", SENSOR), "sensr2": rows("2y2 4y4 5y5", SENSOR)}
TEMPR = {
    "tempr": rows("1l1=20 2l2=18 2l3=25 3l1=25 4l2=30 4l1=28 4l3=30 5l1=30", TEMPERATURE),
}
UNION = "1x1 2y2 4x4 4y4 5y5 6x6"

ANSWERS = {
    "01_repeated": (MSG, "repeated", MESSAGE, "3red 5red 8blue"),
    "02_windowed": (MSG, "windowed", MESSAGE, "3red 5red"),
    "04_first": (MSG, "first", MESSAGE, "1red 2blue 5green"),
    "05_second": (MSG, "second", MESSAGE, "3red 8blue"),
    "07_path": (
        ARCS,
        "path",
        ARC,
        "1ac2 2ab4 3ac7 3bc3 4ab1 4ac4 6ad3 6ad5 6ad8 6bd4 6cd1 7ad4 7ad7 7bd3",
    ),
    "08_minpath": (ARCS, "minpath", ARC, "1ac2 2ab4 3bc3 4ab1 6ad3 6ad5 6ad8 6bd4 6cd1 7bd3"),
    "08_minpath_min": (
        CYCLE,
        "minpath",
        ARC,
        "1ab1 2aa2 2ba1 2bb2 3ac7 3bc8 4ac3 4bc2 5ca1 5cb2 5cc4",
    ),
    "08_minpath_stratum": (ARCS, "shortest", ARC, "1ac2 2ab4 3bc3 4ab1 6ad3 6bd4 6cd1 7bd3"),
    "10_union": (SENSORS, "msg", SENSOR, UNION),
    "11_synchronized_union": (SENSORS, "msg", SENSOR, UNION),
    "max_printed": (TEMPR, "hottest", TEMPERATURE, ""),
    "max_so_far": (TEMPR, "hottest", TEMPERATURE, "1l1=20 2l3=25 3l1=25 4l2=30 4l3=30 5l1=30"),
    "max_records": (TEMPR, "hottest", TEMPERATURE, "1l1=20 2l3=25 4l2=30 4l3=30"),
    "stored/03_time_warped": (MSG, "wrepeated", MESSAGE, "1red 2blue 3red"),
    "stored/06_last": (MSG, "last", MESSAGE, "5green 5red 8blue"),
    "stored/12_sort_merge_union": (SENSORS, "msg", SENSOR, "1x1 2y2 4x4 4y4 5y5"),
}


def test_every_program_has_an_expected_answer() -> None:
    assert ANSWERS.keys() == {
        str(path.relative_to(RULES).with_suffix("")) for path in RULES.rglob("*.slog")
    }


@pytest.mark.parametrize("name", ANSWERS)
def test_model_is_the_papers_answer(name: str) -> None:
    facts, pred, shape, expected = ANSWERS[name]
    mode = Mode.BATCH if name.startswith("stored/") else Mode.STREAM
    found = model(compile_file(RULES / f"{name}.slog", mode=mode, until="contract"), facts)
    assert found[pred] == rows(expected, shape)


@pytest.mark.parametrize("name", ANSWERS)
def test_executor_ends_with_the_papers_answer(name: str) -> None:
    facts, pred, shape, expected = ANSWERS[name]
    mode = Mode.BATCH if name.startswith("stored/") else Mode.STREAM
    executor = NaiveExecutor(compile_file(RULES / f"{name}.slog", mode=mode, until="contract"), {})
    found: list[Row] = []
    for time in range(10):
        arrived = {s: sorted(r for r in given if r[0] == time) for s, given in facts.items()}
        found += executor.step(arrived, dict.fromkeys(facts, time + 1)).get(pred, [])
    found += executor.step({}, dict.fromkeys(facts, END)).get(pred, [])
    assert len(found) == len(set(found))
    assert set(found) == rows(expected, shape)


@pytest.mark.parametrize("name", [n for n in ANSWERS if n.startswith("stored/")])
def test_blocking_example_is_refused_in_a_stream(name: str) -> None:
    compilation = compile_file(RULES / f"{name}.slog")
    assert {d.code for d in compilation.diagnostics if d.is_error} == {"SL0401"}


def test_example_7_runs_for_ever_on_a_cyclic_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naive, "MOST_FACTS", 100)
    compilation = compile_file(RULES / "07_path.slog", until="contract")
    with pytest.raises(naive.EndlessError):
        model(compilation, {"arc": [(1, "a", "b", 1), (1, "b", "a", 1)]})


# ----------------------------------------------------- the thesis on garbage collection

ALARM = """
stream pre_alarm(T: int, area: int).
stream report(T: int, area: int).
pc_alarm(T, A) <- pre_alarm(T, A), not (report(T1, A), T <= T1, T1 <= T + 5).
"""


def test_pre_alarm_is_raised_when_five_minutes_have_passed_and_not_before() -> None:
    executor = NaiveExecutor(compile_source(Source("alarm", ALARM), until="contract"), {})

    def step(progress: int, **arrived: list[Row]) -> list[Row]:
        return executor.step(arrived, {"pre_alarm": progress, "report": progress}).get(
            "pc_alarm", []
        )

    alarms: list[Row] = [(t, 1) for t in (2, 4, 7, 8)]
    assert step(12, pre_alarm=alarms, report=[(3, 1), (6, 1)]) == []
    assert step(13) == [(7, 1)]  # everything up to and including 12 has arrived
    assert step(13, report=[(13, 1)]) == []  # which answers 8
    assert step(15) == []
    assert step(END) == []
