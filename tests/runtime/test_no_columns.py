"""A predicate without columns has one in files, `holds`, that is true."""

from __future__ import annotations

from pathlib import Path

import pytest
from streaming import compiled

from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.runtime.ingest import Checker, Reject
from streamlog.runtime.sinks import open_sink
from streamlog.runtime.sources import Input, SourceError, read

PROGRAM = "table u(). table v(x: int). output ok, p. ok() <- u(). p(X) <- v(X), not ok(). v(1)."


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_what_is_written_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"u.{kind}"
    checker = Checker(compiled(PROGRAM), "u")
    for rows in [()], []:
        sink = open_sink(path, checker.names, checker.types)
        sink.write(rows)
        sink.commit()
        sink.close()
        assert list(read(Input("u", path), checker)) == rows


@pytest.mark.parametrize("raw", [(), [], (True,), [True], {"holds": True}, {"Holds": "true"}])
def test_rows_from_python(raw: object) -> None:
    engine = Engine(compiled(PROGRAM), Kernel, {"u": [raw]})  # type: ignore[list-item]
    engine.end()
    assert engine.step() == {"ok": [()], "p": []}
    assert not engine.rejects


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ((False,), "false is not a fact"),
        ({"holds": False}, "false is not a fact"),
        ({}, "column `holds` is missing"),
        ((1, 2), "2 values where 1 are wanted"),
        (("perhaps",), "'perhaps' is not a valid bool"),
        ((None,), "a value is missing"),
        (7, "7 is not a row"),
    ],
)
def test_rows_that_are_rejected(raw: object, reason: str) -> None:
    found = Checker(compiled(PROGRAM), "u").row(raw)
    assert isinstance(found, Reject)
    assert reason in found.reason


def test_a_file_with_another_column(tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("x\n1\n")
    with pytest.raises(SourceError, match="no column `holds`"):
        list(read(Input("u", tmp_path / "u.csv"), Checker(compiled(PROGRAM), "u")))
