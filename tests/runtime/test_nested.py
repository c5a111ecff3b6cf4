"""Columns with other names in data, in objects, and in lists: a row per element."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from nested_data import case, records, write
from streaming import compiled

from streamlog import Engine
from streamlog.runtime.ingest import Checker, Reject
from streamlog.runtime.segments import packed, unpacked
from streamlog.runtime.sources import Input, SourceError, read, read_file
from streamlog.syntax.nothing import NONE

CLICK = """
stream click("event-time" as T: time(ms), user: string at "meta.user").
output got.
got(T, U) <- click(T, U).
"""
ORDER = """
stream order(T: time, shop: string at "shop.id",
    sku: string in "items[].sku", n: int 1..9 in "items[].n").
output got.
got(T, S, K, N) <- order(T, S, K, N).
"""
T0 = 1794729600000000


def rows_of(text: str, path: Path, *, header: bool = True) -> list[Any]:
    program = compiled(text)
    (stream,) = program.schema.streams
    return list(read(Input(stream, path, header), Checker(program, stream)))


def told(rows: list[Any]) -> list[str]:
    return [f"{r.where.rpartition(':')[2]}: {r.reason}" for r in rows if isinstance(r, Reject)]


def good(rows: list[Any]) -> list[Any]:
    return [row for row in rows if not isinstance(row, Reject)]


@pytest.fixture
def file(tmp_path: Path):
    def write(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_names_and_paths_in_json(file) -> None:
    path = file(
        "a.jsonl",
        '{"event-time": 1794729600000, "meta": {"user": "ann"}}\n'
        '{"Event-Time": 1794729600000, "META": {"User": "bob"}}\n'
        '[1794729600000, "cid"]\n'
        '{"T": 1794729600000, "meta": {"user": "ann"}}\n'
        '{"event-time": 1794729600000, "user": "ann"}\n'
        '{"event-time": 1794729600000, "meta": {}}\n'
        '{"event-time": 1794729600000, "meta": null}\n'
        '{"event-time": 1794729600000, "meta": {"user": null}}\n'
        '{"event-time": 1794729600000, "meta": "ann"}\n'
        '{"event-time": 1794729600000, "meta": ["user"]}\n'
        '{"event-time": 1794729600000, "meta": {"USER": "ann", "User": "bob"}}\n'
        '{"event-time": 1794729600000, "meta.user": "ann"}\n',
    )
    rows = rows_of(CLICK, path)
    assert good(rows) == [(T0, "ann"), (T0, "bob"), (T0, "cid")]
    assert told(rows) == [
        "4: column `T` is missing: there is no `event-time`",
        "5: column `user` is missing: there is no `meta`",
        "6: column `user` is missing: there is no `meta.user`",
        "7: column `user`: a value is missing",
        "8: column `user`: a value is missing",
        "9: column `user`: 'ann' is not an object with a `user`",
        "10: column `user`: ['user'] is not an object with a `user`",
        "11: column `user` is missing: there is no `meta.user`",
        "12: column `user` is missing: there is no `meta`",
    ]


def test_in_csv_a_path_is_the_name_of_a_column(file) -> None:
    path = file("a.csv", "meta.user,more,event-time\nann,x,1794729600000\n")
    assert rows_of(CLICK, path) == [(T0, "ann")]
    path = file("b.csv", "1794729600000,ann\n")
    assert rows_of(CLICK, path, header=False) == [(T0, "ann")]
    with pytest.raises(SourceError, match=r"has no column `meta\.user`; its columns are 'event-"):
        rows_of(CLICK, file("c.csv", "event-time,user\n1794729600000,ann\n"))


def test_names_with_dots_and_quotes(file) -> None:
    text = """
    stream s("a.b" as T: int, "it's \\"x\\"" as b: int,
        c: int at "`a.b`.`c``d`.e f", d: int at "é.T").
    output p. p(T, B, C, D) <- s(T, B, C, D)."""
    line = '{"a.b": 1, "it\'s \\"x\\"": 2, "é": {"T": 4}}'
    assert told(rows_of(text, file("a.jsonl", line))) == [
        "1: column `c`: 1 is not an object with a `c`d`"
    ]
    text = text.replace("`a.b`.", "`a.c`.")
    line = line[:-1] + ', "a.c": {"c`d": {"e f": 3}}}'
    assert rows_of(text, file("a.jsonl", line)) == [(1, 2, 3, 4)]


def test_two_columns_in_one_place(file) -> None:
    text = 'stream s(T: int, "n" as a: int, "n" as b: float). output p. p(T, A, B) <- s(T, A, B).'
    assert rows_of(text, file("a.jsonl", '{"T": 1, "n": 2}')) == [(1, 2, 2.0)]
    assert rows_of(text, file("a.csv", "T,n\n1,2\n")) == [(1, 2, 2.0)]


def test_a_row_per_element(file) -> None:
    path = file(
        "a.jsonl",
        '{"T": 1000000000000000, "shop": {"id": "x"}, "items": '
        '[{"sku": "a", "n": 1}, {"sku": "b", "n": 2}, {"n": 1, "sku": "a"}]}\n'
        '{"T": 1000000000000000, "shop": {"id": "x"}, "items": []}\n'
        '{"T": 1000000000000000, "shop": {"id": "x"}}\n'
        '{"T": 1000000000000000, "shop": {"id": "x"}, "items": null}\n'
        '{"T": 1000000000000000, "shop": {"id": "x"}, "items": "ab"}\n'
        '{"T": 1000000000000000, "shop": {"id": "x"}, "items": {"sku": "a", "n": 1}}\n'
        '{"T": 1000000000000000, "shop": {"id": "y"}, "items": '
        '[5, {"sku": "a"}, {"sku": "a", "n": 10}, null, {"sku": "c", "n": 9}]}\n'
        '{"T": 1000000000000000, "shop": 7, "items": [{"sku": "a", "n": 1}, {"sku": "b"}]}\n'
        '[1000000000000000, "z", "d", 4]\n',
    )
    rows, t = rows_of(ORDER, path), 10**15
    assert good(rows) == [
        (t, "x", "a", 1),
        (t, "x", "b", 2),
        (t, "x", "a", 1),
        (t, "y", "c", 9),
        (t, "z", "d", 4),
    ]
    assert told(rows) == [
        "3: column `sku` is missing: there is no `items`",
        "4: column `sku`: a value is missing",
        "5: column `sku`: 'ab' is not a list",
        "6: column `sku`: {'sku': 'a', 'n': 1} is not a list",
        "7: element 1: column `sku`: 5 is not an object with a `sku`",
        "7: element 2: column `n` is missing",
        "7: element 3: column `n`: 10 is outside the declared range 1 to 9",
        "7: element 4: column `sku`: a value is missing",
        "8: element 1: column `shop`: 7 is not an object with a `id`",
        "8: element 2: column `shop`: 7 is not an object with a `id`",
    ]


def test_csv_has_no_lists(file) -> None:
    for header in (True, False):
        with pytest.raises(SourceError, match="is CSV, which has no lists such as `items`"):
            rows_of(ORDER, file("a.csv", "T,shop.id,items.sku,items.n\n"), header=header)


def test_reading_goes_on_within_a_list(file) -> None:
    line = '{"T": %d, "shop": {"id": "x"}, "items": [{"sku": "a", "n": 1}, {"sku": "b"}]}\n'
    path = file("a.jsonl", "".join(line % (10**15 + i) for i in range(3)))
    checker = Checker(compiled(ORDER), "order")
    every = list(read_file(Input("order", path), checker))
    assert len(every) == 6
    for skip in range(7):
        assert list(read_file(Input("order", path), checker, skip)) == every[skip:]


def test_rows_that_are_pushed() -> None:
    engine = Engine(compiled(ORDER))
    engine.push(
        "order",
        [
            {"T": 10**15, "shop": {"id": "x"}, "items": [{"sku": "a", "n": 1}, {"sku": "b"}]},
            {"T": datetime(2026, 11, 15), "shop": {"id": "x"}, "items": ()},
            (10**15, "y", "c", 3),
            {"T": 10**15, "shop": {"id": "x"}},
        ],
    )
    engine.end()
    assert engine.step()["got"] == [(10**15, "x", "a", 1), (10**15, "y", "c", 3)]
    assert [r.reason for r in engine.rejects] == [
        "element 2: column `n` is missing",
        "column `sku` is missing: there is no `items`",
    ]
    assert engine.report.streams["order"].rows == 4


def test_tables_with_lists() -> None:
    text = """
    stream s(T: int, x: string).
    table in_group("name" as g: string, member: string in "members[]").
    output p.
    p(T, G) <- s(T, X), in_group(G, X)."""
    groups = [{"name": "g", "members": ["a", "b"]}, {"name": "h", "members": ["b"]}]
    engine = Engine(compiled(text), tables={"in_group": groups})
    engine.push("s", [(1, "b"), (2, "c")])
    engine.end()
    assert engine.step()["p"] == [(1, "g"), (1, "h")]


def test_parquet(tmp_path: Path) -> None:
    moment = datetime(2026, 11, 15, 8, tzinfo=timezone.utc)
    for unit in ("s", "ms", "us", "ns"):
        times = pa.array([moment, moment + timedelta(seconds=1)], pa.timestamp(unit))
        meta = pa.StructArray.from_arrays([times, pa.array(["ann", None])], ["at", "user"])
        lists = pa.array([[moment, None], []], pa.large_list(pa.timestamp(unit)))
        path = tmp_path / f"{unit}.parquet"
        pq.write_table(pa.table({"meta": meta, "times": lists}), path)
        text = """stream s(T: time at "meta.at", u: string at "meta.user").
        output p. p(T, U) <- s(T, U)."""
        rows = rows_of(text, path)
        assert (good(rows), told(rows)) == (
            [(T0, "ann")],
            ["2: column `u`: a value is missing"],
        )
        text = """stream s(T: time at "meta.at", u: time in "times[]").
        output p. p(T, U) <- s(T, U)."""
        rows = rows_of(text, path)
        assert (good(rows), told(rows)) == ([(T0, T0)], ["1: column `u`: a value is missing"])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ('at "meta.nobody"', "has no column `meta.nobody`; its columns are 'T', 'meta', 'items'"),
        ('at "meta.user.name"', "has no fields in `meta.user`"),
        ('in "meta[]"', "has no list `meta`"),
        ('at "items.x"', "has no fields in `items`"),
        ('in "items[].x"', "has no fields in `items`"),
        ('at "Meta.uSER"', ""),
    ],
)
def test_a_parquet_file_without_such_a_column(tmp_path: Path, column: str, message: str) -> None:
    rows = [{"T": 1, "meta": {"user": "ann"}, "items": ["a"]}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    text = f"stream s(T: int, u: string {column}). output p. p(T, U) <- s(T, U)."
    if not message:
        assert rows_of(text, tmp_path / "a.parquet") == [(1, "ann")]
        return
    with pytest.raises(SourceError) as found:
        rows_of(text, tmp_path / "a.parquet")
    assert message in str(found.value)


def test_parquet_without_names(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [T0 // 1000], "y": ["ann"]}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"is read without the names in it, so it has no `meta"):
        rows_of(CLICK, tmp_path / "a.parquet", header=False)


@pytest.mark.parametrize("seed", range(60))
def test_random_data(tmp_path: Path, seed: int) -> None:
    """JSON Lines, Parquet and dicts mean what they naively mean."""
    rng = random.Random(seed)
    made = case(rng)
    for typed in (False, True):
        given = records(made, rng, 12, typed=typed)
        wanted = [row for record in given for row in made.meaning(record)]
        assert good(rows_of(made.text, write(made, given, tmp_path / "a.jsonl"))) == wanted
        engine = Engine(compiled(made.text))
        engine.push("s", given)
        engine.end()
        late = [r.row for r in engine.late]
        assert sorted(set(wanted)) == sorted({*engine.step()["p"], *late})
        if typed:
            path = write(made, given, tmp_path / "a.parquet")
            assert good(rows_of(made.text, path)) == wanted


def test_a_checkpoint_keeps_missing_values() -> None:
    rows = [(1, "a", NONE), (2, NONE, NONE), (3, NONE, 5), (4, "none", 6)]
    assert unpacked(packed(rows)) == rows


def test_missing_fields(file) -> None:
    """An empty field of CSV is missing, an empty text of JSON is a text."""
    text = """
    stream s(T: int, a: string?, b: int?, c: string).
    output p. p(T, A, B, C) <- s(T, A, B, C)."""
    rows = rows_of(text, file("a.csv", "T,a,b,c\n1,,,\n2,none,2,x\n3,a,soon,x\n"))
    assert good(rows) == [(1, NONE, NONE, ""), (2, "none", 2, "x")]
    assert told(rows) == ["4: column `b`: 'soon' is not a valid int"]
    lines = '{"T": 1, "a": "", "b": null, "c": "x"}\n{"T": 2, "c": "x"}\n{"T": 3, "a": "a"}\n'
    rows = rows_of(text, file("a.jsonl", lines))
    assert good(rows) == [(1, "", NONE, "x"), (2, NONE, NONE, "x")]
    assert told(rows) == ["3: column `c` is missing"]
