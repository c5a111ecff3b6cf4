"""The Streamlog paper's programs get the verdicts and rule classes that the paper gives.

Three of them only make sense over stored data; they lie in `rules/streamlog/stored/`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlog.codes import Severity
from streamlog.compiler import Mode, Program, compile_file

FOLDER = Path(__file__).parents[2] / "rules" / "streamlog"
PROGRAMS = {str(p.relative_to(FOLDER)): p for p in FOLDER.rglob("*.slog")}

SEQUENTIAL, STRICTLY, BLOCKING = "sequential", "strictly sequential", "blocking"
# Section 6: a negation at the rule's own timestamp, outside the recursion.
RELAXED = "sequential, relaxed"

# The class of each rule, in the order of the text.
CLASSES = {
    "01_repeated.slog": [("repeated", SEQUENTIAL)],
    "02_windowed.slog": [("windowed", SEQUENTIAL)],
    "stored/03_time_warped.slog": [("wrepeated", BLOCKING)],
    "04_first.slog": [("first", SEQUENTIAL), ("previous", STRICTLY)],
    "05_second.slog": [
        ("second", SEQUENTIAL),
        ("befr", STRICTLY),
        ("first", SEQUENTIAL),
        ("previous", STRICTLY),
    ],
    "stored/06_last.slog": [("last", RELAXED), ("next", BLOCKING)],
    "07_path.slog": [("path", SEQUENTIAL), ("shorter", STRICTLY), ("path", SEQUENTIAL)],
    "08_minpath.slog": [
        ("minpath", SEQUENTIAL),
        ("minpath", SEQUENTIAL),
        ("shorter", STRICTLY),
    ],
    "08_minpath_min.slog": [
        ("minpath", SEQUENTIAL),
        ("minpath", SEQUENTIAL),
        ("shorter", STRICTLY),
    ],
    "08_minpath_stratum.slog": [
        ("shortest", SEQUENTIAL),
        ("minpath", SEQUENTIAL),
        ("minpath", SEQUENTIAL),
        ("shorter", STRICTLY),
    ],
    "10_union.slog": [("msg", SEQUENTIAL), ("msg", SEQUENTIAL)],
    "11_synchronized_union.slog": [
        ("msg", SEQUENTIAL),
        ("msg", SEQUENTIAL),
        ("missing2", STRICTLY),
        ("missing1", STRICTLY),
    ],
    "stored/12_sort_merge_union.slog": [("msg", BLOCKING), ("msg", BLOCKING)],
    "max_printed.slog": [("hottest", RELAXED), ("hotter", SEQUENTIAL)],
    "max_so_far.slog": [("hottest", RELAXED), ("hotter", SEQUENTIAL)],
    "max_records.slog": [("hottest", RELAXED), ("hotter", STRICTLY), ("hotter", SEQUENTIAL)],
}

# Where a stream would wait forever: the rule's place among the rules, and the goal.
BLOCKED_AT = {
    "stored/03_time_warped.slog": [(0, "msg(T, X)")],
    "stored/06_last.slog": [(1, "msg(T1, Z)")],
    "stored/12_sort_merge_union.slog": [(0, "sensr2(T2, _)"), (1, "sensr1(T1, _)")],
}


def classes(compilation: Program) -> list[tuple[str, str]]:
    return [
        (r.rule.head.pred, f"{r.kind.value}, relaxed" if r.relaxed else r.kind.value)
        for r in compilation.rules
    ]


def blocked_at(compilation: Program) -> list[tuple[int, str]]:
    """The rule and the goal that each SL0401 points at."""
    return [
        (
            next(
                number
                for number, r in enumerate(compilation.rules)
                if r.rule.span.start <= d.span.start < r.rule.span.end
            ),
            d.span.text,
        )
        for d in compilation.diagnostics
        if d.code == "SL0401"
    ]


def test_every_program_has_an_expectation() -> None:
    assert PROGRAMS.keys() == CLASSES.keys()
    assert {name for name in PROGRAMS if name.startswith("stored/")} == BLOCKED_AT.keys()


@pytest.mark.parametrize("name", CLASSES)
def test_over_a_stream(name: str) -> None:
    compilation = compile_file(PROGRAMS[name])
    errors = {d.code for d in compilation.diagnostics if d.is_error}
    assert errors == ({"SL0401"} if name in BLOCKED_AT else set())
    assert blocked_at(compilation) == BLOCKED_AT.get(name, [])


@pytest.mark.parametrize("name", CLASSES)
def test_over_stored_data(name: str) -> None:
    compilation = compile_file(PROGRAMS[name], mode=Mode.BATCH)
    assert compilation.ok
    notes = {d.code for d in compilation.diagnostics if d.severity is Severity.NOTE}
    assert notes == ({"SL0401"} if name in BLOCKED_AT else set())
    assert classes(compilation) == CLASSES[name]


@pytest.mark.parametrize("name", [name for name in CLASSES if name not in BLOCKED_AT])
def test_classes_do_not_depend_on_the_mode(name: str) -> None:
    assert classes(compile_file(PROGRAMS[name])) == CLASSES[name]
