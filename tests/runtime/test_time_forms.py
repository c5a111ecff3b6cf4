"""Times as data write them: units, formats, zones; and numbers that may count anything."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq
from streaming import compiled

from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.runtime.ingest import Checker, Reject
from streamlog.runtime.sources import Input, read
from streamlog.runtime.values import iso
from streamlog.syntax.literals import EPOCH

T0 = 1761955200_000_000  # 2025-11-01T00:00:00Z
BERLIN = 'time("%d.%m.%Y %H:%M:%S", "Europe/Berlin")'
BERLIN_FIRST, BERLIN_LAST = (BERLIN.replace(")", f", {word})") for word in ("first", "last"))
RULE = "output p.\np(T, X) <- s(T, X)."


def checker(form: str) -> Checker:
    return Checker(compiled(f"stream s(T: {form}, x: int).\n{RULE}"), "s")


def both(form: str, value: Any) -> list[Any]:
    """The row by its Python value, and by its text."""
    found = [checker(form).row((value, 1)), checker(form).row({"T": value, "x": 1})]
    if isinstance(value, str):
        found.append(checker(form).text([value, "1"]))
    return found


GOOD = [
    ("time(s)", 1761955200, T0),
    ("time(s)", "1761955200", T0),
    ("time(s)", " 1761955200.25 ", T0 + 250_000),
    ("time(s)", 1761955200.123456, T0 + 123_456),
    ("time(s)", Decimal("1761955200.000001"), T0 + 1),
    ("time(s)", -1, -1_000_000),
    ("time(s)", "-0.5", -500_000),
    ("time(s)", "2025-11-01T00:00:00Z", T0),
    ("time(s)", datetime(2025, 11, 1), T0),
    ("time(ms)", 1761955200000, T0),
    ("time(ms)", "1761955200000.001", T0 + 1),
    ("time(us)", T0, T0),
    ("time(us)", 5, 5),
    ("time(ns)", T0 * 1000, T0),
    ("time(ns)", str(T0 * 1000 + 1000), T0 + 1),
    (BERLIN, "01.11.2025 01:00:00", T0),
    (BERLIN, "01.07.2026 12:00:00", 1782900000_000_000),
    (BERLIN, " 1.7.2026 12:00:00", 1782900000_000_000),
    (BERLIN, datetime(2025, 11, 1, tzinfo=timezone.utc), T0),
    # The clocks go back from 3 to 2 on this day, and forward from 2 to 3 on that one.
    (BERLIN, "25.10.2026 01:59:59", 1792886399_000_000),
    (BERLIN, "25.10.2026 03:00:00", 1792893600_000_000),
    (BERLIN, "29.03.2026 01:59:59", 1774745999_000_000),
    (BERLIN, "29.03.2026 03:00:00", 1774746000_000_000),
    (BERLIN_FIRST, "25.10.2026 02:30:00", 1792888200_000_000),
    (BERLIN_LAST, "25.10.2026 02:30:00", 1792891800_000_000),
    (BERLIN_LAST, "25.10.2026 03:00:00", 1792893600_000_000),
    ('time("%Y-%m-%d %I:%M %p")', "2025-11-01 12:00 AM", T0),
    ('time("%Y %j %H%z")', "2025 305 01+0100", T0),
    ('time("%b %d %Y, %H:%M:%S.%f")', "Nov 01 2025, 00:00:00.5", T0 + 500_000),
]

BAD = [
    ("time(s)", 1761955200.1234567, "1761955200.1234567 s is finer than a microsecond"),
    ("time(s)", "1761955200.1234567", "1761955200.1234567 s is finer than a microsecond"),
    ("time(s)", 1761955200000000, "1761955200000000 s lies outside the years 1 to 9999"),
    ("time(s)", "9" * 60, "lies outside the years 1 to 9999"),
    ("time(s)", True, "True is not a valid time"),
    ("time(s)", float("nan"), "nan is not a valid time"),
    ("time(s)", Decimal("Infinity"), "is not a valid time"),
    ("time(s)", None, "a value is missing"),
    ("time(s)", "", "a value is missing"),
    ("time(s)", "soon", "'soon' is not a valid time"),
    ("time(s)", "1e9", "'1e9' is not a valid time"),
    ("time(us)", "0.5", "0.5 us is finer than a microsecond"),
    ("time(ns)", T0 * 1000 + 1, f"{T0 * 1000 + 1} ns is finer than a microsecond"),
    (BERLIN, "25.10.2026 02:30:00", "occurs twice in Europe/Berlin: 2026-10-25T00:30:00Z or 2026-"),
    (BERLIN, "29.03.2026 02:30:00", "the clocks of Europe/Berlin skip it"),
    (BERLIN_LAST, "29.03.2026 02:30:00", "the clocks of Europe/Berlin skip it"),
    (BERLIN, "31.02.2026 00:00:00", "is not a time in the format"),
    (BERLIN, "2025-11-01T00:00:00Z", "is not a time in the format"),
    (BERLIN, 1761955200, '1761955200 is not a time in the format "%d.%m.%Y %H:%M:%S"'),
    (BERLIN, "", "a value is missing"),
    (BERLIN, None, "a value is missing"),
    ('time("%Y-%m-%d %H:%M:%S.%f")', "2025-11-01 00:00:00.1234567", "is not a time in the format"),
    ('time("%Y-%m-%d %H%z")', "9999-12-31 23-0100", "lies outside the years 1 to 9999"),
]


@pytest.mark.parametrize(("form", "value", "time"), GOOD)
def test_good_times(form: str, value: Any, time: int) -> None:
    assert {*both(form, value)} == {(time, 1)}


@pytest.mark.parametrize(("form", "value", "reason"), BAD)
def test_bad_times(form: str, value: Any, reason: str) -> None:
    for found in both(form, value):
        assert isinstance(found, Reject), found
        assert found.reason.startswith("column `T`: ")
        assert reason in found.reason


ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu"]


@given(st.integers(0, 4_000_000_000), st.sampled_from(ZONES))
def test_every_local_time_is_read_as_it_was_or_not_at_all(second: int, zone: str) -> None:
    moment = EPOCH + timedelta(seconds=second)
    local = moment.astimezone(ZoneInfo(zone))
    found = checker(f'time("%Y-%m-%d %H:%M:%S", "{zone}")').text(
        [f"{local:%Y-%m-%d %H:%M:%S}", "1"]
    )
    other = local.replace(fold=1 - local.fold).astimezone(timezone.utc)
    if isinstance(found, Reject):
        assert other != moment
        assert "occurs twice" in found.reason
    else:
        assert found == (second * 1_000_000, 1)
        assert other == moment


def test_a_unit_is_for_the_data_alone() -> None:
    """Facts, tests and a second check have times of the language."""
    text = f"stream s(T: time(s), x: int).\n{RULE}\ns(@2025-11-01T00:00:00Z, 1)."
    engine = Engine(compiled(text), Kernel)
    engine.push("s", [(1761955201, 2), {"T": "1761955202", "x": 3}])
    engine.take("s", [(T0 + 3_000_000, 4)])
    engine.end()
    assert engine.step() == {"p": [(T0 + n * 1_000_000, n + 1) for n in range(4)]}
    assert engine.doubts == []


def test_a_range_is_of_times() -> None:
    form = checker("time(ms) @2025-01-01..@2025-12-31")
    assert form.text(["1761955200000", "1"]) == (T0, 1)
    late = form.text(["1861955200000", "1"])
    assert isinstance(late, Reject)
    assert "2029-01-01T09:46:40Z is outside the declared range" in late.reason


# --------------------------------------------------------------------------------- doubts

SECONDS = (
    "`s`: column `T` has the time 1761955200, read as microseconds, which is "
    "1970-01-01T00:29:21.9552Z; if it counts seconds, declare `T: time(s)`"
)


@pytest.mark.parametrize("value", [1761955200, "1761955200", " 1761955200"])
def test_a_number_that_is_hardly_microseconds(value: Any) -> None:
    form = checker("time")
    for _ in range(2):
        assert form.row((value, 1)) == (1761955200, 1)
        assert form.row({"T": value, "x": 1}) == (1761955200, 1)
    assert form.doubts == [SECONDS]
    if isinstance(value, str):
        form = checker("time")
        assert form.text([value, "1"]) == (1761955200, 1)
        assert form.doubts == [SECONDS]


@pytest.mark.parametrize(
    ("number", "likely"),
    [
        (1761955200, "if it counts seconds, declare `T: time(s)`"),
        (1761955200000, "if it counts milliseconds, declare `T: time(ms)`"),
        (5, "if it counts something else, declare `T: time(s)`"),
    ],
)
def test_the_likely_unit(number: int, likely: str) -> None:
    form = checker("time")
    form.row((number, 1))
    assert [likely in text for text in form.doubts] == [True]


def test_nanoseconds_are_rejected_with_the_likely_unit() -> None:
    for found in both("time", T0 * 1000):
        assert isinstance(found, Reject)
        assert found.reason.endswith("; if it counts nanoseconds, declare `time(ns)`")


@pytest.mark.parametrize(
    "value", ["1066-10-14", "1970-01-01T00:00:00Z", datetime(1970, 1, 1), T0, str(T0)]
)
def test_what_is_not_doubted(value: Any) -> None:
    form = checker("time")
    form.row((value, 1))
    if isinstance(value, str):
        form.text([value, "1"])
    assert form.doubts == []


# -------------------------------------------------------------------------------- Parquet


def stored(tmp_path: Path, table: pa.Table, form: str = "time") -> list[Any]:
    pq.write_table(table, tmp_path / "s.parquet")
    found = checker(form)
    rows = [
        r.reason if isinstance(r, Reject) else r
        for r in read(Input("s", tmp_path / "s.parquet"), found)
    ]
    assert found.doubts == []
    return rows


@pytest.mark.parametrize("form", ["time", "time(s)", "time(ns)", BERLIN])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_parquet_have_their_own_unit(tmp_path: Path, unit: str, form: str) -> None:
    times = pa.array([datetime(2025, 11, 1), datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp(unit))
    assert stored(tmp_path, pa.table({"T": times, "x": [1, 2]}), form) == [(T0, 1), (1_000_000, 2)]


def test_pandas(tmp_path: Path) -> None:
    frame = pd.DataFrame({"T": pd.to_datetime([T0 * 1000, T0 * 1000 + 1]), "x": [1, 2]})
    frame.to_parquet(tmp_path / "s.parquet")
    finer = f"column `T`: the time {T0 * 1000 + 1} ns is finer than a microsecond"
    rows = list(read(Input("s", tmp_path / "s.parquet"), checker("time")))
    assert rows[0] == (T0, 1)
    assert isinstance(rows[1], Reject)
    assert rows[1].reason == finer
    good, bad = (checker("time").row((stamp, 1)) for stamp in frame["T"])
    assert good == (T0, 1)
    assert isinstance(bad, Reject)
    assert "is finer than a microsecond" in bad.reason


def test_numbers_of_parquet_have_the_column_s(tmp_path: Path) -> None:
    table = pa.table({"T": [1761955200, 1761955201], "x": [1, 2]})
    assert stored(tmp_path, table, "time(s)") == [(T0, 1), (T0 + 1_000_000, 2)]
    assert iso(T0) == "2025-11-01T00:00:00Z"
