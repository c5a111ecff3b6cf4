"""Standard input and output, and runs that go on as rows come, as users start them: processes."""

from __future__ import annotations

import gzip
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamlog.runtime.following import _lines

PATIENCE = 30  # seconds
PROGRAM = """
stream s(T: int, x: string).
output p, q.
p(T, X) <- s(T, X), not (s(T1, X), T < T1, T1 <= T + 10).
q(T, X) <- s(T, X).
"""
SINGLE = "stream s(T: int, x: string).\noutput p(T, x).\np(T, X) <- s(T, X).\n"
HEADER = "T,x\n"


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "streamlog.app.cli", "run", *args, "--engine", "local"]


def piped(folder: Path, *args: str, data: bytes) -> tuple[int, str, str]:
    done = subprocess.run(
        command(*args), cwd=folder, input=data, capture_output=True, timeout=PATIENCE
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@contextmanager
def following(folder: Path, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            command(*args, "--follow"),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=err,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()


def has_lines(path: Path, count: int) -> Callable[[], bool]:
    return lambda: text(path).count("\n") == count


def until(found: Callable[[], object]) -> None:
    patience = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < patience
        time.sleep(0.02)


def text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def add(path: Path, more: str) -> None:
    with path.open("ab") as file:
        file.write(more.encode())


def stop(process: subprocess.Popen[bytes], number: int = signal.SIGINT) -> int:
    process.send_signal(number)
    return process.wait(PATIENCE)


# --------------------------------------------------------------------- standard input, output


def test_a_pipe_of_two_programs(write, tmp_path: Path) -> None:
    write("p.slog", SINGLE)
    data = b'\xef\xbb\xbfT,x\n1,a\n2\n3,"b,\nc"\n'
    code, out, err = piped(tmp_path, "p.slog", "--input", "s=-", "--output", "p=-", data=data)
    assert (code, out) == (0, 'T,x\n1,a\n3,"b,\nc"\n')
    assert "rejected s <stdin>:3: 1 values where 2 are wanted" in err
    code, out, _ = piped(tmp_path, "p.slog", "--input", "s=-", "--output", "p=jsonl:-", data=data)
    assert out == '{"T": 1, "x": "a"}\n{"T": 3, "x": "b,\\nc"}\n'
    again = ("--input", "s=jsonl:-", "--output", "p=csv:-")
    assert piped(tmp_path, "p.slog", *again, data=out.encode())[:2] == (0, 'T,x\n1,a\n3,"b,\nc"\n')
    nothing = piped(tmp_path, "p.slog", "--input", "s=-", "--output", "p=-", data=b"")
    assert nothing[:2] == (0, HEADER)
    as_json = ("--input", "s=-", "--output", "p=-", "--format", "json")
    assert piped(tmp_path, "p.slog", *as_json, data=b"T,x\n1,a\n")[1] == '{"T": 1, "x": "a"}\n'


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--input", "s=-", "--output", "p=-"], "leaves standard output to `p` alone"),
        (["--input", "s=-", "--output", "p=-", "--output", "q=-"], "give --output q=PATH too"),
        (["--input", "s=-", "--input", "s=jsonl:-"], "cannot be both `s` and `s`"),
        (["--input", "s=-", "--checkpoint", "st", "--format", "csv"], "'<stdin>' is not one"),
        (["--input", "s=parquet:-"], "there is no file 'parquet:-'"),
    ],
)
def test_misuse_of_standard_places(run, write, args: list[str], message: str) -> None:
    write("p.slog", PROGRAM)
    result = run("run", "p.slog", *args)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_standard_input_is_one_thing(run) -> None:
    result = run("run", "-", "--input", "s=-", input=SINGLE)
    assert "standard input cannot be both the program and an input" in result.stderr


@pytest.mark.parametrize("more", [[], ["--follow"]])
def test_a_reader_that_goes_away(write, tmp_path: Path, more: list[str]) -> None:
    write("p.slog", SINGLE)
    rows = "".join(f"{i},x\n" for i in range(100_000))
    (tmp_path / "s.csv").write_text(HEADER + rows)
    args = command("p.slog", "--input", "s=-", "--output", "p=-", *more)
    with (tmp_path / "s.csv").open("rb") as data, (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen(
            args, cwd=tmp_path, stdin=data, stdout=subprocess.PIPE, stderr=err
        )
        assert process.stdout is not None
        assert process.stdout.readline() == HEADER.encode()
        process.stdout.close()
        assert process.wait(PATIENCE) == 141
    assert (tmp_path / "err").read_text() == ""


# -------------------------------------------------------------------------------- following


def test_standard_input_is_followed_to_its_end(write, tmp_path: Path) -> None:
    write("p.slog", SINGLE)
    with following(tmp_path, "p.slog", "--input", "s=-", "--output", "p=-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"T,x\n1,a\n2,")
        process.stdin.flush()
        assert process.stdout.readline() == b"T,x\n"
        assert process.stdout.readline() == b"1,a\n"
        process.stdin.write(b"b\n3,half")
        process.stdin.flush()
        assert process.stdout.readline() == b"2,b\n"
        process.stdin.close()
        assert process.stdout.read() == b"3,half\n"
        assert process.wait(PATIENCE) == 0


def test_files_that_grow_and_folders_being_filled(write, tmp_path: Path) -> None:
    write("p.slog", PROGRAM)
    write("a.csv", HEADER + "1,a\n")
    (tmp_path / "in").mkdir()
    args = ("p.slog", "--input", "s=a.csv", "--input", "s=in", "--input", "s=in/sub/*.jsonl")
    (tmp_path / "in" / "sub").mkdir()
    outputs = ("--output", "p=p.csv", "--output", "q=q.jsonl", "--rejects", "bad.csv")
    with following(tmp_path, *args, *outputs) as process:
        until(lambda: '"a"' in text(tmp_path / "q.jsonl"))
        assert text(tmp_path / "p.csv") == HEADER.upper()  # not final yet
        add(tmp_path / "a.csv", "4,half of a li")
        with gzip.open(tmp_path / "in" / ".new", "wt") as file:
            file.write(HEADER + "3,g\n")
        (tmp_path / "in" / ".new").rename(tmp_path / "in" / "g.csv.gz")
        until(lambda: '"g"' in text(tmp_path / "q.jsonl"))
        assert "half" not in text(tmp_path / "q.jsonl")
        add(tmp_path / "a.csv", 'ne\n30,"in\n')
        write("in/sub/b.jsonl", '{"T": 20, "x": "b"}\nno\n')
        until(lambda: text(tmp_path / "p.csv").count("\n") == 4)
        add(tmp_path / "a.csv", 'two"\n')
        until(lambda: "two" in text(tmp_path / "q.jsonl"))
        assert stop(process) == 0
    assert text(tmp_path / "p.csv") == "T,X\n1,a\n3,g\n4,half of a line\n"
    assert "in/sub/b.jsonl:2,malformed JSON" in text(tmp_path / "bad.csv")
    assert "p at 20: waiting for `s`" in text(tmp_path / "err")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.write_text(HEADER), "'a.csv' was truncated: it has 4 bytes, and 12"),
        (lambda path: path.unlink(), "'a.csv' is gone, and is still being followed"),
        (lambda path: path.write_text(HEADER + "1,a\n2,c\n3,d\n"), "'a.csv' has changed before"),
        (lambda path: path.with_name("b.csv").replace(path), "'a.csv' was replaced by another"),
        (lambda path: path.with_name("c").mkdir(), None),
    ],
)
def test_what_was_read_must_stay(
    write, tmp_path: Path, change: Callable[[Path], object], message: str | None
) -> None:
    write("p.slog", SINGLE)
    path = write("a.csv", HEADER + "1,a\n2,b\n")
    write("b.csv", HEADER + "1,a\n2,b\n")
    args = ("p.slog", "--input", "s=a.csv", "--output", "p=p.csv")
    with following(tmp_path, *args) as process:
        until(lambda: text(tmp_path / "p.csv").count("\n") == 3)
        change(path)
        if message is None:
            time.sleep(0.5)
            assert stop(process, signal.SIGTERM) == 0
            return
        assert process.wait(PATIENCE) == 2
    assert message in text(tmp_path / "err")


def test_a_compressed_file_does_not_grow(write, tmp_path: Path) -> None:
    write("p.slog", SINGLE)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"T,x\n1,a\n"))
    with following(tmp_path, "p.slog", "--input", "s=a.csv.gz", "--output", "p=p.csv") as process:
        until(lambda: text(tmp_path / "p.csv").count("\n") == 2)
        with path.open("ab") as file:
            file.write(gzip.compress(b"2,b\n"))
        assert process.wait(PATIENCE) == 2
    assert "'a.csv.gz' has changed since it was read" in text(tmp_path / "err")


def test_a_following_run_does_not_replace_what_is_there(run, write) -> None:
    write("p.slog", SINGLE)
    write("s.csv", HEADER)
    write("p.csv", "precious\n")
    args = ("run", "p.slog", "--follow", "--input")
    result = run(*args, "s=s.csv", "--output", "p=p.csv")
    assert "'p.csv' is not empty, and was not written by this run" in result.stderr
    assert (
        "there is no folder 'no' for 'no/*.csv'"
        in run(*args, "s=no/*.csv", "--output", "p=q.csv").stderr
    )
    assert "--follow needs --output p=PATH" in run(*args, "s=s.csv").stderr


def test_strict_stops_at_a_bad_row(write, tmp_path: Path) -> None:
    write("p.slog", SINGLE)
    path = write("a.csv", HEADER + "1,a\n")
    args = ("p.slog", "--strict", "--input", "s=a.csv", "--output", "p=p.csv")
    with following(tmp_path, *args) as process:
        until(lambda: text(tmp_path / "p.csv").count("\n") == 2)
        add(path, "x,y\n")
        assert process.wait(PATIENCE) == 1
    assert "--strict: a row was rejected; stopped" in text(tmp_path / "err")


def test_silence_is_spoken_of(write, tmp_path: Path) -> None:
    write(
        "p.slog",
        "stream s(T: time, x: string).\noutput p.\n"
        "p(T, X) <- s(T, X), not (s(T1, X), T < T1, T1 <= T + 5min).\n",
    )
    write("s.csv", HEADER + "2026-11-15T08:00:00Z,a\n")
    with following(tmp_path, "p.slog", "--input", "s=s.csv", "--output", "p=p.csv") as process:
        until(lambda: text(tmp_path / "p.csv"))
        assert stop(process) == 0
    said = text(tmp_path / "err").splitlines()[-2:]
    assert said[0].startswith("p at 2026-11-15T08:00:00Z: waiting for `s`")
    assert said[1] == "`p` is not raised while `s` is silent: only its rows move time on"


def test_every_answer_once_however_often_it_is_killed(write, tmp_path: Path) -> None:
    rng = random.Random(7)
    write("p.slog", PROGRAM)
    (tmp_path / "in").mkdir()
    path = write("a.csv", HEADER)
    args = ("p.slog", "--input", "s=a.csv", "--input", "s=in/*.csv", "--every", "7")
    args += ("--output", "p=p.csv", "--output", "q=q.csv", "--checkpoint", "st")
    time_, wanted = 0, []
    for number in range(5):
        with following(tmp_path, *args) as process:
            for _ in range(4):
                lines = []
                for _ in range(rng.randrange(30)):
                    time_ += rng.randrange(1, 4)
                    lines.append(f"{time_},{rng.choice('abc')}\n")
                wanted += lines
                if rng.random() < 0.3:
                    name = f"{time_:05}.csv"
                    (tmp_path / "in" / f".{name}").write_text(HEADER + "".join(lines))
                    (tmp_path / "in" / f".{name}").rename(tmp_path / "in" / name)
                    until(has_lines(tmp_path / "q.csv", len(wanted) + 1))
                    continue
                whole = "".join(lines)
                cut = rng.randrange(len(whole) + 1)
                add(path, whole[:cut])
                time.sleep(rng.random() * 0.2)
                add(path, whole[cut:])
                if rng.random() < 0.7:
                    until(has_lines(tmp_path / "q.csv", len(wanted) + 1))
            process.send_signal(signal.SIGKILL if number < 4 else signal.SIGTERM)
            process.wait(PATIENCE)
    with following(tmp_path, *args) as process:
        until(has_lines(tmp_path / "q.csv", len(wanted) + 1))
        until(lambda: "resuming after" in text(tmp_path / "err"))
        assert stop(process) == 0
    # Without --follow the same run goes on to its end.
    done = subprocess.run(command(*args), cwd=tmp_path, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    assert sorted(text(tmp_path / "q.csv").splitlines()[1:]) == sorted(w.strip() for w in wanted)
    write("all.csv", HEADER + "".join(sorted(wanted, key=lambda w: int(w.split(",")[0]))))
    once = ("p.slog", "--input", "s=all.csv", "--output", "p=once.csv", "--output", "q=o.csv")
    assert subprocess.run(command(*once), cwd=tmp_path, capture_output=True).returncode == 0
    assert text(tmp_path / "p.csv") == text(tmp_path / "once.csv")


def test_lines_are_complete_however_they_come() -> None:
    data = "\ufeffa\nä\r\n\nlast".encode()
    for size in (1, 2, 3, 100):
        parts: list[bytes | None] = [data[i : i + size] for i in range(0, len(data), size)]
        lines = _lines(iter([b"", *parts, b"", None]).__next__)
        assert [line for line in lines if line] == ["a\n", "ä\r\n", "\n", "last"]


def test_a_file_that_cannot_grow_ends_its_stream(write, tmp_path: Path) -> None:
    """Its end is known when it has been read, so it holds no answer back."""
    write(
        "p.slog",
        "stream shift(T: int, who: string).\nstream badge(T: int, who: string).\noutput absent.\n"
        "absent(T, W) <- shift(T, W), not (badge(T1, W), T < T1, T1 <= T + 10).\n",
    )
    with gzip.open(tmp_path / "badge.csv.gz", "wt") as file:
        file.write("T,who\n3,a\n")
    write("shift.csv", "T,who\n1,a\n2,b\n")
    args = ("p.slog", "--output", "absent=absent.csv", "--input", "badge=badge.csv.gz")
    with following(tmp_path, *args, "--input", "shift=shift.csv") as process:
        until(lambda: "2,b\n" in text(tmp_path / "absent.csv"))
        add(tmp_path / "shift.csv", "5,a\n")
        until(lambda: "5,a\n" in text(tmp_path / "absent.csv"))
        assert stop(process) == 0
    assert text(tmp_path / "absent.csv").splitlines() == ["T,W", "2,b", "5,a"]
