"""A random program means the same as a file that another one uses under an alias."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import best_programs
import limit_programs
import pytest
from attrs import evolve
from kernel_checks import at_once, closed_derived, compiled
from oracle.programs import Case, random_case
from unusual import unusual

from streamlog.compiler import Program, compile_file
from streamlog.duck import DuckExecutor
from streamlog.kernel import Kernel

MAKERS = (random_case, best_programs.random_case, limit_programs.random_case)
PAIRS = int(os.environ.get("STREAMLOG_MODULE_PAIRS", "20"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))


def used(case: Case, folder: Path) -> Program:
    """A program that answers what the used file derives."""
    derived = closed_derived(compiled(case))
    (folder / "lib.slog").write_text(f"{case.text}\nexport {', '.join(derived)}.\n", "utf-8")
    answers = ", ".join(f"m.{name}" for name in derived)
    (folder / "main.slog").write_text(f'use "lib.slog" as m.\noutput {answers}.\n', "utf-8")
    program = compile_file(folder / "main.slog")
    assert isinstance(program, Program), program.diagnostics
    return program


@pytest.mark.parametrize("seed", range(SEED, SEED + PAIRS))
def test_a_used_file_means_the_same(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    case = unusual(MAKERS[seed % len(MAKERS)](rng), rng)
    program = used(case, tmp_path)
    moved = evolve(
        case,
        facts={f"m.{name}": rows for name, rows in case.facts.items()},
        tables={f"m.{name}": rows for name, rows in case.tables.items()},
    )
    expected = {f"m.{name}": rows for name, rows in at_once(compiled(case), case).items()}
    for executor in (Kernel, DuckExecutor):
        assert at_once(program, moved, executor) == expected, case.text
