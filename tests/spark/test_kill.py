"""`kill -9` of the driver at random moments of a file-to-file run, with a stream that may be silent
and files that are read one by one: nothing is lost, nothing twice.
And SIGTERM, which lets the micro-batch at hand come to its end.

STREAMLOG_KILLS=10 pytest tests/spark/test_kill.py
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

import streamlog
from streamlog.kernel import Kernel
from streamlog.runtime.executor import END
from streamlog.spark.session import TINY

CONF = [f"--conf={key}={value}" for key, value in TINY.items()]
KILLS = int(os.environ.get("STREAMLOG_KILLS", "2"))
PROGRAM = """
stream ask(T: int, x: string).
stream answer(T: int, x: string) idle 15.
output open, first.
open(T, X) <- ask(T, X), not (answer(T1, X), T <= T1, T1 <= T + 5).
first(T, X) <- ask(T, X), not earlier(T, X).
earlier(T, X) <- ask(T0, X), T0 < T.
"""
DRIVER = """
import sys
from pathlib import Path
import streamlog
from streamlog.spark import session, start
from streamlog.spark.session import TINY
root = Path(sys.argv[1])
spark = session("local[1]", TINY)
reader = spark.readStream.schema("T long, x string").option("maxFilesPerTrigger", 1)
program = streamlog.compile((root / "program.slog").read_text())
running = start(
    program,
    {name: reader.parquet(str(root / name)) for name in ("ask", "answer")},
    {name: str(root / "out" / name) for name in ("open", "first")},
    str(root / "state"),
    trigger={"availableNow": True},
)
print("started", flush=True)
running.wait()
running.end()
print("ended", flush=True)
"""


def test_killed_and_started_again(tmp_path: Path) -> None:
    rng = Random(7)
    (tmp_path / "program.slog").write_text(PROGRAM)
    facts: dict[str, list[tuple]] = {"ask": [], "answer": []}
    count = 4 + 4 * KILLS
    # Read file by file, `ask` is soon further ahead than `answer` may be behind.
    for name, files in (("ask", count // 2), ("answer", count)):
        (tmp_path / name).mkdir()
        span = 10 * count // files
        for number in range(files):
            times = (span * number + rng.randrange(span) for _ in range(8))
            rows = [(time, rng.choice("abcdefgh")) for time in times]
            facts[name] += rows
            table = pa.table({"T": [r[0] for r in rows], "x": [r[1] for r in rows]})
            pq.write_table(table, tmp_path / name / f"{number}.parquet")
            os.utime(tmp_path / name / f"{number}.parquet", (number, number))
    killed = 0
    for _ in range(KILLS):
        driver = started(tmp_path)
        assert driver.stdout is not None
        if driver.stdout.readline() == "started\n":
            time.sleep(rng.uniform(0, 5))
            killed += driver.poll() is None
            os.killpg(driver.pid, signal.SIGKILL)
        driver.communicate()
    print(f"killed {killed} times in the midst of it")
    assert killed
    driver = started(tmp_path)
    out, err = driver.communicate(timeout=300)
    assert "ended" in out or "has ended" in err, err
    program = streamlog.compile(PROGRAM)
    given = {name: sorted(set(rows)) for name, rows in facts.items()}
    wanted = Kernel(program.closed, {}).step(given, dict.fromkeys(given, END))
    for name in ("open", "first"):
        files = sorted((tmp_path / "out" / name).rglob("part*.parquet"))
        found = [tuple(r.values()) for f in files for r in pq.ParquetFile(f).read().to_pylist()]
        assert sorted(found) == sorted(wanted[name]), name


def test_asked_to_stop(tmp_path: Path) -> None:
    """SIGTERM ends a run after its micro-batch, and it says what it waits for."""
    demo = Path(__file__).parents[2] / "demos" / "01_first_alarm"
    args = [str(demo / "alarm.slog"), "--engine", "spark", "--follow", "--master", "local[1]"]
    for name in ("pre_alarm", "report"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.csv").write_text((demo / f"{name}.csv").read_text())
        args += ["--input", f"{name}={tmp_path / name}"]
    args += ["--output", f"pc_alarm={tmp_path / 'out'}", "--checkpoint", str(tmp_path / "state")]
    run = subprocess.Popen(
        [sys.executable, "-m", "streamlog.app.cli", "run", *args, *CONF],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        patience = time.monotonic() + 120
        while not (tmp_path / "state" / "batches" / "0").exists():  # in the middle of the batch
            assert run.poll() is None and time.monotonic() < patience
            time.sleep(0.1)
        run.terminate()
        _, err = run.communicate(timeout=120)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
    assert run.returncode == 0, err
    assert "Traceback" not in err and "Exception" not in err
    assert "pc_alarm: waiting for `report`, last seen 2026-11-15T08:" in err
    assert (tmp_path / "state" / "commits" / "0.json").exists()


def started(root: Path) -> subprocess.Popen[str]:
    """In a process group of its own, so that Java dies with it."""
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
