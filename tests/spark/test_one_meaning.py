"""The same nasty rows to both engines: the same answers, and the same rows set aside, with the same
places and the same reasons."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from streamlog.app.cli import main

PROGRAM = """
stream s(T: time, area: string, n: int 0..1000, x: float, d: duration, b: bool) slack 10000d.
table t(area: string, n: int).
output o, p.
o(T, A, N, X, D, B) <- s(T, A, N, X, D, B).
p(A, N) <- t(A, N).
"""
TIME = "2026-11-15T08:00:00Z"
CSV = [
    f"{TIME},a,5,0.5,5min,true",  # what SQL is certain of, and then what it is not
    " 2026-11-15 08:00 , a ,+5, .5 ,1.5min,YES",
    "2026-11-15T08:00:00.25+02:00,Zürich,0000000000000000000000007,1e-999,-3s,0",
    '"2026-11-15","say ""hi"", twice",5,5.,5 min,no\r',
    f"{TIME},,1000,-1.5,0,1",
    "1794729600000000,\u00a0,0,5,-1,false",
    "",
    "T,area,n,x,d,b",  # two files put together
    '"T",area,n,x,d,b',
    "soon,a,5,0.5,5min,true",
    "2026-02-30T08:00:00Z,a,5,0.5,5min,true",
    "2026-11-15T08:00:00.1234567Z,a,5,0.5,5min,true",
    "2026-11-15T08:00:00+24:00,a,5,0.5,5min,true",
    "253402300800000000,a,5,0.5,5min,true",
    f"{TIME},a,5.0,0.5,5min,true",
    f"{TIME},a,,0.5,5min,true",
    f"{TIME},a,1001,0.5,5min,true",
    f"{TIME},a,9223372036854775808,0.5,5min,true",
    f"{TIME},a,５,0.5,5min,true",
    f"{TIME},a,5,nan,5min,true",
    f"{TIME},a,5,1e999,5min,true",
    f"{TIME},a,5,0.5,5parsec,true",
    f"{TIME},a,5,0.5,0.0000001s,true",
    f"{TIME},a,5,0.5,5min,maybe",
    f"{TIME},a,5,0.5,5min",
    f"{TIME},a,5,0.5,5min,true,more",
    f'{TIME},"a,5,0.5,5min,true',
    f'{TIME},"a"b,5,0.5,5min,true',
    f"{TIME},🚀 it's \\ {'x' * 60},five,0.5,5min,true",
]
OBJECT = {"T": TIME, "area": "a", "n": 5, "x": 0.5, "d": "5min", "b": True}
JSON = [
    json.dumps(OBJECT),
    json.dumps(dict(OBJECT, area="Zürich 🚀")),
    json.dumps({name.upper(): value for name, value in OBJECT.items()}),
    json.dumps([*OBJECT.values()]),
    json.dumps(dict(OBJECT, T=" 2026-11-15 ", n=" 7 ", x=1, d=5, b="no", more=[{}])),
    json.dumps(OBJECT)[:-1] + ', "n": 6}',
    "",
    " \t\r",
    *(
        json.dumps(dict(OBJECT, **{name: value}))
        for name, values in {
            "T": (None, True, 1.5, 10**30, "noon", "\ud83d", []),
            "area": (None, 5, "\ude80", {}),
            "n": (5.0, "5.0", True, 1001, 2**63, None),
            "x": (float("nan"), float("-inf"), "half", True),
            "d": ("5parsec", 5.5),
            "b": (1, "maybe", "1"),
        }.items()
        for value in values
    ),
    json.dumps({"T": TIME}),
    json.dumps(OBJECT) + " x",
    "{", "null", "17", '"text"', "[]", "[1, 2", "{'T': 1}",
]  # fmt: skip
TABLE = ["area,n", "a,1", "area,2", 'a,"x', "b", "area,n", "a, 2 ", "Zürich,two"]


def lines_of(kind: str) -> list[bytes]:
    header = ["T,area,n,x,d,b"] if kind == "csv" else []
    lines = [line.encode() for line in (*header, *(CSV if kind == "csv" else JSON))]
    if kind == "csv":
        return [*lines, b"%s,\xff,5,0.5,5min,true" % TIME.encode()]
    return [*lines, json.dumps(OBJECT).encode().replace(b'"a"', b'"\xff"')]


def run(folder: Path, *args: str) -> str:
    rest = ("--input", "t=t.csv", "--format", "csv")
    result = CliRunner().invoke(main, ["run", "p.slog", *rest, *args])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_both_engines(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.slog").write_text(PROGRAM)
    (tmp_path / "t.csv").write_text("\n".join(TABLE) + "\n")
    (tmp_path / "in +%20").mkdir()  # a name that URLs write differently
    lines = lines_of(kind)
    for name, some in ("1", lines), ("2", lines[: len(lines) // 2]):
        (tmp_path / "in +%20" / f"{name}.{kind}").write_bytes(b"\n".join(some) + b"\n")
    given = ("--input", "s=in +%20")
    wanted = run(tmp_path, *given, "--engine", "local", "--rejects", "local.csv")
    assert run(tmp_path, *given, "--engine", "spark", "--rejects", "spark.csv") == wanted
    texts = [Path(f"{engine}.csv").read_text().splitlines() for engine in ("local", "spark")]
    rejects = [sorted(csv.reader(text)) for text in texts]
    assert rejects[0] == rejects[1]
    assert len(rejects[0]) > 25
    assert len({reason for _, _, reason, _ in rejects[0]}) > 15
    assert ["s", f"in +%20/1.{kind}:{len(lines)}"] in [row[:2] for row in rejects[0]]
    # In micro-batches, a file each.
    batches = ("--checkpoint", "state", "--files-per-batch", "1", "--rejects", "rejects")
    answers = run(tmp_path, *given, "--engine", "spark", *batches)
    assert sorted(answers.splitlines()) == sorted(wanted.splitlines())
    found = [r for f in Path("rejects").rglob("*.parquet") for r in pq.read_table(f).to_pylist()]
    rows = sorted(list(row.values())[:4] for row in found)
    assert rows == sorted(row for row in rejects[0] if row[0] != "stream")
