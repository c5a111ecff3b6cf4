"""`n: int row`: the number of a row in its file, the same as in messages."""

from __future__ import annotations

from pathlib import Path

import pytest

import streamlog

PROGRAM = """
stream s(T: int, n: int row, k: string).
output all, latest.
all(T, N, K) <- s(T, N, K).
latest(T, K, N) <- s(T, N, K) limit 1 by N desc per K.
"""
CSV = 'n,T,k\n9,1,a\n9,1,a\n9,x,a\n9,1,"b\nc"\nn,T,k\n1,b\n9,1,b\n'
JSON = '{"T": 1, "k": "a", "n": 9}\n\n{"T": 1, "k": "a"}\n[1, "b"]\n'


def answers(run, *args: str) -> list[str]:
    result = run("run", "a.slog", "--engine", "local", "--format", "csv", *args)
    assert result.exit_code == 0, result.stderr
    return [line for line in result.stdout.splitlines() if line.startswith("all")]


@pytest.fixture(autouse=True)
def program(write) -> None:
    write("a.slog", PROGRAM)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("s.csv", CSV, ["all,1,2,a", "all,1,3,a", 'all,1,5,"b', "all,1,9,b"]),
        ("s.jsonl", JSON, ["all,1,1,a", "all,1,3,a", "all,1,4,b"]),
    ],
)
def test_lines(run, write, name: str, text: str, expected: list[str]) -> None:
    write(name, text)
    assert answers(run, "--input", f"s={name}") == expected
    assert answers(run, "--input", f"s={name}", "--strategy", "kernel") == expected


def test_the_number_is_that_of_messages(run, write) -> None:
    write("s.csv", CSV)
    result = run("run", "a.slog", "--engine", "local", "--input", "s=s.csv")
    assert "s.csv:4: column `T`: 'x' is not a valid" in result.stderr
    assert "s.csv:8: 2 values where 3 are wanted" in result.stderr


def test_without_a_header(run, write) -> None:
    write("s.csv", "1,a\n1,a\n1,a,3\n")
    found = answers(run, "--input", "s=s.csv", "--no-header")
    assert found == ["all,1,1,a", "all,1,2,a"]


def test_parquet(run, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"k": ["a", "a", "b"], "T": [1, 1, 1]})
    parquet.write_table(table, "s.parquet", row_group_size=2)
    assert answers(run, "--input", "s=s.parquet") == ["all,1,1,a", "all,1,2,a", "all,1,3,b"]


def test_as_logical_time(run, write) -> None:
    write("a.slog", "stream s(n: int row, k: string).\noutput all.\nall(N, K) <- s(N, K).\n")
    write("s.csv", "k\na\na\n")
    result = run("run", "a.slog", "--engine", "local", "--format", "csv", "--input", "s=s.csv")
    assert result.stdout == "N,K\n2,a\n3,a\n"


def test_large_files_go_row_by_row(run, write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlog.app.run_local.LARGE", 0)
    write("s.csv", "T,k\n1,a\n1,a\n")
    assert answers(run, "--input", "s=s.csv") == ["all,1,2,a", "all,1,3,a"]


def test_others_give_the_number() -> None:
    engine = streamlog.Engine(streamlog.compile(PROGRAM))
    engine.push("s", [(1, 7, "a"), {"T": 1, "n": 8, "k": "b"}])
    engine.end()
    assert engine.step()["all"] == [(1, 7, "a"), (1, 8, "b")]
