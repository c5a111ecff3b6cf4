"""Random pairs of programs, and a change from one to the other at some point of a random run.

What means the same goes on as if nothing had happened; what does not is, from when on it is said to
be complete, what the new program would have answered from the beginning. Nothing is released twice.

STREAMLOG_SEED=7 STREAMLOG_UPGRADES=300 pytest tests/properties/test_upgrades.py
"""

from __future__ import annotations

import os
import re
from collections import Counter
from random import Random

import pytest
from attrs import evolve
from kernel_checks import Answers, arrivals, compiled, expected, tables
from oracle.programs import Case, executor_steps, random_case
from rewritten import changed, compiles, written_differently

from streamlog.compiler import Program, focused
from streamlog.control.change import Change, Fate, change
from streamlog.control.layers import NEVER, Layer, Layers
from streamlog.runtime.executor import BEGIN, Row

SEED = int(os.environ.get("STREAMLOG_SEED", "18"))
PAIRS = int(os.environ.get("STREAMLOG_UPGRADES", "40"))
SHARE = 20
KINDS = ("changed", "added", "removed", "renamed", "redefined", "written differently", "twice")


def other(text: str, kind: str, random: Random) -> str:
    """Another version of a program."""
    defined = sorted({m[1] for m in re.finditer(r"^([a-z]\w*)\(.*<-", text, re.M)})
    name = random.choice(defined)
    rules = [line for line in text.splitlines() if re.match(rf"{name}\(.*<-", line)]
    match kind:
        case "added":
            return f"{text}\n" + "\n".join(re.sub(rf"\b{name}\(", "added(", r) for r in rules)
        case "removed":
            return "\n".join(line for line in text.splitlines() if line not in rules)
        case "renamed":
            return re.sub(rf"\b{name}\b", "renamed", text)
        case "written differently":
            return written_differently(text, random)
        case "twice":
            return changed(changed(text, random), random)
        case "redefined":
            whole = random_case(random).text.splitlines()
            return "\n".join([line for line in text.splitlines() if line not in rules] + [
                line for line in whole if re.match(rf"{name}\(.*<-", line)
            ])
        case _:
            return changed(text, random)


def pair(random: Random) -> tuple[str, Case, Case]:
    while True:
        case, kind = random_case(random), random.choice(KINDS)
        try:
            text = other(case.text, kind, random)
        except (AssertionError, IndexError):
            continue
        if text and compiles(text) and compiles(case.text):
            return kind, case, evolve(case, text=text)


def run(layers: Layers, steps: list, program: Program, found: Answers) -> None:
    for arrived, progress in steps:
        mine = program.closed.schema.timelines
        made = layers.step(
            {n: rows for n, rows in arrived.items() if n in mine},
            {n: progress.get(n, BEGIN) for n in mine},
        )
        for name in program.contract.outputs:
            rows = made.get(name, ())
            known = found.setdefault(name, set())
            assert len({*rows}) == len(rows) and not known & {*rows}, f"{name} twice: {rows}"
            known |= {*rows}


def resumed(layers: Layers, given: dict[str, list[Row]]) -> Layers:
    """What is saved is all that is needed."""
    again = Layers(layers.layers, given, current=layers.current)
    again.load(layers.save())
    return again


def version(case: Case) -> tuple[Program, Layer]:
    program = focused(compiled(case))
    return program, Layer(program.closed)


def upgraded(layers: Layers, layer: Layer, program: Program, given: dict) -> Change:
    return change(layers, layer, program.contract.outputs, given)


@pytest.mark.parametrize("first", range(0, PAIRS, SHARE))
def test_unchanged_goes_on_and_changed_is_right_once_it_is_warm(first: int) -> None:
    seen: Counter[object] = Counter()
    for number in range(first, first + SHARE):
        random = Random(f"{SEED}/{number}")
        kind, case, new_case = pair(random)
        outputs = random.random() < 0.5
        (old, old_layer), (new, new_layer) = version(case), version(new_case)
        del outputs
        if set(new.closed.schema.timelines) - set(old.closed.schema.timelines):
            continue
        full = expected(new, new_case)
        given = tables(new, new_case)
        steps = executor_steps(random, arrivals(old, case), old.schema.views)
        cut = random.randrange(len(steps) + 1)
        layers = Layers([old_layer], tables(old, case))
        before: Answers = {}
        after: Answers = {}
        run(layers, steps[:cut], old, before)
        made = upgraded(layers, new_layer, new, given)
        layers = made.layers if random.random() < 0.5 else resumed(made.layers, given)
        run(layers, steps[cut:], new, after)
        for entry in made.entries:
            name = entry.name
            seen[entry.fate] += 1
            if not entry.is_output or entry.fate is Fate.REMOVED or name not in full:
                continue
            where = f"{number} {kind} {name} {entry}\n{case.text}\n---\n{new_case.text}\n{cut}"
            old_rows, rows = before.get(name, set()), after.get(name, set())
            if not new.schema.is_temporal(name):
                assert rows == full[name] - old_rows, where
                continue
            assert all(row[0] >= entry.answers for row in rows), where
            if entry.fate is Fate.UNCHANGED and name in old.contract.outputs:
                assert not old_rows & rows and old_rows | rows == full[name], where
                continue
            due = {row for row in full[name] if row[0] >= entry.answers}
            assert rows == due, f"{where}\n{sorted(rows)}\n{sorted(due)}"
            if name in old.contract.outputs:
                assert all(row[0] < entry.answers for row in old_rows), where
            seen["warm"] += BEGIN < entry.answers < NEVER and 0 < cut < len(steps)
            seen["compared"] += bool(due) and 0 < cut < len(steps)
    print(dict(seen))
    assert seen[Fate.UNCHANGED] and seen[Fate.REBUILT] and seen["compared"]


