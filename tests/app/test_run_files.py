"""What a run reads and writes: nothing is overwritten, mixed up or passed over in silence."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_run import rows

PROGRAM = """
stream s(T: int, x: string) slack 5.
output p, q.
p(T, X) <- s(T, X), not (s(T1, X), T1 < T, T - 10 <= T1).
q(T, count(X)) <- s(T, X).
"""


@pytest.fixture
def program(write) -> Path:
    write("s.csv", "T,x\n1,a\n2,b\n3,a\n50,c\n")
    return write("p.slog", PROGRAM)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below, hidden ones too."""
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def said(result) -> str:
    return " ".join(result.stderr.split())


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "streamlog.app.cli", "run", *args]


# ----------------------------------------------------------------------------------- places


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--output", "p=s.csv"], "--output p would write to 's.csv', where the input of `s` is"),
        (["--output", "p=./sub/../s.csv"], "where the input of `s` is read"),
        (["--output", "p=link.csv"], "where the input of `s` is read"),
        (["--output", "p=hard.csv"], "where the input of `s` is read"),
        (["--rejects", "s.csv"], "--rejects would write to 's.csv'"),
        (["--late", "s.csv"], "--late would write to 's.csv'"),
        (["--output", "p=t.csv"], "where the input of `t` is read"),
        (
            ["--output", "p=out.csv", "--output", "q=out.csv"],
            "--output p and --output q both write",
        ),
        (["--output", "p=out.csv", "--output", "p=b.csv"], "--output p is given twice"),
        (["--output", "p=out.csv", "--rejects", "sub/../out.csv"], "--output p and --rejects both"),
        (["--rejects", "out.csv", "--late", "out.csv"], "--rejects and --late both write"),
        (["--output", "p=st/a.csv", "--checkpoint", "st", "--output", "q=b.csv"], "both write to"),
        (["--input", "s=in", "--output", "p=in/new.csv"], "where the input of `s` is read"),
        (["--input", "s=in", "--checkpoint", "in/st", "--format", "csv"], "where the input of `s`"),
        (["--output", "p=out.csv", "--output", "q=q.txt"], "what kind of file is 'q.txt'?"),
        (["--output", "p=out.csv", "--output", "q=no/q.csv"], "'no/q.csv' cannot be written"),
        (["--output", "p=out.csv", "--rejects", "r.txt"], "what kind of file is 'r.txt'?"),
        (["--output", "p=out.csv", "--output", "r=q.csv"], "the program has no output 'r'"),
        (["--output", "p=out.csv", "--kind", "csv"], "--kind is for --engine spark"),
        (["--output", "p=loop.csv"], "its links are a cycle"),
    ],
)
def test_places_are_checked_before_anything_happens(
    run, write, program: Path, tmp_path: Path, args: list[str], message: str
) -> None:
    write("p.slog", 'table t(x: string) from "t.csv".\n' + PROGRAM + "r0(T) <- s(T, X), t(X).\n")
    write("t.csv", "x\na\n")
    write("in/a.csv", "T,x\n1,a\n")
    write("out.csv", "precious\n")
    write("sub/x", "")
    (tmp_path / "link.csv").symlink_to(tmp_path / "s.csv")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    os.link(tmp_path / "s.csv", tmp_path / "hard.csv")
    before = snapshot(tmp_path)
    given = [] if "--input" in args else ["--input", "s=s.csv"]
    result = run("run", "p.slog", *given, *args)
    assert result.exit_code == 2
    assert message in said(result)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_failed_run_leaves_what_was_there(run, write, tmp_path: Path, suffix: str) -> None:
    write("a.slog", "stream s(T: int, n: int).\noutput p.\np(T, 6 // N) <- s(T, N).")
    write("s.csv", "T,n\n1,2\n2,3\n3,0\n4,1\n")
    write(f"out.{suffix}", "precious\n")
    before = snapshot(tmp_path)
    args = ("run", "a.slog", "--every", "1", "--input", "s=s.csv", "--output", f"p=out.{suffix}")
    result = run(*args)
    assert (result.exit_code, "division by zero" in result.stderr) == (1, True)
    assert snapshot(tmp_path) == before
    write("s.csv", "T,n\n1,2\nx,y\n2,3\n")
    assert run(*args, "--strict", "--rejects", "bad.jsonl").exit_code == 1
    assert (tmp_path / f"out.{suffix}").read_bytes() == b"precious\n"
    assert "is not a valid int" in (tmp_path / "bad.jsonl").read_text()  # why it has failed
    assert run(*args).exit_code == 0
    assert rows(tmp_path / f"out.{suffix}") != [b"precious"]
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_an_output_keeps_its_links_and_permissions(run, program: Path, tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("old")
    (tmp_path / "there.csv").chmod(0o640)
    (tmp_path / "out.csv").symlink_to("there.csv")
    assert run("run", "p.slog", "--input", "s=s.csv", "--output", "p=out.csv").exit_code == 0
    assert (tmp_path / "out.csv").is_symlink()
    assert (tmp_path / "there.csv").read_text() == "T,X\n1,a\n2,b\n50,c\n"
    assert (tmp_path / "there.csv").stat().st_mode & 0o777 == 0o640


def test_an_output_without_rows_has_its_columns(run, program: Path, tmp_path: Path) -> None:
    args = (
        "--input",
        "s=s.csv",
        "--rejects",
        "r.csv",
        "--output",
        "p=p.csv",
        "--output",
        "q=q.csv",
    )
    for more in ((), ("--checkpoint", "st")):
        assert run("run", "p.slog", *args, *more).exit_code == 0
        assert (tmp_path / "r.csv").read_text() == "stream,where,reason,row\n"
        for name in "pqr":
            (tmp_path / f"{name}.csv").unlink()


def test_a_pipe_is_written_to(run, program: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "out.csv")
    with subprocess.Popen(["cat", tmp_path / "out.csv"], stdout=subprocess.PIPE) as reader:
        assert run("run", "p.slog", "--input", "s=s.csv", "--output", "p=out.csv").exit_code == 0
        assert reader.communicate()[0] == b"T,X\n1,a\n2,b\n50,c\n"
    assert (tmp_path / "out.csv").is_fifo()


# ------------------------------------------------------------------------------ two processes


def many_rows(tmp_path: Path, name: str = "s.csv", count: int = 60_000) -> None:
    rng = random.Random(name)
    lines = (f"{i // 3},x{rng.randrange(50)}\n" for i in range(count))
    (tmp_path / name).write_text("T,x\n" + "".join(lines))


def test_a_second_run_is_refused(run, program: Path, tmp_path: Path) -> None:
    many_rows(tmp_path)
    args = ("p.slog", "--input", "s=s.csv", "--every", "200")
    outputs = ("--output", "p=p.csv", "--output", "q=q.parquet")
    assert run("run", *args, "--output", "p=p0.csv", "--output", "q=q0.parquet").exit_code == 0
    first = subprocess.Popen(
        command(*args, *outputs, "--checkpoint", "state"), cwd=tmp_path, stderr=subprocess.PIPE
    )
    lock = tmp_path / "state" / "lock"
    while not (lock.exists() and lock.read_text().endswith("\n")):
        assert first.poll() is None
        time.sleep(0.01)
    while not (tmp_path / "p.csv").exists():
        time.sleep(0.01)
    second = run("run", *args, *outputs, "--checkpoint", "state")
    assert second.exit_code == 2
    assert f"'state' is in use by process {first.pid} on " in said(second)
    # Nor do other folders, or none, let it write where the first does.
    for more in (["--checkpoint", "other"], []):
        third = run("run", *args, "--output", "p=p.csv", "--format", "csv", *more)
        assert third.exit_code == 2
        assert "'" in said(third) and "p.csv' is being written by another run" in said(third)
    _, told = first.communicate()
    assert first.returncode == 0, told.decode()
    for one, other in (("p.csv", "p0.csv"), ("q.parquet", "q0.parquet")):
        assert rows(tmp_path / one) == rows(tmp_path / other)


def test_a_lock_of_a_killed_run_is_no_obstacle(run, program: Path, tmp_path: Path) -> None:
    many_rows(tmp_path)
    args = ("p.slog", "--input", "s=s.csv", "--every", "100", "--checkpoint", "state")
    outputs = ("--output", "p=p.csv", "--output", "q=q.parquet")
    first = subprocess.Popen(command(*args, *outputs), cwd=tmp_path, stderr=subprocess.DEVNULL)
    while not list((tmp_path / "state").glob("checkpoint-*")):
        assert first.poll() is None
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    again = run("run", *args, *outputs)
    assert again.exit_code == 0, again.stderr
    assert "resuming after" in again.stderr


def test_two_runs_without_checkpoints_do_not_mix(program: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        many_rows(tmp_path, f"{name}.csv", 20_000)
    whole = {}
    for name, out in (("a", "whole-a.csv"), ("b", "whole-b.csv")):
        args = ("p.slog", "--input", f"s={name}.csv", "--output", f"p={out}", "--format", "csv")
        subprocess.run(command(*args), cwd=tmp_path, check=True, capture_output=True)
        whole[(tmp_path / out).read_bytes()] = name
    running = [
        subprocess.Popen(
            command("p.slog", "--input", f"s={name}.csv", "--output", "p=out.csv"),
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name in ("a", "b")
    ]
    assert [p.wait() for p in running] == [0, 0]
    assert (tmp_path / "out.csv").read_bytes() in whole


# ------------------------------------------------------------------------------- going on


CRASH = """
import os, sys
from streamlog.app.cli import main
from streamlog.app.run_local import LocalRun
from streamlog.runtime import checkpoint
left = int(sys.argv.pop(1))
save_after_a_step, save = LocalRun._save, checkpoint.save
def always(self, folder, at_once, *, finished):
    self.saving = 0.0
    save_after_a_step(self, folder, at_once, finished=finished)
def crashing(*args):
    global left
    if not left:
        os._exit(9)
    left -= 1
    return save(*args)
LocalRun._save, checkpoint.save = always, crashing
main(sys.argv[1:])
"""


def crashed(tmp_path: Path, saves: int, *args: str) -> None:
    """A run that dies just before it would save its state for the next time."""
    done = subprocess.run(
        [sys.executable, "-c", CRASH, str(saves), "run", *args], cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 9, done.stderr.decode()


ARGS = ("p.slog", "--input", "s=s.csv", "--every", "1", "--checkpoint", "state")
OUT = ("--output", "p=p.csv", "--output", "q=q.jsonl")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("saves", "every"), [(0, "5"), (0, "1"), (2, "1")])
def test_a_crash_between_output_and_checkpoint(
    run, write, program: Path, tmp_path: Path, saves: int, every: str, suffix: str
) -> None:
    """Also before the first checkpoint of all, with answers in the output."""
    write("bad.csv", "T,x\n1,a\nx,y\n2,b\n3,a\n40,c\n")
    args = ("p.slog", "--input", "s=bad.csv", "--every", every, "--format", "csv")
    outputs = ("--output", f"p=out.{suffix}", "--rejects", f"bad.{suffix}")
    if suffix == "csv":
        outputs = ("--output", "p=out.csv", "--rejects", "rejects.csv")
    crashed(tmp_path, saves, *args, *outputs, "--checkpoint", "state")
    again = run("run", *args, *outputs, "--checkpoint", "state")
    assert again.exit_code == 0, again.stderr
    whole = ("--output", f"p=whole.{suffix}", "--rejects", f"whole-bad.{suffix}")
    assert run("run", *args, *whole).exit_code == 0
    assert rows(tmp_path / f"out.{suffix}") == rows(tmp_path / f"whole.{suffix}")
    assert len(rows(tmp_path / outputs[3])) == len(rows(tmp_path / f"whole-bad.{suffix}"))


def test_a_new_checkpoint_does_not_overwrite(run, program: Path, tmp_path: Path) -> None:
    """A mistyped folder of a checkpoint costs nothing."""
    (tmp_path / "p.csv").write_text("precious")
    result = run("run", *ARGS, *OUT)
    assert result.exit_code == 2
    assert "'p.csv' is not empty, and was not written by this run" in said(result)
    assert (tmp_path / "p.csv").read_text() == "precious"


CHANGES = {
    "an earlier row altered": ("T,x\n1,z\n2,b\n3,a\n50,c\n", "has changed"),
    "replaced by a longer one": ("T,x\n7,a\n8,b\n9,a\n50,c\n60,d\n", "has changed"),
    "shorter": ("T,x\n1,a\n", "has 8 bytes, and 21 were read from it before"),
    "deleted": (None, "there is no file 's.csv'"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_replaced_input_is_refused(
    run, write, program: Path, tmp_path: Path, change: str
) -> None:
    text, message = CHANGES[change]
    crashed(tmp_path, 2, *ARGS, *OUT)
    before = snapshot(tmp_path)
    good = before.pop("s.csv")
    (tmp_path / "s.csv").unlink()
    if text is not None:
        write("s.csv", text)
    result = run("run", *ARGS, *OUT)
    assert result.exit_code == 2
    assert message in said(result) and "'s.csv'" in said(result)
    now = snapshot(tmp_path)
    for name in ("p.csv", "q.jsonl"):
        assert now[name] == before[name]
    (tmp_path / "s.csv").write_bytes(good)
    assert run("run", *ARGS, *OUT).exit_code == 0
    assert (tmp_path / "p.csv").read_text() == "T,X\n1,a\n2,b\n50,c\n"


def test_an_input_may_grow(run, write, program: Path, tmp_path: Path) -> None:
    crashed(tmp_path, 2, *ARGS, *OUT)
    with (tmp_path / "s.csv").open("a") as file:
        file.write("70,e\n")
    assert run("run", *ARGS, *OUT).exit_code == 0
    assert (tmp_path / "p.csv").read_text() == "T,X\n1,a\n2,b\n50,c\n70,e\n"
    with (tmp_path / "s.csv").open("a") as file:
        file.write("80,f\n")
    result = run("run", *ARGS, *OUT)
    assert result.exit_code == 2
    assert "has finished, and 's.csv' has grown since: start again" in said(result)


def test_a_line_that_was_read_half_is_noticed(run, write, program: Path, tmp_path: Path) -> None:
    write("s.csv", "T,x\n1,a\n2,b\n3,a\n50,c")
    crashed(tmp_path, 4, *ARGS, *OUT)
    write("s.csv", "T,x\n1,a\n2,b\n3,a\n50,cc\n")
    result = run("run", *ARGS, *OUT)
    assert result.exit_code == 2
    assert "the last line read from it before has become longer" in said(result)
    write("s.csv", "T,x\n1,a\n2,b\n3,a\n50,c\n60,d\n")
    assert run("run", *ARGS, *OUT).exit_code == 0


def test_a_parquet_input_that_was_replaced(run, program: Path, tmp_path: Path) -> None:
    def put(*texts: str) -> None:
        table = pa.table({"T": list(range(len(texts))), "x": list(texts)})
        pq.write_table(table, tmp_path / "s.parquet")

    put("a", "b", "c", "d")
    args = ("p.slog", "--input", "s=s.parquet", *ARGS[3:], *OUT)
    crashed(tmp_path, 2, *args)
    for texts in (("a", "b", "c", "e"), ("a", "b", "c", "d", "e")):
        put(*texts)
        result = run("run", *args)
        assert result.exit_code == 2
        assert "'s.parquet' has changed" in said(result)
    put("a", "b", "c", "d")
    assert run("run", *args).exit_code == 0


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_finished_run_misses_its_output(run, program: Path, tmp_path: Path, suffix: str) -> None:
    args = (*ARGS, "--output", f"p=p.{suffix}", "--format", "csv")
    assert run("run", *args).exit_code == 0
    assert "has finished: there is nothing to do" in run("run", *args).stderr
    for path in (tmp_path / "p.parquet").glob("*"):
        path.unlink()
    (tmp_path / "p.csv").unlink(missing_ok=True)
    result = run("run", *args)
    assert result.exit_code == 2
    assert "has finished, but" in said(result) and "is missing" in said(result)


def test_pipes_cannot_be_read_again(run, program: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    args = ("--input", "s=pipe.csv", "--checkpoint", "state", "--format", "csv")
    result = run("run", "p.slog", *args)
    assert result.exit_code == 2
    assert "--checkpoint needs files that can be read again, and 'pipe.csv'" in said(result)


def test_checkpoints_are_for_their_owner_alone(run, program: Path, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        assert run("run", *ARGS, *OUT).exit_code == 0
    finally:
        os.umask(before)
    for path in (tmp_path / "state", *(tmp_path / "state").rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


# -------------------------------------------------------------------------------- folders


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_folder_is_all_its_files(run, program: Path, tmp_path: Path, suffix: str) -> None:
    """Merged by time: files that overlap make no row late."""
    rng = random.Random(suffix)
    events = [(t, rng.choice("abc")) for t in range(0, 300, 3)]
    (tmp_path / "in").mkdir()
    texts = {"csv": "{},{}", "jsonl": '{{"T": {}, "x": "{}"}}'}
    for part in range(80):  # more than are open at the same time
        chosen = events[part::80]
        path = tmp_path / "in" / f"part-{part:02}.{suffix}"
        if suffix == "parquet":
            pq.write_table(
                pa.table({"T": [t for t, _ in chosen], "x": [x for _, x in chosen]}), path
            )
        else:
            lines = [texts[suffix].format(*event) for event in chosen]
            path.write_text("\n".join(["T,x"] * (suffix == "csv") + lines) + "\n")
    (tmp_path / "in" / "_SUCCESS").write_text("")
    (tmp_path / "all.csv").write_text("T,x\n" + "".join(f"{t},{x}\n" for t, x in events))
    found = [
        run("run", "p.slog", "--input", f"s={source}", "--format", "csv", "--every", "7", *more)
        for source, more in (("in", ()), ("in", ("--checkpoint", "state")), ("all.csv", ()))
    ]
    assert [r.exit_code for r in found] == [0, 0, 0]
    assert sorted(found[0].stdout.splitlines()) == sorted(found[2].stdout.splitlines())
    assert sorted(found[1].stdout.splitlines()) == sorted(found[2].stdout.splitlines())
    assert found[0].stderr.split("rejected")[0] == found[2].stderr.split("rejected")[0]


def test_rejects_of_a_folder_name_the_file(run, write, program: Path, tmp_path: Path) -> None:
    write("in/a.csv", "T,x\n1,a\n")
    write("in/b.csv", "x,T\nb,2\nb,soon\n")
    result = run("run", "p.slog", "--input", "s=in", "--rejects", "bad.jsonl")
    assert result.exit_code == 0
    assert "rejected s in/b.csv:3: column `T`" in result.stderr


def test_a_folder_without_files_is_an_error(run, write, program: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in (None, "_a.csv", "sub/a.csv"):
        if name:
            write(f"in/{name}", "T,x\n1,a\n")
        result = run("run", "p.slog", "--input", "s=in")
        assert result.exit_code == 2
        assert "the folder 'in' has no .csv, .jsonl or .parquet files" in said(result)


def test_a_folder_goes_on(run, write, program: Path, tmp_path: Path) -> None:
    """A file that is new is read; one that is gone is missed."""
    write("in/a.csv", "T,x\n1,a\n3,a\n")
    write("in/b.csv", "T,x\n2,b\n50,c\n")
    args = ("p.slog", "--input", "s=in", *ARGS[3:], *OUT)
    crashed(tmp_path, 3, *args)
    gone = (tmp_path / "in" / "a.csv").rename(tmp_path / "a.csv")
    result = run("run", *args)
    assert result.exit_code == 2
    assert "'in/a.csv' is an input of the checkpoint in 'state'" in said(result)
    gone.rename(tmp_path / "in" / "a.csv")
    write("in/c.csv", "T,x\n60,d\n")
    assert run("run", *args).exit_code == 0
    assert (tmp_path / "p.csv").read_text() == "T,X\n1,a\n2,b\n50,c\n60,d\n"


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_columns_in_objects_and_lists(run, write, tmp_path: Path, suffix: str) -> None:
    """A row per element, also from files that the program names, and in its tests."""
    write(
        "a.slog",
        f"""
stream buy("event-time" as T: time(ms), user: string at "meta.user", item: string in "items[]").
table group("the name" as g: string, item: string in "items[]") from "group.{suffix}".
output got.
got(T, U, G) <- buy(T, U, I), group(G, I).
test "of files" {{
    given buy from "good.{suffix}".
    end.
    expect got from "got.csv".
    expect buy from "buy.csv".
}}
""",
    )
    good = {"event-time": 1794729600000, "meta": {"user": "ann"}, "items": ["a", "b"]}
    bad = {"event-time": 1794729600000, "meta": {"user": None}, "items": ["a"]}
    for name, records in [
        ("group", [{"the name": "g", "items": ["a", "c"]}, {"the name": "h", "items": []}]),
        ("good", [good]),
        ("all", [good, bad]),
    ]:
        if suffix == "jsonl":
            write(f"{name}.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        else:
            pq.write_table(pa.Table.from_pylist(records), tmp_path / f"{name}.parquet")
    write("got.csv", "T,U,G\n2026-11-15T08:00:00Z,ann,g\n")
    write("buy.csv", "T,user,item\n2026-11-15T08:00:00Z,ann,a\n2026-11-15T08:00:00Z,ann,b\n")
    assert run("test", "a.slog").exit_code == 0
    result = run("run", "a.slog", "--input", f"buy=all.{suffix}", "--format", "csv")
    assert result.stdout == "T,U,G\n2026-11-15T08:00:00Z,ann,g\n"
    assert f"rejected buy all.{suffix}:2: " in result.stderr
    assert "column `user`: a value is missing" in result.stderr
