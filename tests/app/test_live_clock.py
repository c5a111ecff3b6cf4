"""The wall clock in real processes: alarms about silence, and what kills do not change."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

from test_following import PATIENCE, add, following, stop, text, until

PROGRAM = """
stream beat(T: time, sensor: string) arrives within 1s.
output silent.
silent(T, S) <- beat(T, S), not (beat(T1, S), T < T1, T1 <= T + 2s).
"""
ARGS = ("p.slog", "--output", "silent=silent.csv", "--late", "late.csv", "--checkpoint", "st")


def stamp(ago: float = 0) -> str:
    now = datetime.now(timezone.utc) - timedelta(seconds=ago)
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def alarms(folder: Path) -> list[str]:
    return [line.split(",")[1] for line in text(folder / "silent.csv").splitlines()[1:]]


def test_an_alarm_is_raised_in_silence(write, tmp_path: Path) -> None:
    write("p.slog", PROGRAM)
    write("beat.csv", f"T,sensor\n{stamp(3600)},old\n")
    with following(tmp_path, *ARGS, "--input", "beat=beat.csv") as process:
        until(lambda: alarms(tmp_path) == ["old"])
        due = time.monotonic() + 3
        add(tmp_path / "beat.csv", f"{stamp()},a\n")
        until(lambda: alarms(tmp_path) == ["old", "a"])
        waited = time.monotonic() - due
        print(f"raised {waited:.2f} s after it was due", file=sys.stderr)
        assert waited > -0.5
        assert stop(process) == 0
    assert text(tmp_path / "late.csv").count("\n") == 1  # the header
    assert "is not raised while" not in text(tmp_path / "err")


def test_a_run_that_is_killed_in_the_silence_raises_it_once(write, tmp_path: Path) -> None:
    write("p.slog", PROGRAM)
    (tmp_path / "in").mkdir()
    write("in/1.csv", f"T,sensor\n{stamp()},a\n{stamp()},b\n")
    args = (*ARGS, "--input", "beat=in")
    with following(tmp_path, *args) as process:
        until(lambda: list((tmp_path / "st").glob("*/manifest.json")))
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    # What comes while nobody reads is not late, though its time has been passed by the clock.
    write("in/2.csv", f"T,sensor\n{stamp()},c\n")
    time.sleep(3)
    for _ in range(2):
        with following(tmp_path, *args) as process:
            until(lambda: sorted(alarms(tmp_path)) == ["a", "b", "c"])
            time.sleep(0.5)
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE)
    assert sorted(alarms(tmp_path)) == ["a", "b", "c"]
    assert text(tmp_path / "late.csv").count("\n") == 1


def test_the_clock_moves_only_streams_that_say_so(write, tmp_path: Path) -> None:
    write("p.slog", PROGRAM.replace(" arrives within 1s", ""))
    write("beat.csv", f"T,sensor\n{stamp(60)},a\n")
    with following(tmp_path, *ARGS, "--input", "beat=beat.csv") as process:
        until(lambda: list((tmp_path / "st").glob("*/manifest.json")))
        time.sleep(1)
        assert stop(process) == 0
    assert alarms(tmp_path) == []
    assert "only its rows move time on" in text(tmp_path / "err")


def test_complete_data_ignore_the_clock(run, write) -> None:
    write("p.slog", PROGRAM)
    write("a.csv", "T,sensor\n2026-11-15T08:00:00Z,a\n2026-11-15T08:00:01Z,a\n")
    write("b.csv", "T,sensor\n2999-11-15T08:00:00Z,b\n")
    for name, alarm in (("a", "08:00:01Z,a"), ("b", "08:00:00Z,b")):
        result = run("run", "p.slog", "--input", f"beat={name}.csv", "--format", "csv")
        assert result.exit_code == 0
        assert result.stdout.splitlines()[-1].endswith(alarm)


STAMPED = """
stream beat(T: time arrival, sensor: string).
output came, silent.
came(T, S) <- beat(T, S).
silent(T, S) <- beat(T, S), not (beat(T1, S), T < T1, T1 <= T + 2s).
"""


def test_stamps_are_those_of_the_checkpoint(write, tmp_path: Path) -> None:
    write("p.slog", STAMPED)
    (tmp_path / "in").mkdir()
    write("in/1.csv", "sensor\nb\na\nb\n")
    outputs = ("--output", "came=came.csv", "--output", "silent=silent.csv")
    args = ("p.slog", *outputs, "--late", "late.csv", "--checkpoint", "st", "--input", "beat=in")

    def lines(name: str) -> list[str]:
        return text(tmp_path / name).splitlines()[1:]

    with following(tmp_path, *args) as process:
        until(lambda: len(lines("came.csv")) == 3)
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    came = lines("came.csv")
    assert [line.split(",")[1] for line in came] == ["b", "a", "b"]
    time.sleep(2.5)
    write("in/2.csv", "sensor\nc\n")
    for _ in range(2):
        with following(tmp_path, *args) as process:
            until(lambda: len(lines("silent.csv")) == 3)
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE)
    assert lines("came.csv")[:3] == came
    assert sorted(lines("silent.csv"))[:2] == sorted(came[1:])
    assert lines("late.csv") == []
    # A run over the log, which is complete, has the same answers.
    (tmp_path / "log.csv").write_text("T,sensor\n" + "\n".join(lines("came.csv")) + "\n")
    (tmp_path / "again").mkdir()
    again = [option.replace("=", "=again/") for option in outputs]
    command = [
        sys.executable,
        "-m",
        "streamlog.app.cli",
        "run",
        "p.slog",
        "--engine",
        "local",
        *again,
    ]
    subprocess.run([*command, "--input", "beat=log.csv"], cwd=tmp_path, check=True)
    for name in ("came.csv", "silent.csv"):
        assert sorted(lines(f"again/{name}")) == sorted(lines(name))


def test_complete_data_have_their_stamps(run, write) -> None:
    write("p.slog", STAMPED)
    write("a.csv", "sensor\na\n")
    write("b.csv", "T,sensor\n2026-11-15T08:00:00Z,a\n")
    result = run("run", "p.slog", "--engine", "local", "--input", "beat=a.csv")
    assert result.exit_code == 2
    wanted = (
        "no column `T`; its columns are 'sensor'; rows are stamped as they arrive, with --follow"
    )
    assert wanted in " ".join(result.stderr.split())
    result = run("run", "p.slog", "--engine", "local", "--input", "beat=b.csv", "--format", "csv")
    assert "came,2026-11-15T08:00:00Z,a" in result.stdout.splitlines()
