"""Files into Spark: nothing is lost and nothing misread, row by row as the local engine has it."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.utils import StreamingQueryException
from runtime.test_malformed import PROGRAM as MALFORMED
from runtime.test_malformed import bad_csv, bad_json, good_rows
from streaming import compiled

from streamlog.compiler import Program
from streamlog.runtime import sources as local
from streamlog.runtime.arrow_values import with_none
from streamlog.runtime.ingest import Checker, Reject
from streamlog.runtime.sources import SourceError
from streamlog.spark.failures import explained
from streamlog.spark.ingest import certain, checked, uncertain, values
from streamlog.spark.sources import read, read_stream
from streamlog.syntax.ast import Type

S = compiled("stream s(T: time, area: string). output o. o(T, A) <- s(T, A).")
TYPES = (Type.TIME, Type.STRING)


@pytest.fixture(autouse=True)
def interpreted(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """Small files are read faster than code for them is compiled."""
    fast = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    compiles = "malformed" in request.node.name
    for key, value in fast.items():
        if not compiles:
            spark.conf.set(key, value)
    yield
    for key in fast:
        spark.conf.unset(key)


def on_spark(
    spark: SparkSession,
    path: Path,
    program: Program = S,
    types: tuple[Type, ...] = TYPES,
    header: bool = True,
) -> tuple[Counter[Any], list[Any]]:
    """The good rows, and the bad: the same whether all rows go to Python or only the doubtful."""
    records = read(spark, path, "s", program, header=header)
    rows = values(records, program, "s", types).collect()
    good = Counter(with_none(tuple(row)[: len(types)] for row in rows if row.good))
    others = uncertain(spark, records, program, "s", types).collect()
    bad = [
        Row(place=row.place, reason=row.reason, text=row.text)
        for row in others
        if row.reason is not None
    ]
    apart = [row for row in certain(records, program, "s", types).collect() if row.good]
    apart += [row for row in others if row.reason is None]
    assert good == Counter(with_none(tuple(row)[: len(types)] for row in apart))
    assert sum(not row.good for row in rows) == len(bad)
    return good, bad


def as_local(spark: SparkSession, path: Path, header: bool = True) -> list[str]:
    """Spark's reasons, if it finds what the local engine finds."""
    rows = list(local.read(local.Input("s", path, header), Checker(S, "s")))
    good, bad = on_spark(spark, path, header=header)
    same(rows, good, bad)
    return sorted(r.reason for r in bad)


def same(rows: list[Any], good: Counter[Any], bad: list[Any]) -> None:
    """Values, places, reasons and texts are those of the local engine."""
    rejected = [r for r in rows if isinstance(r, Reject)]
    assert good == Counter(r for r in rows if not isinstance(r, Reject))
    assert sorted(map(tuple, bad)) == sorted((r.where, r.reason, r.text) for r in rejected)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_malformed_rows(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    rng = random.Random(11)
    program = compiled(MALFORMED)
    names = ("T", "area", "n", "x")
    lines = []
    for row in good_rows(200, rng):
        plain = ",".join(map(str, row))
        lines.append(
            (plain if kind == "csv" else json.dumps(dict(zip(names, row, strict=True)))).encode()
        )
    lines += (bad_csv(rng) if kind == "csv" else bad_json(rng) for _ in range(1_000))
    # How deep is too deep for Python depends on where it is asked.
    lines = [line for line in lines if not line.startswith(b"[[")]
    rng.shuffle(lines)
    path = tmp_path / f"rows.{kind}"
    header = [b"T,area,n,x"] if kind == "csv" else []
    path.write_bytes(b"\n".join(header + lines) + b"\n")
    rows = list(local.read(local.Input("s", path), Checker(program, "s")))
    types = (Type.TIME, Type.STRING, Type.INT, Type.FLOAT)
    good, bad = on_spark(spark, path, program, types)
    same(rows, good, bad)
    assert len({r.reason for r in bad}) > 20


CSV = "T,area\n1,a\n2,\n\n3,b,c\n4\n5,Zürich\r\n6, x \n7,lone\rreturn\n"
QUOTED = (
    'T,area\n1,"a"\n"2","b, c"\n3,"say ""hi"""\n4,ga"te\n5,""\n"6",x\n7,"open\n8,"a"b\n9,"a",b\n'
    ',"""\n10,""""\n11," "\r\n12,"Zürich, Bern"\n'
)


def test_csv(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(CSV, newline="")
    assert as_local(spark, path) == ["1 values where 2 are wanted", "3 values where 2 are wanted"]
    path.write_text(CSV.replace(",", "\t"), newline="")
    path = path.rename(tmp_path / "a.tsv")
    as_local(spark, path)


def test_csv_with_quotes(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(QUOTED, newline="")
    open_ = "a quote is not closed, or not at the end of its field"
    assert as_local(spark, path) == ["3 values where 2 are wanted", open_, open_, open_]


def test_the_names_decide(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for text in [
        "area,T\na,1\nb,2,3\n",
        ' AREA , other,"t"\r\na,x,1\r\n',
        'T,"x, y",area,T2\n1,"p, q",a,\n2,p,b,\n3,p,q\n',
        "T,a,area,a\n1,x,y,z\n",
        "\ufeffT,area\n1,a\n",
        "\n\nT,area\n1,a\n",
        "T,Größe,area\n1,ä,ö\n",
        "",
        "T,area\n",
        "T,area\n1,a\nT,area\n2,b\narea,T\n",  # two files put together
    ]:
        path.write_text(text, newline="")
        as_local(spark, path)
    path.write_text("T,name\n1,a\n")
    with pytest.raises(SourceError, match="has no column `area`; its columns are 'T', 'name'"):
        read(spark, path, "s", S)


def test_a_table_may_have_a_row_that_repeats_its_names(spark: SparkSession, tmp_path: Path) -> None:
    program = compiled(
        "table s(a: string, b: string). stream t(T). output o. o(T, A) <- t(T), s(A, _)."
    )
    path = tmp_path / "a.csv"
    path.write_text("a,b\na,b\nb,c\n")
    good, bad = on_spark(spark, path, program, (Type.STRING, Type.STRING))
    assert (good, bad) == (Counter([("a", "b"), ("b", "c")]), [])
    assert list(local.read(local.Input("s", path), Checker(program, "s"))) == sorted(good)


def test_no_header(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for text in ["1,a\n2,b\n", "\ufeff1,a\n", "T,area\n1,a\n", ""]:
        path.write_text(text)
        as_local(spark, path, header=False)


def test_bytes_that_are_no_text(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(
        b'T,area\n1,\xff\n2,"\xff"\n3,a,\xff\n4,\xc3\xa9\n5,\xef\xbf\xbd\n6,"\xc3\xa9,"\n'
    )
    assert as_local(spark, path) == [
        "3 values where 2 are wanted",
        r"column `area`: '\udcff' is not UTF-8",
        r"column `area`: '\udcff' is not UTF-8",
    ]


def test_a_folder_whose_files_differ(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("T,area\n1,a\n")
    (tmp_path / "b.csv").write_text("area,T\nb,2\n")
    (tmp_path / "c.csv").write_text("n,area,T\n0,c,3\n")
    (tmp_path / "d.csv").write_text("T,area\n4,d\n")
    (tmp_path / "_SUCCESS").touch()
    good, bad = on_spark(spark, tmp_path)
    assert (good, bad) == (Counter([(1, "a"), (2, "b"), (3, "c"), (4, "d")]), [])
    (tmp_path / "e.csv").write_text("T,n\n4,d\n")
    with pytest.raises(SourceError, match=r"e.csv' has no column `area`"):
        read(spark, tmp_path, "s", S)
    (tmp_path / "f.jsonl").touch()
    with pytest.raises(SourceError, match="several kinds: csv, jsonl"):
        read(spark, tmp_path, "s", S)


def test_compressed_files_and_patterns(spark: SparkSession, tmp_path: Path) -> None:
    lines = "T,area\n1,a\nx,b\n" + "2,c\n" * 3
    (tmp_path / "in{1}").mkdir()
    (tmp_path / "in{1}" / "a[1].csv").write_text(lines)
    with gzip.open(tmp_path / "in{1}" / "a 2.csv.gz", "wt") as file:
        file.write("\ufeff" + lines.replace("T,area", "area,T").replace("x,b", "x,b,c"))
    with gzip.open(tmp_path / "in{1}" / "b.jsonl.gz", "wt") as file:
        file.write('{"T": 1, "area": "a"}\n{"T": 2}\n')
    for name in ("in{1}/a 2.csv.gz", "in{1}/a[1].csv", "in{1}/b.jsonl.gz", "in{1}/*.csv*", "i*/a*"):
        as_local(spark, tmp_path / name)
    elsewhere = read(spark, f"file://{tmp_path}/in*/a*", "s", S)
    assert len(elsewhere.parts) == 2
    with pytest.raises(SourceError, match=r"no file matches 'file:.*/x\*'"):
        read(spark, f"file://{tmp_path}/x*", "s", S)
    with pytest.raises(SourceError, match=r"no file matches '.*/x\*\.csv'"):
        read(spark, tmp_path / "x*.csv", "s", S)


@pytest.mark.parametrize("as_arrow", [True, False])
def test_a_compressed_file_that_is_cut_off(
    spark: SparkSession, tmp_path: Path, as_arrow: bool
) -> None:
    data = gzip.compress("".join(f"{i},{i * i}\n" for i in range(999)).encode())
    (tmp_path / "a b.csv.gz").write_bytes(data[:-99])
    rows = values(read(spark, tmp_path / "a b.csv.gz", "s", S, header=False), S, "s", TYPES)
    reason = r"'.*/a b\.csv\.gz' cannot be read: the compressed data end too early"
    with pytest.raises(SourceError, match=reason), explained():
        rows.toArrow() if as_arrow else rows.collect()


def test_files_that_are_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\ufeffarea,T\na,1\n")
    (tmp_path / "b.csv").write_text("T,area\n2,b\n")
    (tmp_path / "_SUCCESS").touch()
    for place in (f"file://{tmp_path}", f"file://{tmp_path}/b.csv"):
        records = read(spark, place, "s", S)
        rows = values(records, S, "s", TYPES).select("c0", "c1").collect()
        assert sorted(map(tuple, rows)) == [(1, "a"), (2, "b")][-len(rows) :]
    with pytest.raises(SourceError, match="there is no file"):
        read(spark, f"file://{tmp_path}/gone", "s", S)
    with pytest.raises(SourceError, match="nowhere that this Spark can read"):
        read(spark, "gone://host/a.csv", "s", S)


def test_json_lines(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [
        '{"T": 1, "area": "a"}', '{"t": 2, "AREA": "b", "more": [1, {}]}', '[3, "c"]', "[3]",
        '{"T": "2026-11-15", "area": "\\ud83d\\ude80"}', '{"T": 5, "area": "\\ude80"}',
        '{"T": 5, "area": "\\ud83d"}', '{"T": 5, "area": "\\\\ude80"}', '{"T": 1, "area": "a"} x',
        '{"T": 1, "area": "a"}, {"T": 2, "area": "b"}', '{"T": 1, "area": "a"}] x', '{"T": 1}',
        '{"T": null, "area": "a"}', '{"T": 1, "area": null}', '{"T": 1, "area": 5}', "", " \t",
        '{"T": 1.0, "area": "a"}', '{"T": true, "area": "a"}', '{"T": 1e3, "area": "a"}', "5",
        '{"T": {}, "area": []}', '{"T": 9223372036854775808, "area": "a"}', "null",
        "[1, 2, 3]", '"text"', '{"area": "Zürich", "T": " 7 "}', '{"T": 8, "area": ""}',
        '{"T": 1, "T": 2, "area": "a"}', '{"T": 1, "area": "the end of a line"}',
        '{"T": 1, "area": "a"},"the end of a line"] x', '{"T": 1, "Area": "a", "AREA": "b"}',
        '{"T": 1, "aReA": "a"}', '{"T": 1, "area": "Z\\u00fcrich"}', '{"T": NaN, "area": "a"}',
    ]  # fmt: skip
    path.write_text("\n".join(lines) + "\r\n")
    reasons = as_local(spark, path)
    assert {
        "1 values where 2 are wanted",
        "3 values where 2 are wanted",
        "malformed JSON: extra data",
        "column `area` is missing",
        "column `area`: a value is missing",
        "column `area`: 5 is not a valid string",
        "column `T`: True is not a valid time",
        "column `T`: the time 9223372036854775808 lies outside the years 1 to 9999",
        r"column `area`: '\ude80' has half a character",
        "5 is not a row",
    } <= set(reasons)
    path.write_bytes(b'{"T": 1, "area": "\xff"}\n{"T": 2, "area": "\xc3\xa9"}\n')
    assert as_local(spark, path) == [r"column `area`: '\udcff' is not UTF-8"]


def test_parquet(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    times = pa.array([1, None, 3], pa.timestamp("us"))
    pq.write_table(pa.table({"AREA": ["a", "b", None], "n": [1, 2, 3], "t": times}), path)
    assert as_local(spark, path) == [
        "column `T`: a value is missing",
        "column `area`: a value is missing",
    ]
    assert as_local(spark, tmp_path)
    pq.write_table(pa.table({"one": [1], "two": ["a"]}), path)
    assert as_local(spark, path, header=False) == []
    with pytest.raises(SourceError, match="has no column `T`"):
        read(spark, path, "s", S)


def test_what_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no file"):
        read(spark, tmp_path / "gone.csv", "s", S)
    with pytest.raises(SourceError, match=r"has no \.csv"):
        read(spark, tmp_path, "s", S)
    (tmp_path / "a.txt").touch()
    with pytest.raises(SourceError, match="what kind of file is"):
        read(spark, tmp_path / "a.txt", "s", S)
    with pytest.raises(SourceError, match="kafka://host:port/topic"):
        read_stream(spark, "kafka://localhost", "s", S)
    with pytest.raises(SourceError, match="is not a folder"):
        read_stream(spark, tmp_path / "a.txt", "s", S)


@pytest.mark.parametrize("name", ["{a}", "a[1]", "{a}*"])
def test_a_stream_from_a_name_that_spark_takes_for_a_pattern(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Spark would read the files of `a` instead."""
    for folder in ("a", "{a}", "a[1]"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "s.csv").write_text("T,x\n1,a\n", encoding="utf-8")
    with pytest.raises(SourceError, match="for a pattern of its own"):
        read_stream(spark, tmp_path / name, "s", S)


def streamed(spark: SparkSession, folder: Path, name: str, **options: Any) -> Counter[Any]:
    """The rows that came in, each bad one as its reason."""
    rows = streamed_rows(spark, folder, name, S, TYPES, **options)
    return Counter(r.reason or (r.c0, r.c1) for r in rows)


def streamed_rows(
    spark: SparkSession,
    folder: Path,
    name: str,
    program: Program,
    types: tuple[Type, ...],
    **options: Any,
) -> list[Row]:
    records = read_stream(spark, folder, "s", program, **options)
    query = (
        checked(records, program, "s", types)
        .writeStream.format("memory")
        .queryName(name)
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
        return spark.table(name).collect()
    finally:
        query.stop()


NO_JSON = "malformed JSON: expecting value"


def test_a_folder_that_is_being_filled(spark: SparkSession, tmp_path: Path) -> None:
    for kind, one, two, reason in [
        ("csv", 'area,T\n"a",1\nc\n', "area,T\r\nb,2\r\n", "1 values where 2 are wanted"),
        ("jsonl", '{"T": 1, "area": "a"}\nc\n', '{"area": "b", "T": 2}\r\n', NO_JSON),
    ]:
        folder = tmp_path / kind
        folder.mkdir()
        (folder / f"one.{kind}").write_text(one)
        (folder / f"two.{kind}").write_text(two, newline="")
        rows = streamed(spark, folder, f"filled_{kind}", most_files=1)
        assert rows == Counter([(1, "a"), (2, "b"), reason])
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(SourceError, match="is empty: say what kind of files will come"):
        read_stream(spark, empty, "s", S)
    for kind in "csv", "jsonl", "parquet":
        assert read_stream(spark, empty, "s", S, kind=kind).frame.isStreaming


def test_a_pattern_that_is_being_filled(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        with gzip.open(tmp_path / name / "x.csv.gz", "wt") as file:
            file.write(f"T,area\n1,{name}\n")
        (tmp_path / name / "y.csv").write_text("T,area\n2,no\n")
    assert streamed(spark, tmp_path / "*" / "x.*", "pattern") == {(1, "a"): 1, (1, "b"): 1}
    assert streamed(spark, tmp_path / "?" / "x*z", "again") == {(1, "a"): 1, (1, "b"): 1}
    with pytest.raises(SourceError, match="is empty: say what kind"):
        read_stream(spark, tmp_path / "z*", "s", S)


def test_a_stream_s_file_with_other_columns_is_not_misread(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("T,area\n1,2\n")
    (tmp_path / "b.csv").write_text("area,T\n3,4\n")
    with pytest.raises(StreamingQueryException, match=r"b\.csv"):
        streamed(spark, tmp_path, "differing")


def test_rate(spark: SparkSession) -> None:
    program = compiled("stream s(T: time, n: int). output o. o(T, N) <- s(T, N).")
    records = read_stream(spark, "rate://10", "s", program)
    rows = checked(records, program, "s", (Type.TIME, Type.INT))
    assert rows.isStreaming
    assert rows.columns == ["c0", "c1", "place", "reason", "text", "odd"]


@pytest.mark.parametrize("reads", [read, read_stream])
def test_row_numbers_are_refused(spark: SparkSession, tmp_path: Path, reads: Any) -> None:
    (tmp_path / "s.csv").write_text("T,k\n1,a\n")
    rules = "output p.\np(T, N) <- s(T, N, _)."
    numbered = compiled(f"stream s(T: int, n: int row, k: string).\n{rules}")
    with pytest.raises(SourceError, match="`n` of `s` is the number of a row in its file, which"):
        reads(spark, tmp_path, "s", numbered)


def test_columns_of_parquet_that_differ_in_case_alone(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"T": [1], "t": [2], "area": ["a"]}), tmp_path / "s.parquet")
    with pytest.raises(SourceError, match=r"several columns `t` .* spark.sql.caseSensitive=true"):
        read(spark, tmp_path / "s.parquet", "s", S)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        good, _ = on_spark(spark, tmp_path / "s.parquet")
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")
    assert good == Counter([(1, "a")])
