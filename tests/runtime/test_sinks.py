"""Files out: what they hold, and how they go on where a checkpoint says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from streamlog.runtime.lock import Locked
from streamlog.runtime.sinks import BEGINNING, Sink, missing_output, open_sink, resumable_sink
from streamlog.runtime.sources import SourceError
from streamlog.syntax.ast import Type

NAMES = ("T", "area", "wait", "n", "x", "ok")
TYPES = (Type.TIME, Type.STRING, Type.DURATION, Type.INT, Type.FLOAT, Type.BOOL)
ROWS = [
    (1794729600000000, 'a "b", c', 300_000_000, 1, 0.5, True),
    (1794729600250000, "Zürich\n", -1, -5, 1e300, False),
]


def write(path: Path, opened: Callable[..., Sink] = open_sink) -> None:
    sink = opened(path, NAMES, TYPES)
    sink.write(ROWS[:1])
    sink.write(ROWS[1:])
    sink.commit()
    sink.close()


def test_csv(tmp_path: Path) -> None:
    write(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == (
        "T,area,wait,n,x,ok\n"
        '2026-11-15T08:00:00Z,"a ""b"", c",5min,1,0.5,true\n'
        '2026-11-15T08:00:00.25Z,"Zürich\n",-1us,-5,1e+300,false\n'
    )


def test_json_lines(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_text() == (
        '{"T": "2026-11-15T08:00:00Z", "area": "a \\"b\\", c", "wait": "5min", "n": 1, '
        '"x": 0.5, "ok": true}\n'
        '{"T": "2026-11-15T08:00:00.25Z", "area": "Zürich\\n", "wait": "-1us", "n": -5, '
        '"x": 1e+300, "ok": false}\n'
    )


@pytest.mark.parametrize("opened", [open_sink, resumable_sink])
def test_parquet(tmp_path: Path, opened: Callable[..., Sink]) -> None:
    write(tmp_path / "a.parquet", opened)
    table = pq.read_table(tmp_path / "a.parquet")
    assert [str(t) for t in table.schema.types] == [
        "timestamp[us, tz=UTC]",
        "string",
        "duration[us]",
        "int64",
        "double",
        "bool",
    ]
    assert table.column("n").to_pylist() == [1, -5]


def test_parquet_without_rows_can_be_read(tmp_path: Path) -> None:
    open_sink(tmp_path / "a.parquet", NAMES, TYPES).close()
    assert pq.read_table(tmp_path / "a.parquet").num_rows == 0


def test_a_time_outside_the_calendar_is_a_number(tmp_path: Path) -> None:
    sink = open_sink(tmp_path / "a.csv", ("T",), (Type.TIME,))
    sink.write([(2**62,)])
    sink.close()
    assert (tmp_path / "a.csv").read_text() == f"T\n{2**62}\n"


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_text_goes_on_at_the_mark(tmp_path: Path, name: str) -> None:
    write(tmp_path / f"whole-{name}")
    path = tmp_path / name
    sink = resumable_sink(path, NAMES, TYPES)
    sink.write(ROWS[:1])
    mark = sink.commit()
    sink.write(ROWS)  # lost in a crash
    sink.close()
    sink = resumable_sink(path, NAMES, TYPES, mark)
    sink.write(ROWS[1:])
    end = sink.commit()
    sink.close()
    assert path.read_bytes() == (tmp_path / f"whole-{name}").read_bytes()
    assert missing_output(path, end) is None
    good = path.read_bytes()
    path.write_bytes(b"x" + good[1:])
    with pytest.raises(SourceError, match="are not those written to it before"):
        resumable_sink(path, NAMES, TYPES, mark)
    assert path.read_bytes() == b"x" + good[1:]
    path.write_bytes(b"")
    with pytest.raises(SourceError, match="has 0 bytes, and"):
        resumable_sink(path, NAMES, TYPES, mark)
    path.unlink()
    with pytest.raises(
        SourceError, match=r"is missing, and [0-9]+ bytes were written to it before"
    ):
        resumable_sink(path, NAMES, TYPES, mark)
    assert "is missing" in str(missing_output(path, end))


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_crash_before_the_first_mark(tmp_path: Path, name: str) -> None:
    """What was written is not in the way, if it is known to be of this run."""
    path = tmp_path / name
    write(path, resumable_sink)
    with pytest.raises(SourceError, match="is not empty, and was not written by this run"):
        resumable_sink(path, NAMES, TYPES)
    sink = resumable_sink(path, NAMES, TYPES, BEGINNING)
    sink.write(ROWS)
    sink.commit()
    sink.close()
    if name == "a.parquet":
        assert pq.read_table(path).num_rows == 2
    else:
        write(tmp_path / f"whole-{name}")
        assert path.read_bytes() == (tmp_path / f"whole-{name}").read_bytes()


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_one_run_writes_at_a_time(tmp_path: Path, name: str) -> None:
    sink = resumable_sink(tmp_path / name, NAMES, TYPES)
    for mark in (None, BEGINNING):
        with pytest.raises(Locked, match="is being written by another run"):
            resumable_sink(tmp_path / name, NAMES, TYPES, mark)
    sink.close()
    resumable_sink(tmp_path / name, NAMES, TYPES).close()


def test_parts_go_on_at_the_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    sink = resumable_sink(path, NAMES, TYPES)
    sink.write(ROWS[:1])
    mark = sink.commit()
    assert mark == sink.commit() == 1  # an empty part is none
    sink.write(ROWS)
    sink.commit()
    sink.write(ROWS)  # lost in a crash
    sink.close()
    (path / "part-000003.parquet.new").write_bytes(b"half")
    sink = resumable_sink(path, NAMES, TYPES, mark)
    sink.write(ROWS[1:])
    end = sink.commit()
    sink.close()
    assert sorted(p.name for p in path.iterdir()) == ["part-000001.parquet", "part-000002.parquet"]
    assert pq.read_table(path).column("n").to_pylist() == [1, -5]
    assert missing_output(path, end) is None
    (path / "part-000001.parquet").unlink()
    with pytest.raises(SourceError, match=r"part-000001.parquet' is missing"):
        resumable_sink(path, NAMES, TYPES, mark)
    assert "part-000001.parquet' is missing" in str(missing_output(path, end))


def test_a_folder_with_something_in_it_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").mkdir()
    (tmp_path / "a.parquet" / "precious.txt").write_text("keep")
    with pytest.raises(SourceError, match="is not empty"):
        resumable_sink(tmp_path / "a.parquet", NAMES, TYPES)
    assert (tmp_path / "a.parquet" / "precious.txt").exists()


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be written: no such file"):
        open_sink(tmp_path / "missing" / "a.csv", NAMES, TYPES)
