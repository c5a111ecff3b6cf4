"""Files in: CSV, JSON Lines, Parquet; what is bad is rejected with its place."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming import compiled

from streamlog.compiler import compile_file
from streamlog.runtime.ingest import Checker, Reject
from streamlog.runtime.merging import merged
from streamlog.runtime.prefix import Prefix, problem
from streamlog.runtime.sources import (
    Input,
    SourceError,
    declared_inputs,
    format_of,
    read,
    read_file,
    read_files,
)

PROGRAM = """
stream s(T: time, area: string, n: int).
output p.
p(T, A, N) <- s(T, A, N).
"""
T0 = 1794729600000000  # 2026-11-15T08:00:00Z


def rows_of(path: Path, *, header: bool = True, skip: int = 0) -> list[Any]:
    checker = Checker(compiled(PROGRAM), "s")
    if skip:
        return list(read_file(Input("s", path, header), checker, skip))
    return list(read(Input("s", path, header), checker))


def reasons(found: list[Any]) -> list[tuple[str, str]]:
    return [(r.where.rpartition(":")[2], r.reason) for r in found if isinstance(r, Reject)]


@pytest.fixture
def file(tmp_path: Path):
    def write(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


# -------------------------------------------------------------------------------------- CSV


def test_csv_columns_by_name(file) -> None:
    path = file("a.csv", "n,AREA,more,T\n1,gate1,x,2026-11-15T08:00:00Z\n2,gate2,,2026-11-15\n")
    assert rows_of(path) == [(T0, "gate1", 1), (T0 - 8 * 3600 * 10**6, "gate2", 2)]


def test_csv_columns_by_position(file) -> None:
    path = file("a.csv", f"{T0},gate1,1\n{T0},gate2,2\n")
    assert rows_of(path, header=False) == [(T0, "gate1", 1), (T0, "gate2", 2)]


@pytest.mark.parametrize(
    "text",
    [
        f"T,area,n\r\n{T0},a,1\r\n",
        f"\ufeffT,area,n\n{T0},a,1",
        f'"T","area","n"\n{T0},"a","1"\n',
        f"T,area,n\n\n{T0},a,1\n\n",
        f" T , area , n \n{T0},a,1\n",
    ],
)
def test_csv_dialects(file, text: str) -> None:
    assert rows_of(file("a.csv", text)) == [(T0, "a", 1)]


def test_tsv(file) -> None:
    assert rows_of(file("a.tsv", f"T\tarea\tn\n{T0}\ta,b\t1\n")) == [(T0, "a,b", 1)]


def test_csv_quotes(file) -> None:
    path = file("a.csv", f'T,area,n\n{T0},"a ""b"", c",1\n{T0},"two\nlines",2\n{T0},x,y\n')
    found = rows_of(path)
    assert found[:2] == [(T0, 'a "b", c', 1), (T0, "two\nlines", 2)]
    assert reasons(found) == [("5", "column `n`: 'y' is not a valid int")]


@pytest.mark.parametrize("size", [131_072, 131_073, 3_000_000])
def test_a_quoted_field_may_be_long(file, size: int) -> None:
    long = "x" * (size - 1) + ","
    path = file("a.csv", f'T,area,n\n{T0},"{long}",1\n{T0},b,2\n')
    assert rows_of(path) == [(T0, long, 1), (T0, "b", 2)]


def test_an_open_quote_costs_one_row(file) -> None:
    good = "".join(f'{T0},"g{i}",{i}\n' for i in range(100))
    path = file("a.csv", f'T,area,n\n{T0},"open,1\n{good}{T0},"open,1\n{T0},last,7\n')
    found = rows_of(path)
    assert [r[2] for r in found if not isinstance(r, Reject)] == [*range(100), 7]
    assert [line for line, _ in reasons(found)] == ["2", "103"]
    assert all("a quote is not closed" in reason for _, reason in reasons(found))


def test_an_open_quote_costs_one_row_where_nothing_else_is_quoted(file) -> None:
    good = "".join(f"{T0},g{i},{i}\n" for i in range(200))
    found = rows_of(file("a.csv", f'T,area,n\n{T0},"open,1\n{good}'))
    assert len(found) == 201
    assert [line for line, _ in reasons(found)] == ["2"]


def test_bad_csv_rows_have_their_place(file) -> None:
    path = file(
        "a.csv",
        b"T,area,n\n%d,a\n%d,a,1,2\n%d,\xff\xfe,1\n%d,a,99999999999999999999\n,a,1\n%d,ok,1\n"
        % (T0, T0, T0, T0, T0),
    )
    found = rows_of(path)
    assert reasons(found) == [
        ("2", "2 values where 3 are wanted"),
        ("3", "4 values where 3 are wanted"),
        ("4", "column `area`: '\\udcff\\udcfe' is not UTF-8"),
        ("5", "column `n`: 99999999999999999999 does not fit into 64 bits"),
        ("6", "column `T`: a value is missing"),
    ]
    assert found[-1] == (T0, "ok", 1)
    assert found[0].where == f"{path}:2"


def test_a_csv_file_without_a_column(file) -> None:
    path = file("a.csv", "T,n\n")
    with pytest.raises(SourceError, match="has no column `area`; its columns are 'T', 'n'"):
        rows_of(path)
    path = file("b.csv", "T,area,area,n\n")
    with pytest.raises(SourceError, match="has several columns `area`"):
        rows_of(path)


def test_an_empty_csv_file_has_no_rows(file) -> None:
    assert rows_of(file("a.csv", "")) == []
    assert rows_of(file("b.csv", "T,area,n\n")) == []


TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5), st.text('\r\n",a ', max_size=5)
)


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=20))
def test_every_text_comes_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    from streamlog.runtime.sinks import open_sink

    rows = [(T0, text, i) for i, text in enumerate(texts)]
    types = Checker(compiled(PROGRAM), "s").types
    folder = tmp_path_factory.mktemp("texts")
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        sink = open_sink(folder / name, ("T", "area", "n"), types)
        sink.write(rows)
        sink.close()
        assert rows_of(folder / name) == rows


# ------------------------------------------------------------------------------- JSON Lines


def test_json_lines(file) -> None:
    path = file(
        "a.jsonl",
        '{"T": "2026-11-15T08:00:00Z", "area": "a", "n": 1, "more": null}\n'
        "\n"
        f'[{T0}, "Z\\u00fcrich", 2]\n',
    )
    assert rows_of(path) == [(T0, "a", 1), (T0, "Zürich", 2)]


def test_bad_json_rows_have_their_place(file) -> None:
    deep = b"[" * 100_000
    path = file(
        "a.ndjson",
        b'{"T": 1, "area": "a"\n'
        b"5\n"
        b"null\n"
        b'{"T": 1, "area": "a"}\n'
        b'{"T": 1, "area": null, "n": 1}\n'
        b'{"T": 1, "area": "a", "n": 1.0}\n'
        b'{"T": 1, "area": "a", "n": 1e400}\n'
        b'{"T": 1, "area": "a", "n": {}}\n'
        b'{"T": 1, "area": "\xff", "n": 1}\n'
        b'{"T": 1, "area": "\\ud800", "n": 1}\n' + deep + b"\n"
        b'{"T": 1, "area": "ok", "n": 1}\n',
    )
    found = rows_of(path)
    told = [reason for _, reason in reasons(found)]
    assert [line for line, _ in reasons(found)] == [str(n) for n in range(1, 12)]
    assert told[0].startswith("malformed JSON: ")
    assert told[1:3] == ["5 is not a row", "None is not a row"]
    assert told[3:9] == [
        "column `n` is missing",
        "column `area`: a value is missing",
        "column `n`: 1.0 is not a valid int",
        "column `n`: inf is not a valid int",
        "column `n`: {} is not a valid int",
        "column `area`: '\\udcff' is not UTF-8",
    ]
    assert told[9] == "column `area`: '\\ud800' has half a character"
    assert told[10].startswith("malformed JSON: ")
    assert found[-1] == (1, "ok", 1)


# ---------------------------------------------------------------------------------- Parquet


def test_parquet_types(tmp_path: Path) -> None:
    moment = datetime(2026, 11, 15, 8, tzinfo=timezone.utc)
    for unit in ("s", "ms", "us", "ns"):
        table = pa.table(
            {
                "area": pa.array(["a", "b"]).dictionary_encode(),
                "n": pa.array([1, 2], pa.int32()),
                "T": pa.array([moment, moment + timedelta(seconds=1)], pa.timestamp(unit, "UTC")),
            }
        )
        path = tmp_path / f"{unit}.parquet"
        pq.write_table(table, path)
        assert rows_of(path) == [(T0, "a", 1), (T0 + 10**6, "b", 2)]


def test_bad_parquet_rows(tmp_path: Path) -> None:
    table = pa.table(
        {
            "T": pa.array([T0 * 1000, T0 * 1000 + 1, None, T0 * 1000], pa.timestamp("ns")),
            "area": ["a", "a", "a", None],
            "n": pa.array([2**64 - 1, 1, 1, 1], pa.uint64()),
        }
    )
    path = tmp_path / "a.parquet"
    pq.write_table(table, path)
    assert reasons(rows_of(path)) == [
        ("1", "column `n`: 18446744073709551615 does not fit into 64 bits"),
        ("2", f"column `T`: the time {T0 * 1000 + 1} ns is finer than a microsecond"),
        ("3", "column `T`: a value is missing"),
        ("4", "column `area`: a value is missing"),
    ]


def test_a_folder_of_parquet_files(tmp_path: Path) -> None:
    for n in (2, 1):
        table = pa.table({"T": [T0], "area": ["a"], "n": [n]})
        pq.write_table(table, tmp_path / f"part-{n}.parquet")
    assert rows_of(tmp_path) == [(T0, "a", 1), (T0, "a", 2)]
    assert rows_of(tmp_path, header=False) == rows_of(tmp_path)


def test_a_file_that_is_no_parquet(file) -> None:
    with pytest.raises(SourceError, match="is not a Parquet file that can be read"):
        rows_of(file("a.parquet", "not at all"))


# ------------------------------------------------------------------------------- all of them


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"there is no file '.*missing.csv'"):
        rows_of(tmp_path / "missing.csv")
    with pytest.raises(SourceError, match=r"should end in .csv, .jsonl or .parquet"):
        format_of(tmp_path / "a.dat")


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_folder_is_all_its_files(tmp_path: Path, suffix: str) -> None:
    """Those that are not hidden, by name, each bad row with its file and line."""
    lines = {"csv": f"T,area,n\n{T0},a,{{n}}\nx,b,0\n", "jsonl": f'[{T0}, "a", {{n}}]\n[]\n'}
    for name, n in (("b", 2), ("a", 1), ("_x", 3), (".y", 4)):
        (tmp_path / f"{name}.{suffix}").write_text(lines[suffix].format(n=n))
    (tmp_path / "sub").mkdir()
    found = rows_of(tmp_path)
    assert [r for r in found if isinstance(r, tuple)] == [(T0, "a", 1), (T0, "a", 2)]
    line = {"csv": 3, "jsonl": 2}[suffix]
    assert [r.where for r in found if isinstance(r, Reject)] == [
        f"{tmp_path}/{name}.{suffix}:{line}" for name in "ab"
    ]


def test_folders_without_rows_to_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"has no .csv, .jsonl or .parquet files"):
        rows_of(tmp_path)
    (tmp_path / "_a.csv").write_text("T,area,n\n")
    (tmp_path / "sub").mkdir()
    with pytest.raises(SourceError, match=r"has no .csv, .jsonl or .parquet files"):
        rows_of(tmp_path)
    (tmp_path / "a.csv").write_text("T,area,n\n")
    (tmp_path / "a.jsonl").write_text("")
    with pytest.raises(SourceError, match="are of several kinds: csv, jsonl"):
        rows_of(tmp_path)
    (tmp_path / "a.jsonl").rename(tmp_path / "README")
    with pytest.raises(SourceError, match=r"what kind of file is '.*README'"):
        rows_of(tmp_path)


def test_of_many_files_few_are_open(tmp_path: Path) -> None:
    """As files that follow each other have it: more of them than a process may open."""
    sources = []
    for n in range(300):
        path = tmp_path / f"{n:03}.csv"
        path.write_text("T,area,n\n" + "".join(f"{T0 + 10 * n + i},a,{i}\n" for i in range(12)))
        sources.append(Input("s", path))
    checkers, prefixes = {"s": Checker(compiled(PROGRAM), "s")}, [Prefix() for _ in sources]
    most, times = 0, []
    for _, row in merged(read_files(sources, checkers, [0] * len(sources), prefixes)):
        if isinstance(row, tuple):
            times.append(row[0])
            most = max(most, len(list(Path("/proc/self/fd").iterdir())))
    assert times == sorted(T0 + 10 * n + i for n in range(300) for i in range(12))
    assert most < 100
    for source, prefix in zip(sources, prefixes, strict=True):
        assert problem(source.path, prefix.record(), "read from") is None
        assert prefix.size == source.path.stat().st_size


def test_rows_that_were_read_before_are_skipped(file) -> None:
    path = file("a.csv", f"T,area,n\n{T0},a,1\nbad\n{T0},c,3\n")
    assert rows_of(path, skip=2) == [(T0, "c", 3)]
    assert rows_of(path, skip=3) == []
    with pytest.raises(SourceError, match="has only 3 rows, and 4 were read from it before"):
        rows_of(path, skip=4)


def test_inputs_are_merged_by_time_and_keep_their_order() -> None:
    one = [(1, "a"), (5, "b"), (3, "late"), (9, "c")]
    other = [(2, "x"), Reject("s", None, "bad"), (4, "y"), (8, "z")]
    got = list(merged([iter(one), iter(other), iter([])]))
    assert [row for which, row in got if which == 0] == [*one, None]
    assert [row for which, row in got if which == 1] == [*other, None]
    assert got[0] == (2, None)
    names = [row[1] if isinstance(row, tuple) else "-" for _, row in got[1:]]
    assert names == ["a", "x", "-", "y", "b", "late", "z", "-", "c", "-"]
    assert list(merged([iter(one)])) == [*((0, row) for row in one), (0, None)]


def test_paths_of_a_program_stay_below_its_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "rules"
    (folder / "lib").mkdir(parents=True)
    (tmp_path / "outside.csv").write_text("T\n")
    (folder / "link.csv").symlink_to(tmp_path / "outside.csv")
    (folder / "lib" / "more.slog").write_text('stream r(T: int) from "r.csv".\n')
    program = folder / "p.slog"

    def declared(path: str) -> list[Input]:
        program.write_text(
            f'use "lib/more.slog".\nstream s(T: int) from "{path}".\noutput p.\n'
            "p(T) <- s(T), r(T).\n"
        )
        return declared_inputs(compile_file(program))

    assert [(i.pred, str(i.path)) for i in declared("data/s.csv")] == [
        ("r", "rules/lib/r.csv"),
        ("s", "rules/data/s.csv"),
    ]
    for path in ("../outside.csv", str(tmp_path / "outside.csv"), "link.csv", "lib/../../x.csv"):
        with pytest.raises(SourceError, match="lies outside the folder of this program"):
            declared(path)
    (folder / "data").mkdir()
    (folder / "data" / "a.csv").write_text("T\n")
    (folder / "data" / "b.csv").symlink_to(folder / "data" / "a.csv")
    assert len(declared("data")) == 2
    for name in ("c.csv", "sub", "_hidden.csv"):
        target = tmp_path if name == "sub" else tmp_path / "outside.csv"
        (folder / "data" / name).symlink_to(target)
        with pytest.raises(SourceError, match=f"the link 'data/{name}' lies outside the folder"):
            declared("data")
        (folder / "data" / name).unlink()
    (folder / "round.csv").symlink_to(folder / "round.csv")
    with pytest.raises(SourceError, match=r"is not a path|cannot be read|there is no file"):
        list(read(declared("round.csv")[1], Checker(compile_file(program), "s")))
    with pytest.raises(SourceError, match="a program without a folder has no files"):
        declared_inputs(compiled('stream s(T: int) from "a.csv".\noutput p.\np(T) <- s(T).'))


def test_text_files_need_no_pyarrow(file) -> None:
    path = file("a.csv", f"T,area,n\n{T0},a,1\n")
    code = f"""
import sys
from pathlib import Path
from streamlog.compiler import compile_source
from streamlog.diagnostics import Source
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.runtime.sources import Input, read
from streamlog.runtime.sinks import open_sink
engine = Engine(compile_source(Source("p", {PROGRAM!r})), Kernel)
engine.push("s", read(Input("s", Path({str(path)!r})), engine.checkers["s"]))
engine.end()
sink = open_sink(Path({str(path.with_name("out.jsonl"))!r}), ("T", "A", "N"), (None, None, None))
sink.write(engine.step()["p"])
sink.close()
print("pyarrow" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
