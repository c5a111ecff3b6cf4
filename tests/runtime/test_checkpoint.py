"""Checkpoints: what resumes is what went on, and what is damaged is refused."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming import FIRST

from streamlog.runtime import checkpoint
from streamlog.runtime.envelope import CheckpointError
from streamlog.runtime.segments import packed, unpacked

PROGRAM = """
stream pre(T: int, area: string) slack 3.
stream report(T: int, area: string) slack 3 idle 20.
table zone(area: string, z: int).
output alarm, total.
alarm(T, A, Z) <- pre(T, A), zone(A, Z), not (report(T1, A), T <= T1, T1 <= T + 5).
total(T, count(A)) <- pre(T, A).
zone(a, 1). zone(b, 2). zone(c, 3).
"""


def events(seed: int) -> list[tuple[str, tuple[int, str]]]:
    rng = random.Random(seed)
    found: list[tuple[str, tuple[int, str]]] = []
    for t in range(60):
        for stream in ("pre", "report"):
            if rng.random() < 0.6:
                row = (t - rng.randrange(6), rng.choice("abc"))
                found += [(stream, row)] * rng.choice((1, 1, 2))
    return found


def run(e: Any, rows: list[tuple[str, tuple[int, str]]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for i, (stream, row) in enumerate(rows):
        e.push(stream, [row])
        if i % 4 == 0:
            for name, answers in e.step().items():
                found.setdefault(name, []).extend(answers)
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("remember", [True, False])
def test_a_resumed_run_is_the_same_run(engine, tmp_path: Path, seed: int, remember: bool) -> None:
    rows = events(seed)
    whole = engine(PROGRAM, remember=remember)
    run(whole, rows)
    whole.end()
    whole.step()

    e = engine(PROGRAM, remember=remember)
    released: list[Any] = []
    cuts = sorted(random.Random(seed).sample(range(len(rows)), 3))
    for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        for name, found in run(e, rows[start:stop]).items():
            released += ((name, row) for row in found)
        checkpoint.save(e, tmp_path, {"consumed": stop})
        e = engine(PROGRAM, remember=remember)
        assert checkpoint.load(e, tmp_path) == {"consumed": stop}
    e.end()
    released += ((name, row) for name, found in e.step().items() for row in found)
    assert len(released) == len(set(released)) == sum(whole.report.answers.values())
    assert e.report.streams == whole.report.streams
    assert e.report.answers == whole.report.answers
    assert e.progress.values() == whole.progress.values()
    if remember:
        for name in ("alarm", "total", "pre", "report"):
            assert e.facts(name) == whole.facts(name)


def test_only_the_newest_is_kept(engine, tmp_path: Path) -> None:
    e = engine(PROGRAM)
    for n in range(1, 4):
        made = checkpoint.save(e, tmp_path / "deep" / "er", {"n": n})
    assert [p.name for p in (tmp_path / "deep" / "er").iterdir()] == ["checkpoint-000000000003"]
    assert sorted(p.name for p in made.iterdir()) == ["manifest.json", "rows.arrow"]


def test_an_unfinished_one_does_not_count(engine, tmp_path: Path) -> None:
    e = engine(PROGRAM)
    checkpoint.save(e, tmp_path, {"n": 1})
    unfinished = tmp_path / ".new-000000000002"
    unfinished.mkdir()
    (unfinished / "rows.arrow").write_bytes(b"half")
    assert checkpoint.load(engine(PROGRAM), tmp_path) == {"n": 1}
    checkpoint.save(e, tmp_path, {"n": 2})
    assert checkpoint.load(engine(PROGRAM), tmp_path) == {"n": 2}
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint-000000000002"]


def test_a_failing_save_leaves_the_last_one(engine, tmp_path: Path, monkeypatch) -> None:
    e = engine(PROGRAM)
    checkpoint.save(e, tmp_path, {"n": 1})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("streamlog.runtime.checkpoint.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        checkpoint.save(e, tmp_path, {"n": 2})
    assert checkpoint.load(engine(PROGRAM), tmp_path) == {"n": 1}


def test_no_checkpoint_is_no_error(engine, tmp_path: Path) -> None:
    assert checkpoint.load(engine(PROGRAM), tmp_path) is None
    assert checkpoint.load(engine(PROGRAM), tmp_path / "missing") is None


# ----------------------------------------------------------------------------------- damage


@pytest.fixture
def saved(engine, tmp_path: Path) -> Path:
    e = engine(PROGRAM)
    run(e, events(1))
    return checkpoint.save(e, tmp_path)


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_any_damaged_byte_of_the_rows_is_noticed(engine, saved: Path) -> None:
    rows = saved / "rows.arrow"
    good = rows.read_bytes()
    for at in random.Random(0).sample(range(len(good)), 25):
        flip(rows, at)
        with pytest.raises(CheckpointError, match="is damaged: the rows of"):
            checkpoint.load(engine(PROGRAM), saved.parent)
        rows.write_bytes(good)
    rows.write_bytes(good[:-1])
    with pytest.raises(CheckpointError, match="is damaged"):
        checkpoint.load(engine(PROGRAM), saved.parent)


def test_any_damaged_byte_of_the_manifest_is_noticed(engine, saved: Path) -> None:
    manifest = saved / "manifest.json"
    good = manifest.read_bytes()
    for at in random.Random(0).sample(range(len(good)), 50):
        if not good[at : at + 1].isspace():
            flip(manifest, at)
            with pytest.raises(CheckpointError):
                checkpoint.load(engine(PROGRAM), saved.parent)
        manifest.write_bytes(good)


def change(path: Path, **entries: object) -> None:
    document = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**document, **entries}))


def test_foreign_and_newer_ones_are_refused(engine, saved: Path) -> None:
    change(saved, version=9)
    with pytest.raises(CheckpointError, match="has version 9; this streamlog reads 7 and 8"):
        checkpoint.load(engine(PROGRAM), saved.parent)
    change(saved, format="something else")
    with pytest.raises(CheckpointError, match="is not part of a checkpoint of this"):
        checkpoint.load(engine(PROGRAM), saved.parent)
    (saved / "manifest.json").write_text("[]")
    with pytest.raises(CheckpointError, match="is not part of a checkpoint of this"):
        checkpoint.load(engine(PROGRAM), saved.parent)
    (saved / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match="cannot be read: no such file"):
        checkpoint.load(engine(PROGRAM), saved.parent)


def test_other_programs_and_tables_are_refused(engine, saved: Path) -> None:
    with pytest.raises(CheckpointError, match="is of another program"):
        checkpoint.load(engine(FIRST), saved.parent)
    with pytest.raises(CheckpointError, match="is of another program"):
        checkpoint.load(engine(PROGRAM.replace("T + 5", "T + 6")), saved.parent)
    with pytest.raises(CheckpointError, match="other rows in the program's tables"):
        checkpoint.load(engine(PROGRAM, tables={"zone": [("d", 4)]}), saved.parent)


def test_comments_and_tests_do_not_make_another_program(engine, saved: Path) -> None:
    more = f'% a comment\n{PROGRAM}\ntest "nothing" {{ end. expect none alarm. }}\n'
    assert checkpoint.load(engine(more), saved.parent) == {}


def test_a_file_is_no_folder(engine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="is not a folder"):
        checkpoint.load(engine(PROGRAM), tmp_path / "file")


def test_nothing_is_pickled(saved: Path) -> None:
    shutil.rmtree(saved.parent / "x", ignore_errors=True)
    for path in saved.iterdir():
        data = path.read_bytes()
        assert b"pickle" not in data
        assert not data.startswith(b"\x80")
    source = Path(checkpoint.__file__).parent
    assert not any("import pickle" in p.read_text() for p in source.rglob("*.py"))


VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.just(2**63),
    st.floats(allow_nan=False),
    st.booleans(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)


@settings(deadline=None)
@given(st.lists(st.lists(VALUES, max_size=3).map(tuple), max_size=20))
def test_rows_come_back_with_their_types(rows: list[tuple[Any, ...]]) -> None:
    back = unpacked(packed(rows))
    assert back == rows
    assert [list(map(type, r)) for r in back] == [list(map(type, r)) for r in rows]


def test_what_is_no_value_is_refused() -> None:
    with pytest.raises(TypeError, match="a row cannot hold None"):
        list(packed([(1, None)]))  # type: ignore[list-item]
