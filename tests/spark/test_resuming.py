"""What a run finds when it is started again: other runs, outputs and inputs that were changed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

import streamlog
from streamlog.app.cli import main
from streamlog.runtime.envelope import CheckpointError
from streamlog.runtime.lock import Locked
from streamlog.spark import Running, start
from streamlog.spark.files import Files
from streamlog.spark.holding import by_a_file
from streamlog.spark.inputs import InputError
from streamlog.spark.session import TINY
from streamlog.spark.store import Store

PROGRAM = """
stream s(T: int).
table t(x: string).
output p.
p(T, X) <- s(T), t(X).
"""


class Case:
    """A stream, a table, and answers in a folder."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark, self.folder = root, spark, "s"
        (root / "program.slog").write_text(PROGRAM)
        (root / "s").mkdir()
        self.fill(1)
        self.table("a")

    def fill(self, number: int) -> None:
        (self.root / "s" / f"{number}.csv").write_text(f"T\n{number}\n")

    def table(self, *names: str) -> None:
        pq.write_table(pa.table({"x": names}), self.root / "t.parquet")

    def start(self) -> Running:
        rows = self.spark.readStream.schema("T long").option("header", True)
        return start(
            streamlog.compile(PROGRAM),
            {
                "s": rows.csv(str(self.root / self.folder)),
                "t": self.spark.read.parquet(str(self.root / "t.parquet")),
            },
            {"p": str(self.root / "out")},
            str(self.root / "state"),
            trigger={"availableNow": True},
        )

    def run(self, *, end: bool = False) -> None:
        running = self.start()
        running.wait()
        if end:
            running.end()
        else:
            running.stop()

    def answers(self) -> list[tuple]:
        files = (self.root / "out").rglob("part*.parquet")
        found = (r for f in files for r in pq.ParquetFile(f).read().to_pylist())
        return sorted(tuple(r.values()) for r in found)


@pytest.fixture
def case(spark: SparkSession, tmp_path: Path) -> Case:
    return Case(tmp_path, spark)


# -------------------------------------------------------------------------- one at a time


def test_a_second_run_is_refused_and_names_the_first(case: Case) -> None:
    running = case.start()
    me = f"is in use by process {os.getpid()} on {socket.gethostname()}, since 2"
    with pytest.raises(Locked, match=me):
        case.start()
    command = ["run", "program.slog", "--engine", "spark", "--input", "s=s", "--input"]
    command += ["t=t.parquet", "--output", "p=out", "--checkpoint", "state", "--master", "local[1]"]
    conf = [f"--conf={key}={value}" for key, value in TINY.items()]
    other = subprocess.run(
        [sys.executable, "-m", "streamlog.app.cli", *command, *conf],
        cwd=case.root,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert other.returncode == 2 and me in other.stderr, other.stderr
    running.wait()
    running.stop()
    case.fill(2)
    case.run(end=True)
    assert case.answers() == [(1, "a"), (2, "a")]


HOLDER = """
import sys, time
from pathlib import Path
from streamlog.runtime.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_what_a_killed_process_held_is_free(case: Case) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(case.root / "state")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(Locked, match=f"process {holder.pid} on"):
            case.start()
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    case.run(end=True)
    assert case.answers() == [(1, "a")]


def test_a_lock_where_there_are_none(spark: SparkSession, tmp_path: Path) -> None:
    """By a file, on file systems such as HDFS."""
    files = Files(spark, str(tmp_path))
    refused = pytest.raises(Locked, match=f"process {os.getpid()} on")
    with by_a_file(files), refused, by_a_file(files):
        pass
    assert not (tmp_path / "lock").exists()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = {"pid": gone.pid, "host": socket.gethostname(), "since": "2026-11-15T08:00:00Z"}
    files.write("lock", json.dumps(left))
    with by_a_file(files):
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()
    files.write("lock", json.dumps({**left, "host": "elsewhere"}))
    hint = r"on elsewhere.*if it is no longer running, delete '.*lock'"
    with pytest.raises(Locked, match=hint), by_a_file(files):
        pass


# ---------------------------------------------------------------------------------- outputs


def test_deleted_answers_are_missed(case: Case) -> None:
    case.run()
    kept = case.root / "kept"
    shutil.copytree(case.root / "out", kept)
    (part,) = (case.root / "out").rglob("part.parquet")
    shutil.rmtree(case.root / "out")
    with pytest.raises(CheckpointError, match="out/batch=0' is missing"):
        case.start()
    shutil.copytree(kept, case.root / "out")
    part.write_bytes(part.read_bytes()[:-10])
    with pytest.raises(CheckpointError, match=r"out/batch=0' has \d+ bytes, and had \d+"):
        case.start()
    shutil.copytree(kept, case.root / "out", dirs_exist_ok=True)
    case.run(end=True)
    shutil.rmtree(case.root / "out")
    with pytest.raises(CheckpointError, match="out/batch=0' is missing"):
        case.start()


def test_answers_of_another_run_are_not_mixed_with_ours(case: Case) -> None:
    case.run()
    shutil.rmtree(case.root / "state")
    for _ in range(2):  # a refusal leaves nothing behind
        with pytest.raises(CheckpointError, match="has answers that are not of this run: 'batch=0"):
            case.start()


def test_a_crash_before_the_first_commit(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers are written already, and are written again."""

    def crash(*_: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", crash)
        running = case.start()
        with pytest.raises(Exception, match="killed"):
            running.wait()
        running.stop()
    assert case.answers() == [(1, "a")] and not (case.root / "state" / "commits").exists()
    case.run(end=True)
    assert case.answers() == [(1, "a")]


# ----------------------------------------------------------------------------------- inputs


def replaced_file(case: Case) -> str:
    (case.root / "s" / "1.csv").write_text("T\n7\n")
    os.utime(case.root / "s" / "1.csv", (10**9, 10**9))
    return r"s/1\.csv' has changed since it was read"


def replaced_table(case: Case) -> str:
    case.table("b")
    return r"table `t` has another input .*t\.parquet' has changed"


def another_folder(case: Case) -> str:
    (case.root / "s").rename(case.root / "s2")
    case.folder = "s2"
    return r"stream `s` has another input .*/s' is not given"


@pytest.mark.parametrize("change", [replaced_file, replaced_table, another_folder])
def test_another_input_is_refused(change: Callable[[Case], str], case: Case) -> None:
    case.run()
    with pytest.raises(CheckpointError, match=change(case)):
        case.start()


def test_a_stream_needs_a_streaming_frame(spark: SparkSession, tmp_path: Path) -> None:
    program = streamlog.compile("stream a(T: int). stream b(T: int). output p. p(T) <- a(T), b(T).")
    (tmp_path / "a").mkdir()
    given = {
        "a": spark.readStream.schema("T long").parquet(str(tmp_path / "a")),
        "b": spark.createDataFrame([(1,)], "T long"),
    }
    with pytest.raises(InputError, match="stream `b` needs a streaming DataFrame"):
        start(program, given, {}, str(tmp_path / "state"))


# ----------------------------------------------------------------------------------- tables


def test_a_table_from_a_file_or_a_frame(case: Case) -> None:
    """A query has a session of its own, which must see it; a bad row of it is reported."""
    (case.root / "t.csv").write_text('x\na\n"b\n')
    args = [str(case.root / "program.slog"), "--engine", "spark", "--format", "csv"]
    args += ["--input", f"s={case.root / 's'}", "--input", f"t={case.root / 't.csv'}"]
    args += ["--rejects", str(case.root / "bad"), "--checkpoint", str(case.root / "state")]
    result = CliRunner().invoke(main, ["run", *args])
    assert result.exit_code == 0, result.output
    assert result.stdout == "T,X\n1,a\n"
    assert "\nt          2      0          1\n" in result.stderr
    (bad,) = (r for f in (case.root / "bad").rglob("*.parquet") for r in _rows(f))
    assert bad["stream"] == "t" and "quote" in bad["reason"]

    found: list[DataFrame] = []
    running = start(
        streamlog.compile(PROGRAM),
        {
            "s": case.spark.readStream.schema("T long").csv(str(case.root / "s"), header=True),
            "t": case.spark.createDataFrame([("b",), ("c",)], "x string"),
        },
        {"p": lambda rows, _: found.extend(map(tuple, rows.collect()))},
        str(case.root / "other"),
    )
    running.catch_up()
    running.stop()
    assert sorted(found) == [(1, "b"), (1, "c")]


def _rows(path: Path) -> list[dict]:
    return pq.ParquetFile(path).read().to_pylist()
