"""The running example of the thesis on garbage collection: answers, and what is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlog.compiler import compile_file
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine

PRE_ALARMS = [(2, 1), (4, 1), (7, 1), (8, 1)]
REPORTS = [(3, 1), (6, 1)]


@pytest.fixture
def engine(repository: Path) -> Engine:
    return Engine(compile_file(repository / "rules" / "airport" / "thesis.slog"), Kernel)


def kept(engine: Engine) -> dict[str, list[tuple[object, ...]]]:
    """What is in memory for answers to come, where there is something."""
    return {name: rows for name, rows in engine.executor.holding().items() if rows}


def until_12(engine: Engine) -> None:
    """Everything up to and including minute 12 has come."""
    engine.push("pre_alarm", PRE_ALARMS)
    engine.push("report", REPORTS)
    engine.advance(13)


def test_7_is_raised_when_12_is_over_and_not_before(engine: Engine) -> None:
    engine.push("pre_alarm", PRE_ALARMS)
    engine.push("report", REPORTS)
    engine.advance(12)
    assert engine.step() == {"pc_alarm": []}
    engine.advance(13)
    assert engine.step() == {"pc_alarm": [(7, 1)]}


def test_then_only_8_is_kept(engine: Engine) -> None:
    until_12(engine)
    engine.step()
    assert kept(engine) == {"pre_alarm": [(8, 1)]}


def test_8_is_never_raised_once_the_report_of_13_has_come(engine: Engine) -> None:
    until_12(engine)
    engine.step()
    engine.push("report", [(13, 1)])
    engine.advance(15)
    assert engine.step() == {"pc_alarm": []}
    assert kept(engine) == {"report": [(13, 1)]}  # a pre-alarm from 10 on could still come late
    engine.end()
    assert engine.step() == {"pc_alarm": []}
    assert engine.facts("pc_alarm") == [(7, 1)]
    assert kept(engine) == {}


def test_the_keep_value_of_both_inputs_is_7(engine: Engine) -> None:
    """Whatever lies later than 7 is kept, and nothing else: with a row for every minute, each of an
    area of its own."""
    engine.push("pre_alarm", [(minute, minute) for minute in range(1, 13)])
    engine.push("report", [(minute, minute + 20) for minute in range(1, 13)])
    engine.advance(13)
    engine.step()
    assert kept(engine) == {
        "pre_alarm": [(minute, minute) for minute in range(8, 13)],
        "report": [(minute, minute + 20) for minute in range(8, 13)],
    }


def test_of_the_reports_of_one_area_the_latest_is_enough(engine: Engine) -> None:
    """Less than the thesis keeps: if any report follows a pre-alarm, the latest does."""
    engine.push("pre_alarm", [(minute, 1) for minute in range(1, 13)])
    engine.push("report", [(minute, 2) for minute in range(1, 13)])
    engine.advance(13)
    engine.step()
    assert kept(engine) == {
        "pre_alarm": [(minute, 1) for minute in range(8, 13)],
        "report": [(12, 2)],
    }


@pytest.mark.parametrize("step_by_step", [False, True])
def test_memory_follows_the_window_not_the_past(engine: Engine, step_by_step: bool) -> None:
    most = 0
    for minute in range(2_000):
        engine.push("pre_alarm", [(minute, minute % 50)])
        engine.push("report", [(minute, minute % 7)])
        if step_by_step:
            engine.step()
            most = max(most, sum(map(len, kept(engine).values())))
    engine.step()
    assert max(most, sum(map(len, kept(engine).values()))) <= 2 * 6
