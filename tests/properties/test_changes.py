"""`streamlog diff` on random pairs of programs: what it says is the difference of the contracts.

STREAMLOG_SEED=7 STREAMLOG_PAIRS=500 pytest tests/properties/test_changes.py
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import best_programs
import data_programs
import limit_programs
import path_programs
import pytest
import rank_programs
import relation_programs
import window_programs
from programs import RandomProgram
from rewritten import changed, compiles, written_differently
from unusual import unusual

import streamlog
from streamlog.analysis.changes import Effect, Version, What, changes, queries_changed
from streamlog.analysis.schema import Kind
from streamlog.app.show import contract_data
from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Source

SEED = int(os.environ.get("STREAMLOG_SEED", "15"))
PAIRS = int(os.environ.get("STREAMLOG_PAIRS", "20"))
SHARE = 20  # pairs in one test
MAKERS = (
    best_programs,
    data_programs,
    limit_programs,
    path_programs,
    rank_programs,
    relation_programs,
    window_programs,
)


def version(text: str) -> tuple[Version, Program]:
    program = compile_source(Source("random.slog", text))
    assert isinstance(program, Program), program.diagnostics
    names = program.closed.schema.column_names
    return Version(program.schema, program.types, program.contract, names), program


def accepted(random: Random) -> str:
    while True:
        text = RandomProgram(random.random()).text
        if compiles(text):
            return text


def difference(old: Program, new: Program) -> Iterator[tuple[str, What, Effect | None]]:
    """The difference of two contracts as `explain --format json` prints them. Columns go by name
    there, so what is kept per key is compared where the names are the same."""
    before, after = (
        {p["name"]: p for p in contract_data(program.contract)["predicates"]}
        for program in (old, new)
    )
    parts = {r.head.pred for program in (old, new) for r in program.schema.rules if r.is_auxiliary}
    for name in (before.keys() | after.keys()) - parts:
        if name not in before or name not in after:
            yield name, What.REMOVED if name in before else What.ADDED, None
            continue
        one, two = before[name], after[name]
        if any(one[key] != two[key] for key in ("kind", "class", "open")):
            yield name, What.KIND, Effect.OTHER
        old_by, new_by = ({d["stream"]: far(d["by"]) for d in p["delays"]} for p in (one, two))
        if old_by != new_by:
            later = any(s not in old_by or by > old_by[s] for s, by in new_by.items())
            is_comparable = one["clock"] == two["clock"]
            effect = Effect.WORSE if later else Effect.BETTER
            yield name, What.DELAY, effect if is_comparable else Effect.OTHER
        if one["released"] != two["released"]:
            closes = two["released"] == "on close"
            yield name, What.RELEASED, Effect.WORSE if closes else Effect.BETTER
        if kept(one, old) != kept(two, new):
            yield name, What.KEPT, None


def far(by: int | None) -> float:
    return float("inf") if by is None else by


def kept(entry: dict[str, Any], program: Program) -> Any:
    """With columns by their place in the predicate."""
    schema = program.schema if entry["open"] else program.closed.schema
    names, found = schema.column_names[entry["name"]], entry["kept"]

    def place(column: str) -> int:
        return names.index(column) if column in names or not entry["open"] else -1

    best = {(place(b["column"]), b["highest"], b["count"]) for b in found["best"]}
    return found["what"], found["span"], {place(column) for column in found["columns"]}, best


@pytest.mark.parametrize("first", range(0, PAIRS, SHARE))
def test_what_is_reported_is_the_difference(first: int) -> None:
    seen: Counter[What] = Counter()
    for number in range(first, first + SHARE):
        random = Random(f"{SEED}/{number}")
        texts = [text := accepted(random)]
        while len(texts) < 2:
            other = changed(text, random) if random.random() < 0.8 else accepted(random)
            texts += [other] * compiles(other)
        (old, before), (new, after) = map(version, texts)
        parts = {*old.parts, *new.parts}
        found = [c for c in changes(old, new) if c.name not in parts]
        said = {
            (c.name, c.what, None if c.what in (What.ADDED, What.REMOVED, What.KEPT) else c.effect)
            for c in found
            if c.what not in (What.MEANING, What.ANSWER, What.COLUMNS, What.ARRIVAL)
        }
        assert said == set(difference(before, after)), "\n---\n".join(texts)
        seen.update(c.what for c in found)
    assert seen[What.DELAY] and seen[What.KEPT] and seen[What.MEANING], seen


@pytest.mark.parametrize("first", range(0, PAIRS, SHARE))
def test_equal_programs_do_not_differ(first: int) -> None:
    for number in range(first, first + SHARE):
        random = Random(f"{SEED}/equal/{number}")
        text = accepted(random)
        other = written_differently(text, random)
        (old, _), (new, _) = version(text), version(other)
        found = [(c.name, c.what) for c in changes(old, new)]
        assert found == [], f"{text}\n---\n{other}"
        assert not queries_changed(old, new)


def unusual_program(number: int) -> str:
    """Of each generator in turn, half of them with what no generator writes by itself."""
    random = Random(f"{SEED}/unusual/{number}")
    found = MAKERS[number % len(MAKERS)].random_case(random)
    case = found[0] if isinstance(found, tuple) else found
    return (unusual(case, random) if random.random() < 0.5 else case).text


@pytest.mark.parametrize("first", range(0, PAIRS, SHARE))
def test_equal_programs_of_all_sorts_do_not_differ(first: int) -> None:
    for number in range(first, first + SHARE):
        text = unusual_program(number)
        if not compiles(text):
            continue
        other = written_differently(text, Random(number))
        (old, _), (new, _) = version(text), version(other)
        found = [(c.name, c.what) for c in changes(old, new)]
        assert found == [], f"{text}\n---\n{other}"
        assert not queries_changed(old, new)


@pytest.mark.parametrize("first", range(0, PAIRS, SHARE))
def test_what_means_the_same_has_the_same_rows(first: int) -> None:
    compared = 0
    for number in range(first, first + SHARE):
        random = Random(f"{SEED}/rows/{number}")
        text = accepted(random)
        other = changed(text, random)
        if not compiles(other):
            continue
        (old, before), (new, after) = version(text), version(other)
        if before.schema.streams != after.schema.streams:
            continue
        same = [
            name
            for name, meaning in old.meant.items()
            if name in new.meant and new.meant[name].fingerprint == meaning.fingerprint
            if before.schema[name].kind is Kind.DERIVED and not before.safety.is_open(name)
        ]
        rows = facts(before, random)
        assert answers(before, same, rows) == answers(after, same, rows), f"{text}---\n{other}"
        compared += len(same)
    assert compared


def facts(program: Program, random: Random) -> dict[str, list[tuple[int, int]]]:
    return {
        stream: [(random.randint(0, 8), random.randint(0, 3)) for _ in range(8)]
        for stream in program.schema.streams
    }


def answers(
    program: Program, names: list[str], rows: dict[str, list[tuple[int, int]]]
) -> dict[str, Any]:
    everything = [(n,) for n in (1, 2, 3)]
    tables = {name: everything for name in program.schema.inputs if name == "w"}
    engine = streamlog.Engine(program, {} if program.schema.facts else tables)
    for stream, found in rows.items():
        engine.push(stream, sorted(found))
    engine.end()
    engine.step()
    return {name: set(engine.facts(name)) for name in names}
