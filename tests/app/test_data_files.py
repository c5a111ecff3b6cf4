"""Which files an input has, and what kind of file each is."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from streamlog.app.places import check_places
from streamlog.runtime.data_files import (
    SourceError,
    data_files,
    delimiter_of,
    format_of,
    format_of_output,
    literal,
    stem,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("in/2026-01.csv", "in/2026-02.csv", "in/2025-12.csv", "in/_2026.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("T,x\n")
    (tmp_path / "in" / "[1].csv").write_text("T,x\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("in/2026-*.csv", ["in/2026-01.csv", "in/2026-02.csv"]),
        ("in/202?-1*.csv", ["in/2025-12.csv"]),
        ("in/*2026*.csv", ["in/2026-01.csv", "in/2026-02.csv"]),  # the others are hidden
        ("in/[1].csv", ["in/[1].csv"]),  # a file of that name
        ("i*", ["in/2025-12.csv", "in/2026-01.csv", "in/2026-02.csv", "in/[1].csv"]),
        ("**/2025*", ["in/2025-12.csv"]),
        ("in/*.parquet", []),
    ],
)
def test_a_pattern_is_all_files_that_match(folder: Path, pattern: str, found: list[str]) -> None:
    assert [str(file) for file in data_files(Path(pattern))] == found


def test_compressed_files_are_of_the_kind_inside() -> None:
    assert format_of(Path("a.b.csv.gz")) == "csv"
    assert format_of(Path("a.JSONL.GZ")) == "jsonl"
    assert delimiter_of(Path("a.tsv.gz")) == "\t"
    assert stem(Path("in/msg.csv.gz")) == stem(Path("msg.csv")) == "msg"
    for name, reason in [("a.parquet.gz", "compressed by themselves"), ("a.gz", "what kind")]:
        with pytest.raises(SourceError, match=reason):
            format_of(Path(name))
    with pytest.raises(SourceError, match=r"'a\.csv\.gz' cannot be written: answers are not comp"):
        format_of_output(Path("a.csv.gz"))


def test_a_place_that_a_pattern_could_match_is_not_written_to(folder: Path) -> None:
    check_places([("the input", "in/2026-*.csv")], [("--output p", "in/out.csv")], None)
    for place in ("in/2026-03.csv", "in/2026-99.csv", "in"):
        with pytest.raises(Exception, match="where the input is read"):
            check_places([("the input", "in/2026-*.csv")], [("--output p", place)], None)


def test_names_for_hadoop() -> None:
    assert literal(["a[1]*?{2}.csv"]) == [r"a\[1\]\*\?\{2\}.csv"]


# ------------------------------------------------------------------------------ local runs

PROGRAM = 'stream s(T: int, x: string){}.\noutput p.\np(T, X) <- s(T, X), X != "".\n'


def test_compressed_files_and_patterns_in_a_run(run, write, tmp_path: Path) -> None:
    write("p.slog", PROGRAM.format(' from "in/b*"'))
    write("in/b1.csv", "T,x\n2,b\nz,b\n9,b\n")
    with gzip.open(tmp_path / "in" / "b2.csv.gz", "wt") as file:
        file.write("\ufeffx,T\nc,1\nc,y\nd,5\n")
    result = run("run", "p.slog", "--format", "csv", "--checkpoint", "st")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "T,X\n1,c\n2,b\n5,d\n9,b\n"  # merged by time
    for place in ("in/b1.csv:3", "in/b2.csv.gz:3"):
        assert f"rejected s {place}: " in result.stderr
    write("in/b3.csv", "T,x\n")
    again = run("run", "p.slog", "--format", "csv", "--checkpoint", "st")
    assert "'in/b3.csv' has grown since" in again.stderr


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gzip.compress(b"T,x\n1,a\n" * 99, mtime=0)[:-12], "the compressed data end too early"),
        (b"T,x\n1,a\n", "it is not a gzip file, or it is damaged"),
    ],
)
def test_damaged_files(run, write, tmp_path: Path, data: bytes, reason: str) -> None:
    write("p.slog", PROGRAM.format(""))
    (tmp_path / "s.csv.gz").write_bytes(data)
    result = run("run", "p.slog", "--input", "s=s.csv.gz")
    assert result.exit_code == 2
    assert f"'s.csv.gz' cannot be read: {reason}" in result.stderr
    assert "no file matches 's*.jsonl'" in run("run", "p.slog", "--input", "s=s*.jsonl").stderr


def test_a_pattern_in_a_program_stays_below_its_folder(run, write, tmp_path: Path) -> None:
    write("out.csv", "T,x\n1,a\n")
    write("in/p.slog", PROGRAM.format(' from "o*.csv"'))
    (tmp_path / "in" / "o.csv").symlink_to(tmp_path / "out.csv")
    result = run("run", "in/p.slog")
    assert "the link 'o.csv' lies outside the folder of this program" in result.stderr
    write("in/p.slog", PROGRAM.format(' from "../o*.csv"'))
    assert "'../o*.csv' lies outside the folder" in run("run", "in/p.slog").stderr
