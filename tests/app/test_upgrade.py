"""`streamlog upgrade`: a checkpoint goes on with another version of its program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FROZEN = Path(__file__).parent.parent / "control" / "version_7"
RULES = """
stream pre_alarm(T: time, A: string) slack 10s.
stream report(T: time, A: string) slack 10s.
output pc_alarm, busy.

pc_alarm(T, A) <- pre_alarm(T, A), not (report(T1, A), T - 5min <= T1, T1 < T).
busy(T, A, count()) <- report(T, A), report(T1, A), T - 10min < T1, T1 <= T.
"""
ARGS = ("--engine", "local", "--checkpoint", "state")
ARGS += ("--input", "pre_alarm=pre_alarm.csv", "--input", "report=report.csv")
BOTH = ("--output", "pc_alarm=pc_alarm.csv", "--output", "busy=busy.csv")
HALF = 15  # lines of each input that the old program sees


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()[1:] if path.exists() else []


def times(path: Path) -> list[str]:
    return [line.split(",")[0] for line in lines(path)]


@pytest.fixture
def stopped(run, write, tmp_path: Path) -> Path:
    """A run over half of the data that was stopped before it had decided all."""
    write("old.slog", RULES)
    feed(tmp_path, HALF)
    done = run_following(tmp_path, "old.slog", *BOTH)
    assert "pc_alarm" in done
    return tmp_path


def feed(folder: Path, count: int | None = None) -> None:
    for name in ("pre_alarm", "report"):
        rows = (FROZEN / f"{name}.csv").read_text().splitlines(keepends=True)
        (folder / f"{name}.csv").write_text("".join(rows[: count and count + 1]))


def run_following(folder: Path, program: str, *outputs: str) -> str:
    """Until it has read all there is, then stopped."""
    code = (
        "import sys\n"
        "from streamlog.app.run_following import FollowingRun\n"
        "FollowingRun._wait = lambda run: run.asked.set()\n"
        "from streamlog.app.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", code, "run", program, *ARGS, "--follow", *outputs]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def whole(run, folder: Path, program: str, name: str) -> list[str]:
    """What the program answers if it runs from the beginning."""
    output = folder / f"whole-{name}.csv"
    args = [a for a in ARGS if a not in ("--checkpoint", "state")]
    shown = ("--format", "csv") if name == "busy" else ()
    done = run("run", program, *args, "--output", f"{name}={output}", *shown)
    assert done.exit_code == 0, done.output
    return lines(output)


def test_what_is_unchanged_goes_on_and_what_is_changed_is_right(run, write, stopped: Path) -> None:
    write("new.slog", RULES.replace("5min", "6min"))
    before = {name: lines(stopped / f"{name}.csv") for name in ("pc_alarm", "busy")}
    assert before["pc_alarm"] and before["busy"]
    refused = run("run", "new.slog", *ARGS, *BOTH)
    assert refused.exit_code == 2 and "`--upgrade`, or `streamlog upgrade`" in refused.output
    files = {
        p: p.read_bytes()
        for p in (stopped / "state").rglob("*")
        if p.name != "lock" and p.is_file()
    }
    plan = run("upgrade", "state", "new.slog", "--plan")
    assert plan.exit_code == 0, plan.output
    assert files == {p: p.read_bytes() for p in files}
    done = run("upgrade", "state", "new.slog")
    assert done.exit_code == 0 and "unchanged" in done.output and "rebuilt" in done.output
    assert done.output.splitlines()[:-1] == plan.output.splitlines()[:-1]
    feed(stopped)
    done = run("run", "new.slog", *ARGS, *BOTH)
    assert done.exit_code == 0, done.output
    assert lines(stopped / "busy.csv") == whole(run, stopped, "old.slog", "busy")
    after = lines(stopped / "pc_alarm.csv")
    assert after[: len(before["pc_alarm"])] == before["pc_alarm"]
    assert len(after) == len({*after})
    new = after[len(before["pc_alarm"]) :]
    last = max(before["pc_alarm"])
    assert new == [a for a in whole(run, stopped, "new.slog", "pc_alarm") if a > last]


def test_a_run_upgrades_when_it_starts(run, write, stopped: Path) -> None:
    write("new.slog", RULES.replace("5min", "6min"))
    feed(stopped)
    done = run("run", "new.slog", *ARGS, *BOTH, "--upgrade")
    assert done.exit_code == 0, done.output
    assert "rebuilt" in done.output and "resuming after 30 rows" in done.output
    assert lines(stopped / "busy.csv") == whole(run, stopped, "old.slog", "busy")


def test_an_operator_can_do_with_less(run, write, stopped: Path) -> None:
    more = RULES.replace("pc_alarm, busy", "pc_alarm, busy, total")
    write("new.slog", f"{more}total(T, A, count()) <- report(T, A), report(T1, A), T1 <= T.\n")
    wrong = run("upgrade", "state", "new.slog", "--incomplete", "totals")
    assert wrong.exit_code == 2 and "did you mean 'total'?" in wrong.output
    done = run("upgrade", "state", "new.slog", "--incomplete", "total")
    assert done.exit_code == 0 and "perhaps wrong" in done.output, done.output
    feed(stopped)
    done = run("run", "new.slog", *ARGS, *BOTH, "--output", "total=total.csv")
    assert done.exit_code == 0 and len(lines(stopped / "total.csv")) > 3


def test_answers_wait_until_they_are_certain(run, write, stopped: Path) -> None:
    """What is known of the past says from when on; the operator can see the others."""
    more = RULES.replace("pc_alarm, busy", "pc_alarm, busy, quiet")
    write(
        "new.slog",
        f"{more}quiet(T, A) <- report(T, A), not (pre_alarm(T1, A), T - 3min <= T1, T1 <= T).\n",
    )
    done = run("upgrade", "state", "new.slog")
    assert done.exit_code == 0, done.output
    assert "because `pre_alarm` is known from" in " ".join(done.output.split())
    feed(stopped)
    args = ("--output", "quiet=quiet.csv", "--withheld", "withheld.csv")
    done = run("run", "new.slog", *ARGS, *BOTH, *args)
    assert done.exit_code == 0, done.output
    assert "withheld" in done.output
    found = lines(stopped / "quiet.csv")
    expected = whole_of_three(run, stopped, "new.slog")
    assert found and found == expected[-len(found) :]
    assert len(lines(stopped / "withheld.csv")) > 0
    assert lines(stopped / "busy.csv") == whole(run, stopped, "old.slog", "busy")


def whole_of_three(run, folder: Path, program: str) -> list[str]:
    args = [a for a in ARGS if a not in ("--checkpoint", "state")]
    outputs = [f"--output={name}=w-{name}.csv" for name in ("pc_alarm", "busy", "quiet")]
    assert run("run", program, *args, *outputs).exit_code == 0
    return lines(folder / "w-quiet.csv")


def test_what_can_be_read_again_is_complete_at_once(run, write, stopped: Path) -> None:
    more = RULES.replace("pc_alarm, busy", "pc_alarm, busy, total")
    write("new.slog", f"{more}total(T, A, count()) <- report(T, A), report(T1, A), T1 <= T.\n")
    plan = run("upgrade", "state", "new.slog", "--plan")
    assert "looks back at all of `report`, which is known from" in " ".join(plan.output.split())
    done = run("upgrade", "state", "new.slog", "--since", "start")
    assert done.exit_code == 0 and "replayed" in done.output
    feed(stopped)
    done = run("run", "new.slog", *ARGS, *BOTH, "--output", "total=total.csv")
    assert done.exit_code == 0, done.output
    args = [a for a in ARGS if a not in ("--checkpoint", "state")]
    outputs = [f"--output={name}=w-{name}.csv" for name in ("pc_alarm", "busy", "total")]
    assert run("run", "new.slog", *args, *outputs).exit_code == 0
    assert lines(stopped / "total.csv") == lines(stopped / "w-total.csv")


def test_the_page_shows_what_is_printed(run, write, tmp_path: Path, repository: Path) -> None:
    page = (repository / "docs" / "operations.md").read_text()
    program = page.split("```slog file=airport.slog\n")[1].split("```")[0]
    added, plan = page.split("the new version adds a third output:")[1].split("```text\n")[1:3]
    write("old.slog", program)
    feed(tmp_path)
    run_following(tmp_path, "old.slog", *BOTH)
    more = program.replace("pc_alarm, busy", "pc_alarm, busy, quiet")
    write("new.slog", more + added.split("```")[0])
    done = run("upgrade", "state", "new.slog", "--plan")
    assert done.output.rsplit("nothing was changed", 1)[0] == plan.split("```")[0]


def test_an_output_that_is_gone_ends(run, write, stopped: Path) -> None:
    rules = RULES.replace("pc_alarm, busy", "busy").splitlines()
    write("new.slog", "\n".join(r for r in rules if not r.startswith("pc_alarm")))
    before = lines(stopped / "pc_alarm.csv")
    done = run("upgrade", "state", "new.slog")
    assert "removed" in done.output and "end" in done.output
    feed(stopped)
    args = [a for a in ARGS if "pre_alarm" not in a]
    args.remove("--input")
    done = run(
        "run", "new.slog", *args, "--input", "pre_alarm=pre_alarm.csv", "--output", "busy=busy.csv"
    )
    assert done.exit_code == 0, done.output
    assert lines(stopped / "pc_alarm.csv") == before
    assert lines(stopped / "busy.csv") == whole(run, stopped, "old.slog", "busy")


CRASHING = """
import os, sys
from streamlog.runtime import checkpoint
left = [int(sys.argv.pop(1))]
def counted(function):
    def call(*args, **more):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), 9)
        return function(*args, **more)
    return call
os.fsync, checkpoint.shutil.rmtree = counted(os.fsync), counted(checkpoint.shutil.rmtree)
os.rename = counted(os.rename)
checkpoint.Path.rename = counted(checkpoint.Path.rename)
from streamlog.app.cli import main
main(sys.argv[1:])
"""


def test_a_killed_upgrade_leaves_the_old_or_the_new(run, write, stopped: Path) -> None:
    write("new.slog", RULES.replace("5min", "6min"))
    shutil.copytree(stopped / "state", stopped / "kept")
    outcomes = []
    for number in (0, 1, 3, 5, 7, 30):
        shutil.rmtree(stopped / "state")
        shutil.copytree(stopped / "kept", stopped / "state")
        command = [sys.executable, "-c", CRASHING, str(number), "upgrade", "state", "new.slog"]
        done = subprocess.run(command, cwd=stopped, capture_output=True, check=False)
        fits = [
            run("upgrade", "state", program, "--plan").output.count("unchanged") == 2
            for program in ("old.slog", "new.slog")
        ]
        assert fits.count(True) == 1, number
        outcomes.append((done.returncode, fits[1]))
        if done.returncode == 0:
            break
    assert outcomes[0] == (-9, False) and outcomes[-1] == (0, True)
    assert (-9, True) in outcomes


# ------------------------------------------------------------------------- earlier versions


@pytest.fixture(params=[7, 8])
def frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request) -> Path:
    """A checkpoint of each version: 7 has no layers, nor the text of its program."""
    shutil.copytree(FROZEN.with_name(f"version_{request.param}"), tmp_path / "frozen")
    monkeypatch.chdir(tmp_path / "frozen")
    return tmp_path / "frozen"


def test_a_checkpoint_of_each_version_goes_on(run, frozen: Path) -> None:
    os.chdir(frozen)
    done = run("run", "airport.slog", *ARGS, *BOTH)
    assert done.exit_code == 0, done.output
    assert "resuming after 49 rows" in done.output
    assert lines(frozen / "busy.csv") == whole(run, frozen, "airport.slog", "busy")


def test_a_checkpoint_of_each_version_is_upgraded(run, frozen: Path) -> None:
    os.chdir(frozen)
    (frozen / "new.slog").write_text(RULES.replace("5min", "6min"))
    old: tuple[str, ...] = ()
    if '"version": 7' in next(frozen.glob("state/*/manifest.json")).read_text():
        refused = run("upgrade", "state", "new.slog")
        assert refused.exit_code == 2 and "give that with --old" in refused.output
        wrong = run("upgrade", "state", "new.slog", "--old", "new.slog")
        assert wrong.exit_code == 2 and "is of another program" in wrong.output
        old = ("--old", "airport.slog")
    done = run("upgrade", "state", "new.slog", *old)
    assert done.exit_code == 0, done.output
    before = lines(frozen / "pc_alarm.csv")
    done = run("run", "new.slog", *ARGS, *BOTH)
    assert done.exit_code == 0, done.output
    assert lines(frozen / "busy.csv") == whole(run, frozen, "airport.slog", "busy")
    assert lines(frozen / "pc_alarm.csv")[: len(before)] == before


# ------------------------------------------------------------------------- what programs have


def follow(folder: Path, program: str, *args: str) -> str:
    """As `run_following`, with other inputs and outputs."""
    code = (
        "import sys\n"
        "from streamlog.app.run_following import FollowingRun\n"
        "FollowingRun._wait = lambda run: run.asked.set()\n"
        "from streamlog.app.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", code, "run", program, "--engine", "local", "--follow"]
    command += ["--checkpoint", "state", *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_used_files_and_python_functions_are_part_of_a_program(run, write, tmp_path: Path) -> None:
    write("streamlog.toml", "")
    write(
        "lib/x.slog",
        'export big.\nfunction risk(int): int from "lib/risk.py".\n'
        "stream s(T: int, N: int).\nbig(T, N) <- s(T, N), risk(N) > 5.\n",
    )
    write("lib/risk.py", "def risk(n): return n * 2\n")
    rules = 'use "lib/x.slog" as x.\noutput p, q.\np(T, N) <- x.big(T, N).\n'
    write("old.slog", f"{rules}q(T, count()) <- x.big(T, _).\n")
    write("new.slog", f"{rules}q(T, count() + 1) <- x.big(T, _).\n")
    write("s.csv", "T,N\n1,1\n2,3\n3,9\n4,4\n")
    args = ("--allow-python", "--input", "x.s=s.csv", "--output", "p=p.csv", "--output", "q=q.csv")
    follow(tmp_path, "old.slog", *args)
    plan = run("upgrade", "state", "new.slog", "--plan", "--allow-python").output
    assert [line.split()[:2] for line in plan.splitlines()[2:4]] == [
        ["p", "unchanged"],
        ["q", "rebuilt"],
    ]
    write("lib/risk.py", "def risk(n): return n * 3\n")
    done = run("upgrade", "state", "new.slog", "--allow-python")
    assert done.exit_code == 0, done.output
    with (tmp_path / "s.csv").open("a") as file:
        file.write("5,2\n6,1\n")
    follow(tmp_path, "new.slog", *args)
    assert lines(tmp_path / "p.csv") == ["2,3", "3,9", "4,4", "5,2"]
    assert lines(tmp_path / "q.csv") == ["2,1", "3,1", "4,2", "5,2"]


def test_tables_columns_and_errors(run, write, tmp_path: Path) -> None:
    rules = (
        "stream s(T: int, N: int) slack 3.\ntable k(N: int, M: int).\noutput p, q, r.\n"
        "p(T, M) <- s(T, N), k(N, M).\nq(T, 10 / N) <- s(T, N).\nr(T, N) <- s(T, N), N > 1.\n"
    )
    write("c.slog", rules)
    write("s.csv", "T,N\n1,1\n2,0\n3,9\n4,4\n")
    write("k.csv", "N,M\n1,10\n9,90\n")
    args = ("--on-error", "skip", "--errors", "e.csv", "--input", "s=s.csv", "--input", "k=k.csv")
    outputs = [f"--output={name}={name}.csv" for name in "pqr"]
    follow(tmp_path, "c.slog", *args, *outputs)
    write("k.csv", "N,M\n1,11\n9,91\n4,44\n")
    done = run("upgrade", "state", "c.slog")
    assert done.exit_code == 0, done.output
    states = [line.split()[:2] for line in done.output.splitlines()[2:5]]
    assert states == [["p", "rebuilt"], ["q", "unchanged"], ["r", "unchanged"]]
    with (tmp_path / "s.csv").open("a") as file:
        file.write("8,4\n9,0\n20,1\n")
    follow(tmp_path, "c.slog", *args, *outputs)
    assert lines(tmp_path / "p.csv") == ["1,10", "3,91", "4,44", "8,44"]
    assert [line.split(",")[0] for line in lines(tmp_path / "q.csv")] == ["1", "3", "4", "8"]
    assert len(lines(tmp_path / "e.csv")) == 2
    # Rows that wait and have other columns now are gone, and so is what rests on them.
    write("d.slog", rules.replace("N: int", "N: float").replace("10 / N", "N"))
    done = run("upgrade", "state", "d.slog")
    assert "1 row of s lost before evaluation" in done.output
    assert "`r`: complete from 21 on, because `s` is known from 21 on" in done.output
