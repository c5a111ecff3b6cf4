"""`streamlog run --on-error skip`: what cannot be computed is left out, and told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import streamlog
from streamlog.analysis.skipping import SkipError
from streamlog.kernel import Kernel

PROGRAM = """
stream s(T: time, a: int, b: int, x: string).
output p, q.
p(T, A / B) <- s(T, A, B, _).
q(T, N) <- s(T, _, _, X), N = int(X), N > 1.
"""
ROWS = ["1,2,5", "1,0,x", "3,0,1", "4,2,x"]
DATA = "T,a,b,x\n" + "".join(f"2026-01-01T00:00:0{n}Z,{row}\n" for n, row in enumerate(ROWS))
SKIPPED = {
    ("a.slog:4", "division by zero", '{"T": "2026-01-01T00:00:01Z", "A": 1, "B": 0}'),
    ("a.slog:4", "division by zero", '{"T": "2026-01-01T00:00:02Z", "A": 3, "B": 0}'),
    ("a.slog:5", "'x' is not a valid int", '{"T": "2026-01-01T00:00:01Z", "X": "x"}'),
    ("a.slog:5", "'x' is not a valid int", '{"T": "2026-01-01T00:00:03Z", "X": "x"}'),
}
ARGS = ("run", "a.slog", "--engine", "local", "--input", "s=s.csv")


@pytest.fixture(autouse=True)
def files(write) -> None:
    write("a.slog", PROGRAM)
    write("s.csv", DATA)


def told(path: Path) -> Iterator[tuple[str, ...]]:
    for line in path.read_text().splitlines():
        yield tuple(json.loads(line).values())


def test_it_stops_by_default(run) -> None:
    result = run(*ARGS)
    assert result.exit_code == 1
    assert "division by zero in the rule at a.slog:4" in result.stderr


def test_solutions_are_left_out_and_told(run, tmp_path: Path) -> None:
    result = run(*ARGS, "--on-error", "skip", "--errors", "e.jsonl", "--format", "csv")
    assert result.exit_code == 0
    assert result.stdout.count("2026-01-01T00:00:0") == 3
    assert set(told(tmp_path / "e.jsonl")) == SKIPPED
    assert "skipped a.slog:4: division by zero with {" in result.stderr
    assert "a.slog:5         2" in result.stderr  # in the closing table


def test_without_a_file_the_first_few_are_printed(run, write) -> None:
    rows = "".join(f"2026-01-01T00:00:00Z,{n},0,1\n" for n in range(9))
    write("s.csv", f"T,a,b,x\n{rows}")
    result = run(*ARGS, "--on-error", "skip")
    assert result.stderr.count("skipped a.slog:4:") == 5
    assert "4 more solutions skipped; --errors keeps them" in result.stderr


def test_errors_are_for_skipping(run) -> None:
    result = run(*ARGS, "--errors", "e.jsonl")
    assert result.exit_code == 2
    assert "--errors is for --on-error skip" in result.stderr


def test_a_negation_refuses(run, write) -> None:
    write("a.slog", f"{PROGRAM} r(T, A) <- s(T, A, _, _), not p(T, 0.5). output r.")
    result = run(*ARGS, "--on-error", "skip")
    assert result.exit_code == 2
    text = " ".join(result.stderr.split())
    assert "`A / B` in the rule at a.slog:4 may fail" in text
    assert "a negation of the rule at a.slog:6, `not p(T, 0.5)`" in text


def test_rules_on_which_no_answer_rests_refuse_nothing(run, write) -> None:
    write("a.slog", f"{PROGRAM} r(T, A) <- s(T, A, _, _), not p(T, 0.5).")
    assert run(*ARGS, "--on-error", "skip").exit_code == 0


@pytest.mark.parametrize("ways_out", ["b: int 1..9", "b: int -9..-1"])
def test_ranges_are_a_way_out(run, write, ways_out: str) -> None:
    text = PROGRAM.replace("b: int", ways_out)
    write("a.slog", f"{text} r(T, A) <- s(T, A, _, _), not p(T, 0.5). output r.")
    assert run(*ARGS, "--on-error", "skip").exit_code == 0


def test_each_error_once_however_often_interrupted(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = (*ARGS, "--on-error", "skip", "--every", "1", "--checkpoint", "st")
    args += ("--output", "p=p.csv", "--output", "q=q.csv", "--errors", "e.jsonl")
    step, steps = Kernel.step, 0

    def interrupted(self, *given):
        nonlocal steps
        steps += 1
        if steps in (2, 5):
            raise KeyboardInterrupt
        return step(self, *given)

    monkeypatch.setattr(Kernel, "step", interrupted)
    assert [run(*args).exit_code for _ in range(3)] == [130, 130, 0]
    lines = list(told(tmp_path / "e.jsonl"))
    assert set(lines) == SKIPPED and len(lines) == len(SKIPPED)
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 3


def test_a_checkpoint_knows_what_errors_do(run) -> None:
    args = (*ARGS, "--checkpoint", "st", "--output", "p=p.csv", "--output", "q=q.csv")
    assert run(*args, "--on-error", "skip").exit_code == 0
    result = run(*args)
    assert result.exit_code == 2
    assert "was made with another --on-error" in result.stderr


def test_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = streamlog.compile("a.slog")
    engine = streamlog.Engine(program, on_error="skip")
    engine.push("s", [(f"2026-01-01T00:00:0{n}Z", *row.split(",")) for n, row in enumerate(ROWS)])
    engine.end()
    assert len(engine.step()["p"]) == 2
    assert {(e.rule, e.reason, e.values) for e in engine.errors} == SKIPPED
    assert engine.report.skipped == {"a.slog:4": 2, "a.slog:5": 2}
    with pytest.raises(ValueError, match="on_error"):
        streamlog.Engine(program, on_error="ignore")
    counting = streamlog.compile(f"{PROGRAM} output n. n(T, count()) <- p(T, _).")
    with pytest.raises(SkipError, match="goes into the aggregate"):
        streamlog.Engine(counting, on_error="skip")


def test_other_goals_are_decided_first(run, write) -> None:
    """A test that is false excuses any value that cannot be computed."""
    write("a.slog", PROGRAM.replace("N = int(X), N > 1", 'N = int(X), matches(X, "^[0-9]+$")'))
    write("s.csv", DATA.replace(",0,", ",1,"))
    result = run(*ARGS, "--format", "csv")
    assert result.exit_code == 0
