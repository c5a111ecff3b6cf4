"""Which rows are believed, and what is said about the others."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from streaming import compiled

from streamlog.runtime.ingest import Checker, Reject
from streamlog.syntax.ast import Type

MICROSECOND_0800 = 1794729600000000  # 2026-11-15T08:00:00Z


def one(type_: str) -> Checker:
    """A checker for a stream with a single column beside its timestamp."""
    return Checker(compiled(f"stream s(T: int, x: {type_}).\noutput p.\np(T, X) <- s(T, X)."), "s")


GOOD = [
    ("int", 3, 3),
    ("int", "3", 3),
    ("int", " -3 ", -3),
    ("int", "+7", 7),
    ("int", 2**63 - 1, 2**63 - 1),
    ("int", "-9223372036854775808", -(2**63)),
    ("float", 1.5, 1.5),
    ("float", 3, 3.0),
    ("float", "3", 3.0),
    ("float", "1e3", 1000.0),
    ("float", ".5", 0.5),
    ("float", Decimal("2.5"), 2.5),
    ("string", "gate1", "gate1"),
    ("string", "", ""),
    ("string", "Zürich", "Zürich"),
    ("string", b"Z\xc3\xbcrich", "Zürich"),
    ("bool", True, True),
    ("bool", "TRUE", True),
    ("bool", "no", False),
    ("bool", "0", False),
    ("time", MICROSECOND_0800, MICROSECOND_0800),
    ("time", str(MICROSECOND_0800), MICROSECOND_0800),
    ("time", "2026-11-15T08:00:00Z", MICROSECOND_0800),
    ("time", "2026-11-15 08:00:00", MICROSECOND_0800),
    ("time", "2026-11-15T08:00", MICROSECOND_0800),
    ("time", "2026-11-15T09:30:00+01:30", MICROSECOND_0800),
    ("time", "2026-11-15T03:00:00-0500", MICROSECOND_0800),
    ("time", "2026-11-15T08:00:00.25Z", MICROSECOND_0800 + 250_000),
    ("time", "2026-11-15T08:00:00.000001Z", MICROSECOND_0800 + 1),
    ("time", "2026-11-15T08:00:00.000001000Z", MICROSECOND_0800 + 1),
    ("time", "2026-11-15", MICROSECOND_0800 - 8 * 3_600_000_000),
    ("time", datetime(2026, 11, 15, 8), MICROSECOND_0800),
    ("time", datetime(2026, 11, 15, 8, tzinfo=timezone.utc), MICROSECOND_0800),
    ("time", date(2026, 11, 15), MICROSECOND_0800 - 8 * 3_600_000_000),
    ("time", "0001-01-01", -62135596800000000),
    ("duration", 5, 5),
    ("duration", "5min", 300_000_000),
    ("duration", "1.5s", 1_500_000),
    ("duration", "-2h", -7_200_000_000),
    ("duration", timedelta(seconds=2), 2_000_000),
]

BAD = [
    ("int", 3.0, "3.0 is not a valid int"),
    ("int", "3.0", "'3.0' is not a valid int"),
    ("int", "1_000", "'1_000' is not a valid int"),
    ("int", "٣", "is not a valid int"),
    ("int", True, "True is not a valid int"),
    ("int", None, "a value is missing"),
    ("int", "", "a value is missing"),
    ("int", "  ", "a value is missing"),
    ("int", 2**63, "does not fit into 64 bits"),
    ("int", "9223372036854775808", "does not fit into 64 bits"),
    ("int", "9" * 100, "does not fit into 64 bits"),
    ("int", [1], "[1] is not a valid int"),
    ("float", float("nan"), "is not a finite number"),
    ("float", "inf", "is not a finite number"),
    ("float", "1e999", "is not a finite number"),
    ("float", 10**400, "is not a finite number"),
    ("float", "1,5", "'1,5' is not a valid float"),
    ("float", "0x1p3", "is not a valid float"),
    ("float", True, "True is not a valid float"),
    ("float", None, "a value is missing"),
    ("string", 5, "5 is not a valid string"),
    ("string", None, "a value is missing"),
    ("string", b"\xff", "is not UTF-8"),
    ("string", "a\udcff", "is not UTF-8"),
    ("string", "a\ud800", "has half a character"),
    ("bool", 1, "1 is not a valid bool"),
    ("bool", "maybe", "'maybe' is not a valid bool"),
    ("bool", "", "a value is missing"),
    ("time", "2026-13-01", "there is no such time as '2026-13-01'"),
    ("time", "2026-02-30T00:00:00Z", "there is no such time"),
    ("time", "2026-11-15T24:00:00Z", "there is no such time"),
    ("time", "2026-11-15T08:00:60Z", "there is no such time"),
    ("time", "2026-11-15T08:00:00+25:00", "there is no such offset"),
    ("time", "2026-11-15T08:00:00.0000001Z", "is finer than a microsecond"),
    ("time", "yesterday", "'yesterday' is not a valid time"),
    ("time", "20261115", None),
    ("time", 10**18, "outside the years 1 to 9999"),
    ("time", -(10**17), "outside the years 1 to 9999"),
    ("time", "99999999999999999999", "outside the years 1 to 9999"),
    ("time", "9999-12-31T23:00:00-05:00", "outside the years 1 to 9999"),
    ("time", "0000-00-00", "there is no such time"),
    ("time", 1.5, "1.5 is not a valid time"),
    ("time", None, "a value is missing"),
    ("duration", "5 parsecs", "'parsecs' is not a unit of time"),
    ("duration", "0.1us", "is not a whole number of microseconds"),
    ("duration", "soon", "'soon' is not a valid duration"),
    ("duration", 1.5, "1.5 is not a valid duration"),
    ("duration", "99999999999999999week", "does not fit into 64 bits"),
]


@pytest.mark.parametrize(("type_", "raw", "value"), GOOD)
def test_good_values(type_: str, raw: Any, value: Any) -> None:
    row = one(type_).row((1, raw))
    assert row == (1, value)
    assert type(row[1]) is type(value)
    if isinstance(raw, str):
        assert one(type_).text(["1", raw]) == (1, value)


@pytest.mark.parametrize(("type_", "raw", "reason"), BAD)
def test_bad_values(type_: str, raw: Any, reason: str | None) -> None:
    ways = [one(type_).row((1, raw))]
    if isinstance(raw, str):
        ways.append(one(type_).text(["1", raw]))
    for found in ways:
        if reason is None:  # a text of digits is a number of microseconds
            assert found == (1, int(raw))
        else:
            assert isinstance(found, Reject)
            assert found.reason.startswith("column `x`: ")
            assert reason in found.reason


def test_a_reason_is_short_and_printable() -> None:
    found = one("int").row((1, "\x1b[31m" + "x" * 1000))
    assert isinstance(found, Reject)
    assert len(found.reason) < 80
    assert found.reason.isprintable()


def test_the_wrong_number_of_values() -> None:
    for row in ((1,), (1, 2, 3), (), [1]):
        found = one("int").row(row)
        assert isinstance(found, Reject)
        assert found.reason == f"{len(row)} values where 2 are wanted"
    assert isinstance(one("int").text(["1"]), Reject)


@pytest.mark.parametrize("raw", [None, "a text", b"bytes", 5, {1, 2}])
def test_what_is_no_row(raw: object) -> None:
    found = one("int").row(raw)
    assert isinstance(found, Reject)
    assert found.reason.endswith("is not a row")


def test_rows_by_name() -> None:
    check = one("int").row
    assert check({"T": 1, "x": 2}) == (1, 2)
    assert check({"t": 1, "X": 2, "more": 3}) == (1, 2)
    missing = check({"T": 1})
    assert isinstance(missing, Reject)
    assert missing.reason == "column `x` is missing"
    ambiguous = check({"T": 1, "X": 2, "x ": 3, "xx": 1})
    assert ambiguous == (1, 2)


def test_declared_ranges() -> None:
    check = one("int 0..100")
    assert check.row((1, 100)) == (1, 100)
    for raw in ((1, 101), (1, -1)):
        found = check.row(raw)
        assert isinstance(found, Reject)
        assert "is outside the declared range 0 to 100" in found.reason
    assert isinstance(check.text(["1", "101"]), Reject)
    lengths = one("duration 1s..2s")
    assert isinstance(lengths.row((1, "3s")), Reject)
    assert "3s is outside the declared range 1s to 2s" in lengths.row((1, "3s")).reason


def test_types_that_nothing_settles() -> None:
    check = Checker(compiled("output p.\np(T, X) <- s(T, X)."), "s")
    for value in (1, 1.5, "red", True):
        row = check.row((1, value))
        assert row == (1, value)
        assert type(row[1]) is type(value)
    assert check.row((1, "7")) == (1, "7")
    assert check.text(["1", "7"]) == (1, 7)
    assert check.text(["1", "7.5"]) == (1, 7.5)
    assert check.text(["1", "nan"]) == (1, "nan")
    assert check.text(["1", "red"]) == (1, "red")
    assert isinstance(check.text(["1", "9" * 20]), Reject)
    for bad in (None, float("inf"), [1], object()):
        assert isinstance(check.row((1, bad)), Reject)


def test_types_that_are_settled_elsewhere() -> None:
    program = compiled("output p.\np(T, X) <- s(T, X).")
    check = Checker(program, "s", (Type.INT, Type.FLOAT))
    assert check.text(["1", "7"]) == (1, 7.0)
    assert check.text(["2026-11-15T08:00:00Z", "7"]) == (MICROSECOND_0800, 7.0)
    reject = check.text(["1", "red"])
    assert isinstance(reject, Reject)
    assert reject.reason == "column `X`: 'red' is not a valid float"
    assert reject.text == "['1', 'red']"


def test_a_clock_that_nothing_settles() -> None:
    check = Checker(compiled("output p.\np(T, X) <- s(T, X)."), "s")
    assert check.row((5, "a")) == (5, "a")
    assert not check.saw_time
    assert check.text(["2026-11-15T08:00:00Z", "a"]) == (MICROSECOND_0800, "a")
    assert check.saw_time
    for bad in ("soon", 1.5, None, True, ""):
        assert isinstance(check.row((bad, "a")), Reject)


def test_rows_in_order_are_not_copied() -> None:
    row = (1, "gate1")
    assert one("string").row(row) is row
