"""Random pairs of programs, and a change from one to the other at some point of a random run.

What means the same goes on as if nothing had happened; what does not is, from when on it is said to
be complete, what the new program would have answered from the beginning. Nothing is released twice.

STREAMLOG_SEED=7 STREAMLOG_UPGRADES=300 pytest tests/properties/test_upgrades.py
"""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import suppress
from copy import copy
from random import Random

import pytest
from attrs import evolve
from kernel_checks import Answers, arrivals, compiled, expected, tables
from oracle.naive import EndlessError
from oracle.programs import Case, executor_steps, random_case
from rewritten import changed, compiles, written_differently

from streamlog.compiler import Program, focused
from streamlog.control.change import Fate, change
from streamlog.control.layers import NEVER, Layer, Layers
from streamlog.runtime.executor import BEGIN, Row
from streamlog.runtime.functions import EvaluationError

SEED = int(os.environ.get("STREAMLOG_SEED", "18"))
PAIRS = int(os.environ.get("STREAMLOG_UPGRADES", "20"))
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
            return "\n".join(
                [line for line in text.splitlines() if line not in rules]
                + [line for line in whole if re.match(rf"{name}\(.*<-", line)]
            )
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
            schema = compiled(evolve(case, text=text)).schema
            if not {*schema.timelines} <= {*compiled(case).schema.timelines}:
                continue
            facts = {name: rows for name, rows in case.facts.items() if name in schema.streams}
            new = evolve(case, text=text, facts=facts)
            with suppress(EndlessError, EvaluationError):
                expected(compiled(new), new)
                return kind, case, new


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


def check(random: Random, versions: list[Case], seen: Counter[object], kind: str = "") -> None:
    """The first version runs, and at some points of its run another takes its place."""
    (old, layer), *others = map(version, versions)
    steps = executor_steps(random, arrivals(old, versions[0]), old.schema.views)
    cuts = sorted(random.choices(range(len(steps) + 1), k=len(others)))
    layers, found = Layers([layer], tables(old, versions[0])), Answers()
    starts: dict[str, int] = {}  # of outputs that did not answer from the beginning
    run(layers, steps[: cuts[0]], old, found)
    ends = [*cuts[1:], len(steps)]
    for case, (new, layer), cut, end in zip(versions[1:], others, cuts, ends, strict=True):
        given = tables(new, case)
        altered = {
            name
            for name in old.schema.inputs
            if name in new.schema.predicates
            and not old.schema[name].temporal
            and tables(old, versions[0]).get(name) != given.get(name)
        }
        made = change(layers, layer, new.contract.outputs, given, altered)
        layers = made.layers if random.random() < 0.5 else resumed(made.layers, given)
        rows: Answers = {}
        last = [({}, steps[-1][1])] if end == len(steps) else []  # what is due comes with a step
        run(layers, steps[cut:end] + last, new, rows)
        whole = expected(new, case) if end == len(steps) else None
        said = f"{kind}\n{versions[0].text}\n---\n{case.text}\n{cuts} of {len(steps)}"
        for entry in made.entries:
            seen[entry.fate] += 1
            if entry.is_output and entry.fate is not Fate.REMOVED:
                name = entry.name
                goes_on = entry.fate is Fate.UNCHANGED and name in old.contract.outputs
                if entry.fate is Fate.RENAMED:
                    seen["renamed"] += 1
                start = starts.get(name, BEGIN) if goes_on else entry.answers
                starts[name] = start
                mine = found.get(name, set()), rows.get(name, set())
                wanted = None if whole is None else whole.get(name)
                _compare(name, start, goes_on, new, *mine, wanted, f"{entry}\n{said}")
                is_between = 0 < cut < len(steps) and whole is not None
                compared = {r for r in wanted or () if _is_due(new, name, start, r)}
                if entry.fate is Fate.REBUILT and is_between and BEGIN < entry.answers < NEVER:
                    seen["warm"] += 1
                    seen["compared"] += bool(compared)
        found = {
            name: rows.get(name, set()) | (found.get(name, set()) if name in found else set())
            for name in new.contract.outputs
        }
        old, versions = new, [case, *versions]


def _is_due(new: Program, name: str, start: int, row: Row) -> bool:
    return not new.schema.is_temporal(name) or row[0] >= start


def _compare(
    name: str,
    start: int,
    goes_on: bool,
    new: Program,
    before: set[Row],
    after: set[Row],
    wanted: set[Row] | None,
    said: str,
) -> None:
    assert not before & after, f"twice: {said}"
    assert all(_is_due(new, name, start, row) for row in after), f"too early: {said}"
    if wanted is None:
        return
    if not new.schema.is_temporal(name):
        assert after == wanted - before, said
        return
    due = {row for row in wanted if row[0] >= start}
    if goes_on:
        assert {row for row in before | after if row[0] >= start} == due, said
    else:
        assert after == due, said
        assert all(row[0] < start for row in before), said


@pytest.mark.parametrize("first", range(0, PAIRS, SHARE))
def test_unchanged_goes_on_and_changed_is_right_once_it_is_warm(first: int) -> None:
    seen: Counter[object] = Counter()
    for number in range(first, first + SHARE):
        random = Random(f"{SEED}/{number}")
        kind, case, new_case = pair(random)
        check(random, [case, new_case], seen, kind)
    assert seen[Fate.UNCHANGED]


class Windows:
    """Rules that look a few instants back and ahead, whose history is short."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.rules = [self.rule(n) for n in range(4)]
        self.outputs = random.sample(range(4), 3) if random.random() < 0.7 else []

    def rule(self, number: int) -> tuple[str, list[int]]:
        random = self.random
        above = [f"p{n}" for n in range(number)]
        one, two = random.choice(("s", "r", *above)), random.choice(("s", "r", *above))
        numbers = [random.randrange(3), random.randrange(4), random.randrange(3)]
        text = random.choice(
            (
                "p(T, N) <- one(T, N), not (two(U, _), T - {0} <= U, U < T + {2}), N != {1}.",
                "p(T, count(M)) <- one(T, _), two(U, M), T - {1} <= U, U <= T.",
                "p(T, N + M) <- one(T, N), two(U, M), U <= T, T <= U + {1}, N + M < 9.",
                "p(T, N) <- one(T, N), N >= {0}.",
                "p(T, N) <- one(T, N), not (p(U, _), T - {1} <= U, U < T).",
                "p(T, sum(M)) <- one(T, M), two(T, _).",
                "p(T, N) <- one(T, N), two(U, N), U < T, not (two(V, N), U < V, V < T).",
                "p(T, max(M)) <- one(T, _), two(U, M), U <= T.",
                "p(T, N) <- one(U, N), T = U + {0}.",
                "p(T, K) <- one(T, N), k(N, K).",
            )
        )
        names = {"p": f"p{number}", "one": one, "two": two}
        return re.sub(r"\b(p|one|two)(?=\()", lambda m: names[m[1]], text), numbers

    def changed(self) -> Windows:
        random = self.random
        other = copy(self)
        other.rules = list(self.rules)
        place = random.randrange(4)
        text, numbers = self.rules[place]
        if random.random() < 0.7:
            which = random.randrange(3)
            numbers = [n + (m == which) for m, n in enumerate(numbers)]
            other.rules[place] = text, numbers
        else:
            other.rules[place] = self.rule(place)
        if self.outputs and random.random() < 0.3:
            other.outputs = random.sample(range(4), 3)
        return other

    @property
    def text(self) -> str:
        lines = [
            "stream s(T: int, N: int).",
            "stream r(T: int, N: int).",
            "table k(N: int, K: int).",
        ]
        lines += [text.format(*numbers) for text, numbers in self.rules]
        if self.outputs:
            lines.append(f"output {', '.join(f'p{n}' for n in self.outputs)}.")
        return "\n".join(lines)

    def case(self, facts: dict[str, list[Row]], keys: list[Row]) -> Case:
        return Case(self.text, facts, {"k": keys})


@pytest.mark.parametrize("first", range(0, PAIRS, SHARE))
def test_windows_are_warm_after_their_length(first: int) -> None:
    seen: Counter[object] = Counter()
    for number in range(first, first + SHARE):
        random = Random(f"windows {SEED}/{number}")
        facts = {
            name: sorted({(random.randrange(40), random.randrange(4)) for _ in range(50)})
            for name in ("s", "r")
        }
        keys: list[Row] = [(n, random.randrange(4)) for n in range(4)]
        programs = [Windows(random)]
        while not compiles(programs[0].text):
            programs = [Windows(random)]
        while len(programs) < 3:
            new = programs[-1].changed().changed()
            programs += [new] * compiles(new.text)
        cases = [p.case(facts, keys) for p in programs]
        if random.random() < 0.2:
            cases[1] = evolve(cases[1], tables={"k": [*keys[1:], (9, 9)]})
            cases[2] = evolve(cases[2], tables=cases[1].tables)
        check(random, cases[: random.choice((2, 2, 3))], seen)
    assert seen["warm"] and seen["compared"] and seen[Fate.UNCHANGED], seen
