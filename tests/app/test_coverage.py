"""`test --coverage`: which parts of rules no test would miss."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

TEST = """\
test "an alarm" {
    smoke(1, a). smoke(2, b). report(2, b).
    end.
    expect alarm(1, a).
}
"""


@pytest.fixture
def parts(run, write, tmp_path: Path) -> Callable[..., dict[str, bool]]:
    """Whether each part matters, by its text."""

    def parts(text: str) -> dict[str, bool]:
        write("p.slog", text)
        result = run("test", "p.slog", "--coverage-json", "coverage.json")
        assert result.exit_code == 0, result.output
        found = json.loads((tmp_path / "coverage.json").read_text())
        by_text = {}
        for rule in found["rules"]:
            by_text[rule["rule"]] = rule["matters"]
            by_text |= {f"{p['kind']} {p['text']}": p["matters"] for p in rule["parts"]}
        assert found["parts"] == len(by_text)
        assert found["matter"] == sum(by_text.values())
        return by_text

    return parts


def test_goals_alternatives_and_negations(parts) -> None:
    rule = "alarm(T, A) <- (smoke(T, A) ; heat(T, A), A != d), not (report(T1, A), T1 = T, A != x)."
    assert parts(f"{rule}\n{TEST}") == {
        rule: True,
        "alternative smoke(T, A)": True,
        "alternative heat(T, A), A != d": False,
        "goal heat(T, A)": True,  # it cannot be left out: A != d needs it
        "goal A != d": False,
        "goal (smoke(T, A) ; heat(T, A), A != d)": True,
        "goal not (report(T1, A), T1 = T, A != x)": True,
        "goal report(T1, A)": True,
        "goal T1 = T": True,
        "goal A != x": False,
    }


def test_a_rule_that_gives_nothing(parts) -> None:
    rules = "alarm(T, A) <- smoke(T, A), not report(T, A).\nalarm(T, A) <- heat(T, A), A != x."
    found = parts(f"{rules}\n{TEST}")
    assert not found["alarm(T, A) <- heat(T, A), A != x."]
    assert not found["goal heat(T, A)"] and not found["goal A != x"]


def test_what_no_test_asks_about(parts) -> None:
    rules = "alarm(T, A) <- smoke(T, A), not report(T, A).\nother(T, B) <- smoke(T, B), B = b."
    assert not parts(f"{rules}\n{TEST}")["other(T, B) <- smoke(T, B), B = b."]


def test_a_bound_without_which_a_recursion_never_ends(parts) -> None:
    found = parts(
        "count(T, N) <- start(T, N).\ncount(T, M) <- count(T, N), N < 3, M = N + 1.\n"
        'test "to three" { start(1, 2). end. expect count(1, 2), count(1, 3). }\n'
    )
    assert found["goal N < 3"]


def test_a_used_file_is_covered_by_all_that_use_it(run, write) -> None:
    write("lib.slog", "seen(T) <- a(T).\nseen(T) <- b(T).\nseen(T) <- c(T).\n")
    for name in ("a", "b"):
        test = f'test "{name}" {{ {name}(1). end. expect seen(1). }}'
        write(f"{name}.slog", f'use "lib.slog".\n{test}\n')
    result = run("test", "--coverage", "a.slog", "b.slog")
    assert result.stdout.split("2 passed\n")[1] == (
        "place        part   no test would miss\n"
        "──────────────────────────────────────\n"
        "lib.slog:3   rule   seen(T) <- c(T).\n"
        "\n"
        "coverage: 2 of 3 parts of rules matter to a test (66 %)\n"
    )


def test_not_on_spark(run, write) -> None:
    write("p.slog", TEST)
    result = run("test", "--coverage", "--engine", "spark", "p.slog")
    assert (result.exit_code, "use --engine local" in result.stderr) == (2, True)


def test_nothing_is_missed(run, write) -> None:
    write("p.slog", f"alarm(T, A) <- smoke(T, A), not report(T, A).\n{TEST}")
    result = run("test", "--coverage", "p.slog")
    assert result.stdout.endswith("coverage: 3 of 3 parts of rules matter to a test (100 %)\n")
