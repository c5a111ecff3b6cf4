"""`streamlog instance` and `streamlog catalog`: programs that run for a long time."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamlog.control.registry import instance, instances

RULES = """
stream pre_alarm(T: time, A: string).
output alarm.
alarm(T, A) <- pre_alarm(T, A), not (alarm(T0, A), T0 < T, T0 >= T - 5min).
"""


@pytest.fixture
def created(run, write, tmp_path: Path) -> Iterator[Path]:
    write("airport.slog", RULES)
    write("pre_alarm.csv", "T,A\n2026-11-15T08:00:00Z,gate 1\n")
    places = ("--input", "pre_alarm=pre_alarm.csv", "--output", "alarm=alarm.csv")
    done = run("instance", "create", "alarms", "airport.slog", *places)
    assert done.exit_code == 0, done.output
    yield tmp_path
    for known in instances(tmp_path / ".streamlog"):
        for pid in known.pids:
            os.kill(pid, signal.SIGKILL)


def eventually(what: Callable[[], bool], message: str) -> None:
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until, message
        time.sleep(0.05)


def feed(folder: Path, *lines: str) -> None:
    with (folder / "pre_alarm.csv").open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def answered(folder: Path, *answers: str) -> None:
    expected = ["T,A", *answers]
    path = folder / "alarm.csv"
    eventually(
        lambda: path.exists() and path.read_text().splitlines() == expected,
        f"{path.exists() and path.read_text()}\n{(folder / '.streamlog/alarms/log').read_text()}",
    )


def test_a_day_in_its_life(run, write, created: Path) -> None:
    assert "stopped" in run("instance", "list").output
    write("airport.slog", "this is not what was copied")
    assert run("instance", "start", "alarms").exit_code == 0
    feed(created, "2026-11-15T08:01:00Z,gate 1", "2026-11-15T08:02:00Z,gate 2")
    answered(created, "2026-11-15T08:00:00Z,gate 1", "2026-11-15T08:02:00Z,gate 2")
    assert "running" in run("instance", "list").output
    twice = run("instance", "start", "alarms")
    assert twice.exit_code == 2 and "is running already" in twice.output
    refused = run("instance", "remove", "alarms")
    assert refused.exit_code == 2 and "stop it first" in refused.output
    assert "stopped alarms" in run("instance", "stop", "alarms").output
    shown = run("instance", "status", "alarms").output
    assert "stopped" in shown and "2 answers" in shown and "3 rows" in shown

    # Another version, while it runs: 10 minutes instead of 5.
    assert run("instance", "start", "alarms").exit_code == 0
    write("next.slog", RULES.replace("5min", "10min"))
    plan = run("upgrade", "alarms", "next.slog", "--plan")
    assert plan.exit_code == 0 and "never complete" in plan.output
    done = run("upgrade", "alarms", "next.slog", "--incomplete", "alarm")
    assert done.exit_code == 0 and "is upgraded, and runs again" in done.output, done.output
    feed(created, "2026-11-15T08:30:00Z,gate 2", "2026-11-15T08:36:00Z,gate 2")
    before = ("2026-11-15T08:00:00Z,gate 1", "2026-11-15T08:02:00Z,gate 2")
    answered(created, *before, "2026-11-15T08:30:00Z,gate 2")
    known = instance(created / ".streamlog", "alarms")
    assert (known.version.number, len(known.versions)) == (2, 2)
    run("instance", "stop", "alarms")
    assert "pre_alarm" in run("instance", "logs", "alarms").output
    assert run("instance", "remove", "alarms").exit_code == 0
    assert run("instance", "list").output == "no instances\n"
    assert (created / "alarm.csv").exists()


def test_a_crash_starts_it_again(run, created: Path) -> None:
    assert run("instance", "start", "alarms").exit_code == 0
    answered(created, "2026-11-15T08:00:00Z,gate 1")
    known = instance(created / ".streamlog", "alarms")
    eventually(lambda: len(known.pids) == 2, "it has no lock")
    os.kill(known.pids[1], signal.SIGKILL)
    feed(created, "2026-11-15T08:02:00Z,gate 2")
    answered(created, "2026-11-15T08:00:00Z,gate 1", "2026-11-15T08:02:00Z,gate 2")
    assert "starting it again" in run("instance", "logs", "alarms").output
    run("instance", "stop", "alarms")
    assert known.pids == ()


def test_what_is_refused(run, write, created: Path) -> None:
    write("airport.slog", RULES)
    places = ("--input", "pre_alarm=pre_alarm.csv", "--output", "alarm=alarm.csv")
    for name, why in (
        ("alarms", "there is an instance 'alarms' already"),
        ("other", "is an output of 'alarms'"),
        ("../other", "is not a name of an instance"),
        (".hidden", "is not a name of an instance"),
    ):
        done = run("instance", "create", name, "airport.slog", *places)
        assert done.exit_code == 2 and why in done.output, done.output
    done = run("instance", "create", "other", "airport.slog", *places[:2])
    assert "an instance needs a place for each output" in done.output
    for command in ("start", "stop", "status", "logs", "remove", "run"):
        done = run("instance", command, "others")
        assert done.exit_code == 2 and "there is no instance 'others'" in done.output
    assert run("upgrade", "others", "airport.slog").exit_code == 2


def test_an_upgrade_that_fails_leaves_the_old_version(run, write, created: Path) -> None:
    write("next.slog", RULES.replace("5min", "10min"))
    done = run("upgrade", "alarms", "next.slog")
    assert done.exit_code == 2 and "there is no checkpoint" in done.output
    write(
        "next.slog",
        RULES.replace("output alarm", "output alarm, more") + "more(T, A) <- alarm(T, A).",
    )
    done = run("upgrade", "alarms", "next.slog")
    assert done.exit_code == 2 and "say where with --output more=PATH" in done.output
    write("next.slog", "alarm(T) <- nothing")
    assert run("upgrade", "alarms", "next.slog").exit_code == 1
    assert run("instance", "start", "alarms").exit_code == 0
    answered(created, "2026-11-15T08:00:00Z,gate 1")


def test_names_are_shown_as_they_are(run, write, tmp_path: Path) -> None:
    write("[bold].slog", RULES)
    write("in/[red]a.csv", "T,A\n")
    places = ("--input", "pre_alarm=in/[red]a.csv", "--output", "alarm=[b]\x1b[31m.csv")
    done = run("instance", "create", "odd", "[bold].slog", *places)
    assert done.exit_code == 0, done.output
    shown = "".join(run("instance", "status", "odd").output.split())
    assert "[red]a.csv" in shown and "[bold].slog" in shown and "\x1b" not in shown
    assert "[bold].slog" in run("instance", "list").output
    catalog = run("catalog")
    assert catalog.exit_code == 0 and "\x1b" not in catalog.output


def test_the_catalog_has_the_types(run, created: Path) -> None:
    shown = " ".join(run("catalog").output.split())
    assert "pre_alarm stream T: time, A: string" in shown
    assert "alarm output T: time, A: string" in shown
