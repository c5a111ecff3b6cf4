"""Rows into Spark: good and bad are told apart exactly as the local engine tells them apart."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from streaming import compiled

from streamlog.runtime.ingest import Checker, Reject, paths_of
from streamlog.runtime.sources import Layout
from streamlog.spark import ingest
from streamlog.spark.records import ColumnsError, Part, Records
from streamlog.spark.text_lines import CsvLines
from streamlog.syntax.ast import INT64_MAX, INT64_MIN, Type
from streamlog.syntax.data_path import DataPath

TABLES = "\n".join(f"table t_{t.value}(v: {t.value})." for t in Type)
PROGRAM = compiled(
    f"""
{TABLES}
table ranged(n: int 0..1000, x: float 0.0..1.0, t: time, d: duration).
stream s(T: time, area: string).
output o, p.
o(T, A) <- s(T, A).
p(T, X) <- clock(T, X).
"""
)


def records(frame: DataFrame, pred: str) -> Records:
    return Records.of(frame, paths_of(PROGRAM, pred), pred)


def checked(frame: DataFrame, pred: str, types: tuple[Type, ...]) -> DataFrame:
    return ingest.checked(records(frame, pred), PROGRAM, pred, types)


def words(text: str) -> list[str]:
    return text.split()


NUMBERS = words("""
0 -0 +0 5 -5 +5 007 5.0 5. .5 . - + -- +-5 --5 1e3 1E3 1e 1e999 -1e999 1e-999 0x10 1_000 1,000 5L
4611686018427387904 4611686018427387905 -4611686018427387904 -4611686018427387905
5d 5f 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
0000000000000000000000005 00000000000000000000000005 000000000000000000000000000005
99999999999999999999999999999999 nan NaN inf -inf Infinity +infinity -Infinity 1e1000000
1.7976931348623157e308 1.7976931348623159e308 4.9e-324 0.1 0.30000000000000004 123456789.123456789
１２ ٣ 五 ¼ true True TRUE false yes YES no 1 t y on off null NULL None
""")
TIMES = words("""
2026-11-15T08:00:00Z 2026-11-15T08:00:00 2026-11-15T08:00Z 2026-11-15T08:00 2026-11-15
2026-11-15T08 2026-11 2026-11-15t08:00:00Z 2026-11-15T08:00:00z 2026-11-15T08:00:00.5Z
2026-11-15T08:00:00.123456Z 2026-11-15T08:00:00.1234567Z 2026-11-15T08:00:00.1234560Z
2026-11-15T08:00:00.000000000 2026-11-15T08:00:00.Z 2026-11-15T08:00:00+02:00
2026-11-15T08:00:00-0230 2026-11-15T08:00:00+24:00 2026-11-15T08:00:00+23:60
2026-11-15T08:00:00+02 2026-11-15T08:00:00.25+23:59 2026-11-15Z 2026-11-15T24:00:00Z
2026-11-15T23:60:00Z 2026-11-15T23:59:60Z 2026-11-15T99:99:99Z 2026-13-45T99:99:99Z 2026-02-29
2024-02-29 2100-02-29T00:00:00Z 2026-02-29T00:00:00Z 0000-01-01 0000-01-01T00:00:00Z 0001-01-01
0001-01-01T00:00:00+00:01 0001-01-01T00:00:00Z 9999-12-31T23:59:59Z 9999-12-31T23:59:59.999999Z
9999-12-31T23:59:59-00:01 10000-01-01 +2026-11-15T08:00:00Z 2026-11-15T8:00:00Z 2026-1-5
2026-11-5T08:00:0.0Z 2026-11-15T08:00:0NZ 2026-11-15T08:00:00UTC 2026-11-15T08:00:00GMT+1
2026-11-15T08:00:00[UTC] 1969-12-31T23:59:59.999999Z 1582-10-10 1582-10-04T00:00:00Z
1900-01-01T00:00:00Z 1794729600000000 -1 253402300799999999 253402300800000000 -62135596800000000
-62135596800000001 12:00:00 T12:00:00 noon now today tomorrow epoch ２０２６-11-15
""")
DURATIONS = words("""
5min 1.5h 0.5us 0.000001s 0.0000001s 1week 2d -3s +3s 1.ms .5s 5m 5Min 5 min 5us 1e3s
0.1234567890123456789week 9223372036854775807us 9223372036854775808us -9223372036854775808us
9999999999999999999week 15250284week 15250285week 99999999999999999999s 0s -0s 1h30min 1parsec
1.00000000000000000000s 0.0000000000000000001d
""")
SPACED = [
    "", " ", "\t", "\u00a0", "\u3000", " 5 ", "5\n", "\u20035", "5\u0085", "\x1f5", "\u200b5",
    "5\x00", "\x005", " 2026-11-15T08:00:00Z", "2026-11-15T08:00:00Z\u00a0",
    "2026-11-15 08:00:00Z", "2026-11-15  08:00:00", "2026-11-15T08:00:0 Z",
    "2026-11-15 8:00:00 Z", " true ", "\ufeff5", "5 min", " 5 min ", "5  min", "1 week\n",
    "just words", "it's", 'a "quote"', "back\\slash", "Zürich", "日本", "🚀", "tab\there",
    "x" * 100, "1" * 5000, "-" + "9" * 3000, "é" * 50, "`", "'", '"', "$1", "\\1",
]  # fmt: skip
TEXTS = list(dict.fromkeys([*NUMBERS, *TIMES, *DURATIONS, *SPACED]))


def mutated(count: int) -> list[str]:
    """Texts with a character changed, lost or added."""
    rng = random.Random(5)
    found = []
    for text in rng.choices([*NUMBERS, *TIMES, *DURATIONS], k=count):
        at = rng.randrange(len(text))
        sign = rng.choice("0123456789+-.:TZ eEx_smh")
        found.append(rng.choice([text[:at] + sign + text[at + 1 :], text[:at] + text[at + 1 :],
                                 text[:at] + sign + text[at:]]))  # fmt: skip
    return found


def same(local: Any, row: Any) -> bool:
    if isinstance(local, Reject):
        return (row.reason, row.text) == (local.reason, local.text)
    values = tuple(row)[: len(local)]
    return bool(local == values) and [*map(type, local)] == [*map(type, values)]


def agree(rows: Sequence[Any], locals_: Sequence[Any], given: Sequence[Any]) -> None:
    assert len(rows) == len(given)
    differing = [
        f"{value!r}: {local!r} but on Spark {row}"
        for value, local, row in zip(given, locals_, rows, strict=True)
        if not same(local, row)
    ]
    assert not differing, "\n".join(differing)


@pytest.mark.parametrize("type_", [t.value for t in Type])
def test_texts(spark: SparkSession, type_: str) -> None:
    texts = TEXTS + mutated(2_000)
    pred = f"t_{type_}"
    frame = spark.createDataFrame([(t,) for t in texts], "v string")
    rows = checked(frame, pred, (Type(type_),)).collect()
    agree(rows, [Checker(PROGRAM, pred).row((t,)) for t in texts], texts)


NOW = datetime(2026, 11, 15, 8, 0, 0, 250_000, tzinfo=timezone.utc)
HELD: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tinyint": (pa.int8(), [0, 5, -128]),
    "int": (pa.int32(), [0, 5, -5]),
    "bigint": (pa.int64(), [0, 5, INT64_MAX, INT64_MIN, 253402300800000000]),
    "double": (pa.float64(), [0.0, 5.0, 1.5, float("nan"), float("inf"), -1e300]),
    "float": (pa.float32(), [0.5, float("-inf")]),
    "decimal": (pa.decimal128(20, 2), [Decimal("5.00"), Decimal("123456789012345678.25")]),
    "boolean": (pa.bool_(), [True, False]),
    "string": (pa.string(), ["5", "1.5", "5min", "yes", "2026-11-15", "", "Zürich"]),
    "binary": (pa.binary(), [b"gate1", b"\xff", "Zürich".encode(), b""]),
    "timestamp": (pa.timestamp("us", tz="UTC"), [NOW, NOW.replace(year=1)]),
    "ntz": (pa.timestamp("us"), [NOW.replace(tzinfo=None), datetime(1, 1, 1)]),
    "date": (pa.date32(), [date(2026, 11, 15), date(1, 1, 1), date(1969, 12, 31)]),
    "interval": (pa.duration("us"), [timedelta(minutes=5), -timedelta(days=3, microseconds=1)]),
    "array": (pa.list_(pa.int64()), [[1, 2], []]),
}  # fmt: skip


@pytest.mark.parametrize("held", HELD)
def test_typed_columns(spark: SparkSession, held: str) -> None:
    arrow, values = HELD[held]
    values = [*values, None]
    ntz = "v timestamp_ntz" if held == "ntz" else None
    frame = spark.createDataFrame(pa.table({"v": pa.array(values, arrow)}), schema=ntz)
    if held == "float":
        values = pa.array(values, arrow).to_pylist()
    if held in ("timestamp", "ntz", "date", "interval"):  # numbers, as in Parquet files
        micros = pa.duration("us") if held == "interval" else pa.timestamp("us")
        values = pa.array(values, arrow).cast(micros).cast(pa.int64()).to_pylist()
    for type_ in Type:
        rows = checked(frame, f"t_{type_.value}", (type_,)).collect()
        local = [Checker(PROGRAM, f"t_{type_.value}").row((v,)) for v in values]
        agree(rows, local, values)


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_the_session_s_time_zone_does_not_matter(spark: SparkSession, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    assert before is not None
    texts = [t for t in TIMES if t[:4] in ("2026", "0001", "9999", "1969")]
    try:
        spark.conf.set("spark.sql.session.timeZone", zone)
        frame = spark.createDataFrame(pa.table({"v": texts}))
        rows = checked(frame, "t_time", (Type.TIME,)).collect()
        agree(rows, [Checker(PROGRAM, "t_time").row((t,)) for t in texts], texts)
        for held in "timestamp", "ntz", "date":
            test_typed_columns(spark, held)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def frame_of(spark: SparkSession, **columns: Any) -> DataFrame:
    return spark.createDataFrame(pa.table(columns))


def test_ranges(spark: SparkSession) -> None:
    texts = ["0", "1000", "1001", "-1", "x", "0.5", "1.0", "1.5", ""]
    given = [(a, b, "5", "5min") for a in texts for b in texts]
    frame = spark.createDataFrame(given, "n string, x string, t string, d string")
    types = (Type.INT, Type.FLOAT, Type.TIME, Type.DURATION)
    rows = checked(frame, "ranged", types).collect()
    agree(rows, [Checker(PROGRAM, "ranged").row(g) for g in given], given)


def test_a_clock_that_is_not_declared(spark: SparkSession) -> None:
    texts = TEXTS + mutated(300)
    types = (Type.INT, Type.STRING)
    frame = frame_of(spark, T=texts, X=["a"] * len(texts))
    for type_ in Type.INT, Type.TIME:
        rows = checked(frame, "clock", (type_, types[1])).collect()
        local = [Checker(PROGRAM, "clock").row((t, "a")) for t in texts]
        agree(rows, local, texts)
    moments = frame_of(spark, T=pa.array([NOW], pa.timestamp("us", tz="UTC")), X=["a"])
    assert checked(moments, "clock", types).first()["c0"] == 1794729600250000  # type: ignore[index]
    broken = frame_of(spark, T=pa.array([1.5]), X=["a"])
    reason = checked(broken, "clock", types).first()["reason"]  # type: ignore[index]
    assert reason == "column `T`: 1.5 is not a valid int"


def test_columns_by_name_or_position(spark: SparkSession) -> None:
    types = (Type.TIME, Type.STRING)

    def first(**columns: Any) -> Any:
        return checked(frame_of(spark, **columns), "s", types).first()

    assert first(area=["a"], other=[1], T=[5])[:2] == (5, "a")
    assert first(AREA=["a"], t=[5])[:2] == (5, "a")
    assert first(AREA=["b"], area=["a"], T=[5])[:2] == (5, "a")
    assert first(one=[5], two=["a"])[:2] == (5, "a")
    with pytest.raises(ColumnsError, match="the rows for `s` lack `area`; their columns are `T`"):
        first(T=[5], two=["a"])
    with pytest.raises(ColumnsError, match="lack `T` and `area`"):
        first(one=[5], two=["a"], three=[1])
    with pytest.raises(ColumnsError, match="several columns `area`"):
        first(AREA=["b"], Area=["a"], T=[5])


def test_a_bad_row_as_it_came(spark: SparkSession) -> None:
    frame = frame_of(spark, area=['"a"'], **{"a b.c": [None]}, T=["noon"])
    row = checked(frame, "s", (Type.TIME, Type.STRING)).first()
    assert row is not None
    assert row.text == """('noon', '"a"')"""
    bad = spark.sql("select 1L as T, cast(x'ff41' as string) as area")
    row = checked(bad, "s", (Type.TIME, Type.STRING)).first()
    assert row is not None
    assert row.reason == r"column `area`: '\udcffA' is not UTF-8"
    assert row.text == r"(1, '\udcffA')"


STRANGE = """
SELECT timestamp_micros(253402300800000000) AS a, make_interval(0, 1) AS b,
    make_ym_interval(1, 2) AS c, parse_json('{"x": [1, null]}') AS d, parse_json('5') AS e,
    null AS f, map('k', 1) AS g, named_struct('n', 1) AS h
"""


def test_values_that_python_does_not_have(spark: SparkSession) -> None:
    """Of whatever type a column is, no row of it is lost."""
    row = spark.sql(STRANGE)
    good: dict[str, list[str]] = {name: [] for name in row.columns}
    for name in row.columns:
        for type_ in Type:
            frame = row.selectExpr(f"{name} AS v")
            (found,) = checked(frame, f"t_{type_.value}", (type_,)).collect()
            assert (found.c0 is None) == (found.reason is not None) == (found.text is not None)
            good[name] += [type_.value] * (found.reason is None)
    whole = ["int", "float", "duration"]
    read = {"a": {*whole}, "b": {"string"}, "c": {"string"}, "e": {*whole, "time"}}
    assert {name: {*types} for name, types in good.items() if types} == read


def told(frame: DataFrame, text: bool = False) -> dict[int, Type]:
    given = records(frame, "clock")
    if text:
        lines = frame.selectExpr("CONCAT_WS(',', *) AS value")
        form = CsvLines(Layout.of(None, [DataPath((name,)) for name in frame.columns], ""), ",")
        given = Records((Part(lines, form),))
    return ingest.data_types(given, PROGRAM, "clock")


def test_what_a_schema_tells(spark: SparkSession) -> None:
    for held, type_ in {
        "int": Type.INT, "double": Type.FLOAT, "decimal": Type.FLOAT, "string": Type.STRING,
        "boolean": Type.BOOL, "timestamp": Type.TIME, "date": Type.TIME, "interval": Type.DURATION,
    }.items():  # fmt: skip
        arrow, values = HELD[held]
        frame = frame_of(spark, T=pa.array([1] * len(values)), X=pa.array(values, arrow))
        assert told(frame) == {0: Type.INT, 1: type_}, held
    moments = frame_of(spark, T=pa.array([NOW], pa.timestamp("us", tz="UTC")), X=[1])
    assert told(moments) == {0: Type.TIME, 1: Type.INT}
    declared = records(frame_of(spark, T=[1], area=["a"]), "s")
    assert ingest.data_types(declared, PROGRAM, "s") == {}


def test_what_texts_tell(spark: SparkSession) -> None:
    for times, values, types in [
        (["1", "2"], ["1", ""], (Type.INT, Type.INT)),
        (["1", "2026-11-15"], ["1", "2.5"], (Type.TIME, Type.FLOAT)),
        (["1", "2"], ["1", "red"], (Type.INT, Type.STRING)),
        (["1", "noon"], ["1", "red"], (Type.INT, Type.INT)),  # a row that is rejected tells nothing
        (["1", "2"], ['"1"', "2"], (Type.INT, Type.INT)),
    ]:
        found = told(frame_of(spark, T=times, X=values), text=True)
        assert found == dict(enumerate(types))
