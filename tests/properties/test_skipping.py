"""Solutions that cannot be computed: left out, with what the oracle leaves out as errors."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import pytest
from failing_programs import random_case
from kernel_checks import arrivals, compiled, tables
from oracle.naive import model_without_failures
from oracle.programs import Case, executor_steps

from streamlog.analysis.builtins import VALUES
from streamlog.analysis.skipping import SkipError
from streamlog.compiler import Program, compile_file, skipping
from streamlog.duck.executor import DuckExecutor
from streamlog.kernel import Kernel
from streamlog.runtime.executor import END, ExecutorFactory, Row
from streamlog.runtime.python_functions import allowed
from streamlog.syntax.ast import Call, Const
from streamlog.syntax.walk import walk

PAIRS = int(os.environ.get("STREAMLOG_PAIRS", "100"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))
SHARD = 50

Found = tuple[dict[str, set[Row]], set[tuple[str, frozenset[tuple[str, object]]]]]


def shown(program: Program) -> Mapping[str, frozenset[str]]:
    """The variables whose values are told of errors, by the place of their rule."""
    found: dict[str, frozenset[str]] = {}
    for rule in program.closed.schema.rules:
        for node in walk(rule.body):
            if isinstance(node, Call) and node.name == VALUES:
                named = (str(a.value) for a in node.args[::2] if isinstance(a, Const))
                found[rule.span.place] = frozenset(name.split()[0] for name in named)
    return found


def expected(program: Program, case: Case) -> Found:
    rows, failures = model_without_failures(program, {**case.facts, **case.tables})
    names = shown(program)
    executed = {r.rule.span.place for r in program.closed.plan.rules}  # the others never hold
    derived = {p: rows[p] for p in program.schema.rules_of}
    return derived, {
        (f.place, frozenset((n, v) for n, v in f.values.items() if n in names[f.place]))
        for f in failures
        if f.place in executed
    }


def collected(program: Program, steps: Sequence[Mapping[str, Sequence[Row]]]) -> Found:
    answers: dict[str, set[Row]] = {p: set() for p in program.schema.rules_of}
    errors: set[tuple[str, frozenset[tuple[str, object]]]] = set()
    assert program.errors is not None
    for found in steps:
        for pred, rows in found.items():
            if pred in answers:
                assert not answers[pred] & set(rows)
                answers[pred] |= set(rows)
            elif pred in program.errors:
                place = program.errors[pred].span.place
                errors |= {(place, frozenset(json.loads(str(r[-1])).items())) for r in rows}
    return answers, errors


def run(program: Program, case: Case, executor: ExecutorFactory, rng: Random | None) -> Found:
    """At once, or in steps with a restart after each."""
    given = tables(program, case)
    engine = executor(program.closed, given)
    if rng is None:
        ended = dict.fromkeys(program.schema.streams, END)
        return collected(program, [engine.step(arrivals(program, case), ended)])
    found = []
    for arrived, progress in executor_steps(rng, arrivals(program, case)):
        found.append(engine.step(arrived, progress))
        saved = engine.save()
        engine = executor(program.closed, given)
        engine.load({name: list(rows) for name, rows in saved.items()})
    return collected(program, found)


@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS, SHARD))
def test_what_fails_is_left_out(first: int) -> None:
    failed = 0
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case = random_case(rng)
        program = skipping(compiled(case))
        wanted = expected(program, case)
        failed += bool(wanted[1])
        for executor in (Kernel, DuckExecutor):
            for cuts in (None, rng):
                assert run(program, case, executor, cuts) == wanted, f"seed {seed}\n{case}"
    assert failed > SHARD / 4


@pytest.mark.parametrize("first", range(SEED, SEED + PAIRS // 2, SHARD))
def test_functions_of_python_are_like_others(first: int, tmp_path: Path) -> None:
    """`A // B` as a Python function: the same answers, the same errors."""
    (tmp_path / "div.py").write_text("def div(a, b):\n    return a // b\n")
    changed = 0
    for seed in range(first, first + SHARD):
        rng = Random(seed)
        case = random_case(rng)
        text = re.sub(r"(\w+) // (\w+)", r"div(\1, \2)", case.text)
        changed += text != case.text
        path = tmp_path / "case.slog"
        path.write_text(f'{text}\nfunction div(int, int): int from "div.py".\n')
        compilation = compile_file(path)
        assert isinstance(compilation, Program)
        program = allowed(skipping(compilation))
        answers, errors = expected(skipping(compiled(case)), case)
        for cuts in (None, rng):
            found, failed = run(program, case, Kernel, cuts)
            lines = {(place.split(":")[-1], values) for place, values in failed}
            assert found == answers, f"seed {seed}\n{case}"
            assert lines == {(place.split(":")[-1], values) for place, values in errors}
    assert changed > SHARD / 4


def test_refusals() -> None:
    """Where a negation or an aggregate rests on what may fail."""
    streams = "stream s(T: int, a: int, b: int). output q. p(T, A // B) <- s(T, A, B)."
    for rule in (
        "q(T, A) <- s(T, A, _), not p(T, A).",
        "q(T, A) <- s(T, A, _), not (s(T, _, C), not p(T, C)).",
        "q(T, count()) <- p(T, _).",
        "q(T, sum(A // B)) <- s(T, A, B).",
        "q(T, sum(A)) <- s(T, A, B), A // B > 2.",
        "q(T, A) <- s(T, A, B), not (s(T, C, _), C // B > 2).",
        "r(T, X) <- p(T, X). q(T, last(X)) <- r(T, X).",
    ):
        with pytest.raises(SkipError):
            skipping(compiled(Case(f"{streams} {rule}", {}, {})))
    skipping(compiled(Case(f"{streams} q(T, X) <- p(T, X), not s(T, X, X).", {}, {})))
