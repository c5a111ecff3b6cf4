"""`explain --plan`: pipelines in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted(p for p in (ROOT / "rules").rglob("*.slog") if p.parent.name != "lib")


def test_a_program_with_everything(run, write, golden) -> None:
    write(
        "a.slog",
        "stream sale(T: time, id: string, n: int).\n"
        "stream out(T: time, id: string).\n"
        "table big(id: string, least: int).\n"
        "seen(T, I) <- sale(T, I, _).\n"
        "week(T, I, sum(N)) <- seen(T, I), sale(T0, I, N), T0 <= T, T0 > T - 1week.\n"
        "kept(T + 1s, I, M) <- sale(T, I, N), big(I, L), N > L, M = N * 2,"
        " not (out(T1, I), T1 >= T, T1 < T + 1s).\n",
    )
    result = run("explain", "--plan", "a.slog")
    assert result.exit_code == 0
    golden(Path(__file__).with_name("plan.txt"), result.stdout)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_every_program_has_a_plan(run, path: Path) -> None:
    first, second = (run("explain", "--plan", "--batch", str(path)) for _ in range(2))
    assert (first.exit_code, first.stdout) == (0, second.stdout)
    assert "from each new" in first.stdout
    assert "#" not in first.stdout


def test_as_json(run, write) -> None:
    write("a.slog", "p(T) <- q(T).\n")
    (program,) = json.loads(run("explain", "--plan", "--format", "json", "a.slog").stdout)[
        "programs"
    ]
    assert program["plan"][0] == "p: in one go"
