"""Times as data write them mean the same on Spark, and what is odd about them is said there too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession
from streaming import compiled
from test_spark_ingest import NUMBERS, SPACED, TIMES, agree

from streamlog.app.cli import main
from streamlog.runtime import sources as local
from streamlog.runtime.ingest import Checker, Reject
from streamlog.runtime.sources import SourceError
from streamlog.spark import ingest
from streamlog.spark.records import Records
from streamlog.spark.sources import read
from streamlog.syntax.ast import Type
from streamlog.syntax.data_path import DataPath

T0 = 1761955200_000_000
FORMS = ("time(s)", "time(ms)", "time(us)", "time(ns)", 'time("%d.%m.%Y %H:%M", "Europe/Berlin")')
RULE = "output p.\np(T, X) <- s(T, X)."
TEXTS = [
    *("1761955200", "1761955200000", str(T0), str(T0 * 1000), str(T0 * 1000 + 1), "1761955200.25"),
    *("01.11.2025 01:00", "25.10.2026 02:30", "29.03.2026 02:30", "-5", "253402300800"),
    *NUMBERS,
    *TIMES,
    *SPACED,
]


@pytest.fixture(autouse=True)
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Small data are read faster than code for them is compiled."""
    fast = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for key, value in fast.items():
        spark.conf.set(key, value)
    yield
    for key in fast:
        spark.conf.unset(key)


def program(form: str) -> Any:
    return compiled(f"stream s(T: {form}, x: int).\n{RULE}")


def checked(frame: DataFrame, form: str) -> list[Any]:
    records = Records.of(frame, [DataPath(("T",)), DataPath(("x",))], "s")
    return ingest.checked(records, program(form), "s", (Type.TIME, Type.INT)).collect()


@pytest.mark.parametrize("form", FORMS)
def test_texts_and_numbers(spark: SparkSession, form: str) -> None:
    check = Checker(program(form), "s").row
    whole = [int(t) for t in NUMBERS if t.isascii() and t.isdigit() and len(t) < 19]
    whole += [-1, 0, 1761955200, T0, T0 * 1000, T0 * 1000 + 1, 2**63 - 1, -(2**63)]
    for values, type_ in (
        (TEXTS, pa.string()),
        (whole, pa.int64()),
        ([1761955200.25, 1761955200.0, 1e300, float("nan"), -0.5], pa.float64()),
    ):
        given = [*values, None]
        table = pa.table({"T": pa.array(given, type_), "x": [1] * len(given)})
        rows = checked(spark.createDataFrame(table), form)
        agree(rows, [check((v, 1)) for v in given], given)


@pytest.mark.parametrize("form", FORMS)
def test_json(spark: SparkSession, tmp_path: Path, form: str) -> None:
    values = ["1761955200", 1761955200, 1761955200.25, T0 * 1000 + 1, "01.11.2025 01:00", None, 2.5]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps({"T": v, "x": 1}) + "\n" for v in values))
    same(spark, path, program(form))


def same(
    spark: SparkSession,
    path: Path,
    p: Any,
    pred: str = "s",
    types: tuple[Type, ...] = (Type.TIME, Type.INT),
) -> list[Any]:
    """What is read on Spark, if it is what the local engine reads."""
    here = list(local.read(local.Input(pred, path), Checker(p, pred)))
    records = read(spark, path, pred, p)
    rows = ingest.values(records, p, pred, types).collect()
    good = sorted((row.c0, row.c1) for row in rows if row.good)
    assert good == sorted(row for row in here if not isinstance(row, Reject))
    others = ingest.uncertain(spark, records, p, pred, types).collect()
    bad = sorted((row.place, row.reason) for row in others if row.reason is not None)
    assert bad == sorted((row.where, row.reason) for row in here if isinstance(row, Reject))
    return good


@pytest.mark.parametrize("form", ["time", "time(s)"])
def test_pandas_files(spark: SparkSession, tmp_path: Path, form: str) -> None:
    times = pd.to_datetime([T0 * 1000, T0 * 1000 + 1, 0])
    for zone in (None, "UTC"):
        path = tmp_path / f"{zone}.parquet"
        pd.DataFrame({"T": times.tz_localize(zone), "x": [1, 2, 3]}).to_parquet(path)
        assert same(spark, path, program(form)) == [(0, 3), (T0, 1)]


def test_durations_of_pandas(spark: SparkSession, tmp_path: Path) -> None:
    text = "table t(d: duration, n: int).\noutput p.\np(D, N) <- t(D, N)."
    p, types = compiled(text), (Type.DURATION, Type.INT)
    lengths = pd.to_timedelta([1_000_000_000, 1, 2_000], unit="ns")
    for unit in ("ns", "us", "s"):
        path = tmp_path / f"{unit}.parquet"
        pd.DataFrame({"d": lengths.as_unit(unit), "n": [1, 2, 3]}).to_parquet(path)
        assert (1_000_000, 1) in same(spark, path, p, "t", types)


def test_files_that_do_not_agree(spark: SparkSession, tmp_path: Path) -> None:
    times = pa.array([T0 * 1000], pa.timestamp("ns"))
    pq.write_table(pa.table({"T": times, "x": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"T": [T0], "x": [1]}), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=r"column `T` is of another type in '.*b.parquet' than"):
        read(spark, tmp_path, "s", program("time"))


# --------------------------------------------------------------------------------- doubts

SECONDS = (
    "warning: `s`: column `T` has the time 1761955200, read as microseconds, which is "
    "1970-01-01T00:29:21.9552Z; if it counts seconds, declare `T: time(s)`"
)
DATA = {
    "s.csv": "T,x\n1761955200,1\n2025-11-01T00:00:00Z,2\n",
    "spaced.csv": "T,x\n 1761955200,1\n",
    "s.jsonl": '{"T": 1761955200, "x": 1}\n{"T": "1970-01-01", "x": 2}\n',
    "usual.csv": f"T,x\n1066-10-14,1\n{T0},2\n",
}


def run(*args: object) -> list[str]:
    """The warnings of a run."""
    result = CliRunner().invoke(main, ["run", *map(str, args), "--format", "csv"])
    assert result.exit_code == 0, result.stderr
    return [line for line in result.stderr.splitlines() if line.startswith("warning")]


@pytest.mark.parametrize("name", DATA)
def test_a_number_that_is_hardly_microseconds(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.slog").write_text(f"stream s(T: time, x: int).\n{RULE}\n")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / name).write_text(DATA[name])
    wanted = [] if name == "usual.csv" else [SECONDS]
    given = (tmp_path / "a.slog", "--input", f"s={folder}")
    assert run(*given, "--engine", "local") == wanted
    assert run(*given) == wanted
    assert run(*given, "--checkpoint", tmp_path / "c") == wanted
