"""Functions of values, against plain ones and at their edges."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.failure import ValueFailure
from oracle.more_functions import MORE
from streaming import compiled

import streamlog
from streamlog.analysis.builtins import FUNCTIONS
from streamlog.analysis.calendar import TRUNCATIONS, width
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.runtime.functions import EvaluationError
from streamlog.runtime.scalars import SCALARS
from streamlog.syntax import time_forms
from streamlog.syntax.ast import INT64_MAX, INT64_MIN
from streamlog.syntax.time_forms import zone_of

NEW_YEAR = 1767225600_000_000  # 2026-01-01T00:00:00Z
HOUR = 3_600_000_000

CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("int", (2.7,), 2),
    ("int", (-2.7,), -2),
    ("int", (" 12 ",), 12),
    ("int", (True,), 1),
    ("int", ("x",), None),
    ("int", ("1.5",), None),
    ("int", (1e300,), None),
    ("float", ("1e3",), 1000.0),
    ("float", (2,), 2.0),
    ("float", ("inf",), None),
    ("string", (1.5,), "1.5"),
    ("string", (False,), "false"),
    ("string", (-3,), "-3"),
    ("time", ("2026-01-01T00:00:00Z",), NEW_YEAR),
    ("time", ("2026-01-01",), NEW_YEAR),
    ("time", (NEW_YEAR,), NEW_YEAR),
    ("time", ("soon",), None),
    ("duration", ("5min",), 300_000_000),
    ("duration", ("5 parsecs",), None),
    ("round", (2.5,), 3),
    ("round", (-2.5,), -3),
    ("round", (1e300,), None),
    ("round", (2.675, 2), 2.68),
    ("round", (1234.5, -2), 1200.0),
    ("round", (1e300, 5), 1e300),
    ("round", (5e-324, 400), 5e-324),
    ("sqrt", (2,), 2**0.5),
    ("sqrt", (-1,), None),
    ("log", (1.0,), 0.0),
    ("log", (0,), None),
    ("exp", (0,), 1.0),
    ("exp", (1000.0,), None),
    ("pow", (2, 10), 1024.0),
    ("pow", (0.0, -1), None),
    ("pow", (-8.0, 0.5), None),
    ("pow", (10.0, 400), None),
    ("split", ("a,b,c", ",", 1), "b"),
    ("split", ("a,b,c", ",", 3), ""),
    ("split", ("a,b,c", ",", -1), ""),
    ("split", ("a", "", 0), None),
    ("trim", (" \ta b\n",), "a b"),
    ("replace", ("banana", "an", "X"), "bXXa"),
    ("replace", ("a", "", "X"), None),
    ("regex_extract", ("Zürich 8001", "(\\pL+) ([0-9]+)", 2), "8001"),
    ("regex_extract", ("Zürich 8001", "\\pL+"), "Zürich"),
    ("regex_extract", ("x", "(a)|x", 1), ""),
    ("regex_extract", ("x", "a"), ""),
    ("regex_extract", ("x", "x", 1), None),
    ("regex_extract", ("x", "("), None),
    ("json", ('{"a": [1, {"b": "q"}]}', "a[1].b"), "q"),
    ("json", ('{"a": [1, {"b": "q"}]}', "$.a"), '[1,{"b":"q"}]'),
    ("json", ('{"a": null}', "a"), ""),
    ("json", ('{"a": 1.50}', "b.c"), ""),
    ("json", ("[true]", "[0]"), "true"),
    ("json", ("{", "a"), None),
    ("hash", ("",), -2039914840885289964),
    ("format", (NEW_YEAR, "%d.%m.%Y %H:%M", "Europe/Berlin"), "01.01.2026 01:00"),
    ("year", (NEW_YEAR, "America/New_York"), 2025),
    ("month", (NEW_YEAR,), 1),
    ("day", (NEW_YEAR, "America/New_York"), 31),
    ("hour", (NEW_YEAR, "Asia/Kathmandu"), 5),
    ("minute", (NEW_YEAR, "Asia/Kathmandu"), 45),
    ("weekday", (NEW_YEAR,), 4),
    ("date", (NEW_YEAR, "America/New_York"), "2025-12-31"),
    ("date", (NEW_YEAR, "Atlantis"), None),
    ("hour", (INT64_MAX,), None),
    ("date_trunc", ("week", NEW_YEAR), NEW_YEAR - 3 * 24 * HOUR),
    ("date_trunc", ("day", NEW_YEAR, "Europe/Berlin"), NEW_YEAR - HOUR),
    ("date_trunc", ("fortnight", NEW_YEAR), None),
    # The clocks show 02:30 twice: each has an hour of its own, and both are of one day.
    ("date_trunc", ("hour", 1792888200_000_000, "Europe/Berlin"), 1792886400_000_000),
    ("date_trunc", ("hour", 1792891800_000_000, "Europe/Berlin"), 1792890000_000_000),
    ("date_trunc", ("day", 1792891800_000_000, "Europe/Berlin"), 1792879200_000_000),
    # There is no midnight on this day: it begins at one.
    ("date_trunc", ("day", 1788667200_000_000, "America/Santiago"), 1788667200_000_000),
]


@pytest.mark.parametrize(("name", "args", "expected"), CASES)
def test_results(name: str, args: tuple[Any, ...], expected: Any) -> None:
    if expected is None:
        with pytest.raises(EvaluationError):
            SCALARS[name](*args)
    else:
        found = SCALARS[name](*args)
        assert found == expected
        assert type(found) is type(expected)


def test_every_function_is_tested_and_has_an_oracle() -> None:
    named = {name for name, _, _ in CASES}
    assert named == SCALARS.keys()
    assert SCALARS.keys() - MORE.keys() == {"duration"}
    assert SCALARS.keys() <= FUNCTIONS.keys()


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["1", "-2", "1.5", "1e5", " 7 ", "a,b", '{"a":{"b":[1,"x"]}}', "[1]", "x=1"]
)
floats = st.floats(allow_nan=False, allow_infinity=False)
times = st.integers(0, 4_000_000_000).map(lambda second: second * 1_000_000 + 1)
zones = st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"])
DRAWN: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    "int": (texts | floats | st.booleans(),),
    "float": (texts | st.integers(INT64_MIN, INT64_MAX),),
    "string": (floats | st.integers() | st.booleans(),),
    "round": (floats, st.integers(-5, 20)),
    "sqrt": (floats,),
    "exp": (st.floats(-800, 800),),
    "log": (floats,),
    "pow": (st.floats(-9, 9), st.floats(-9, 9)),
    "split": (texts, texts, st.integers(-1, 3)),
    "trim": (texts,),
    "replace": (texts, texts, texts),
    "regex_extract": (texts, st.sampled_from(["[a-z]+", "(.)(.)", "(", "x*"]), st.integers(-1, 3)),
    "json": (texts, st.sampled_from(["a", "a.b", "a.b[1]", "[0]", "$.a.b[0]"])),
    "hash": (texts,),
    "format": (times, st.sampled_from(["%d.%m.%Y", "%H:%M:%S %z", "%A"]), zones),
    **dict.fromkeys(("year", "month", "day", "hour", "minute", "weekday", "date"), (times, zones)),
    "date_trunc": (st.sampled_from([u for u in TRUNCATIONS if u != "year"]), times, zones),
}


@pytest.mark.parametrize("name", DRAWN)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_as_the_oracle_has_it(name: str, data: st.DataObject) -> None:
    args = tuple(data.draw(strategy) for strategy in DRAWN[name])
    try:
        expected = MORE[name](*args)
        if isinstance(expected, int) and not INT64_MIN <= expected <= INT64_MAX:
            raise ValueFailure
        if isinstance(expected, float) and expected in (float("inf"), float("-inf")):
            raise ValueFailure
    except (ValueFailure, OverflowError):
        with pytest.raises(EvaluationError):
            SCALARS[name](*args)
        return
    found = SCALARS[name](*args)
    assert found == expected
    assert type(found) is type(expected)


ODD_ZONES = ("UTC", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Monrovia")


@given(
    st.sampled_from([*TRUNCATIONS]), st.integers(-(10**16), 4 * 10**15), st.sampled_from(ODD_ZONES)
)
@settings(max_examples=500, deadline=None)
def test_a_part_of_the_calendar_is_not_longer_than_the_analysis_says(
    unit: str, at: int, zone: str
) -> None:
    begin = SCALARS["date_trunc"](unit, at, zone)
    longest = width(unit, zone)
    assert longest is not None
    assert begin <= at < begin + longest
    assert SCALARS["date_trunc"](unit, begin, zone) == begin


@pytest.mark.parametrize(
    ("unit", "zone", "hours"),
    [
        ("hour", "UTC", 1),
        ("hour", "Europe/Berlin", 1),
        ("hour", "America/New_York", 1 + 238 / 3600),  # the clocks were set back so far in 1883
        ("hour", "Asia/Tehran", 1.5),
        ("minute", "Europe/Berlin", 1 / 60),
        ("day", "UTC", 24),
        ("day", "Europe/Berlin", 25),
        ("week", "UTC", 168),
    ],
)
def test_the_bound_is_the_one_by_hand(unit: str, zone: str, hours: float) -> None:
    assert width(unit, zone) == round(hours * HOUR)


def test_the_contract_knows_the_bound() -> None:
    rules = 'output p.\np(date_trunc("day", T, "Europe/Berlin"), count()) <- s(T, _).'
    program = compiled(f"stream s(T: time, x: int).\n{rules}")
    engine = Engine(program, Kernel)
    engine.push("s", [("2026-01-01T22:30:00Z", 1), ("2026-01-01T22:40:00Z", 2)])
    engine.push("s", [("2026-01-01T23:10:00Z", 3)])
    assert engine.step() == {"p": []}
    engine.advance("2026-01-02T00:00:01Z")
    assert engine.step() == {"p": [(NEW_YEAR - HOUR, 2)]}


def test_a_failure_names_the_rule() -> None:
    program = streamlog.compile("stream s(T: int, x: string).\noutput p.\np(T, int(X)) <- s(T, X).")
    engine = streamlog.Engine(program)
    engine.push("s", [(1, "x")])
    with pytest.raises(EvaluationError, match="'x' is not a valid int in the rule at"):
        engine.end()
        engine.step()


def test_only_what_is_chosen_is_computed() -> None:
    rules = "output p.\np(T, if(N != 0, 10 // N, -1)) <- s(T, N)."
    engine = Engine(compiled(f"stream s(T: int, n: int).\n{rules}"), Kernel)
    engine.push("s", [(1, 0), (2, 5)])
    engine.end()
    assert engine.step() == {"p": [(1, -1), (2, 2)]}


def test_zones_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing them takes milliseconds, which was spent on every row."""
    assert zone_of("Asia/Tokyo")
    monkeypatch.setattr(time_forms, "available_timezones", lambda: pytest.fail("listed again"))
    assert SCALARS["hour"](NEW_YEAR, "Asia/Kolkata") == 5
    assert zone_of("Asia/Kolkatta") is None
