"""Which recursion is path-shaped: `recognise.txt` holds programs and what is found in them.

# a title
the program
---
the words of `explain --plan`, and what an executor is told
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import streamlog
from streamlog.analysis.schema import Kind
from streamlog.compiler import Mode, Program, compile_file, compile_module
from streamlog.plan.paths import Arc, Closure, Paths, Reach, Unlike, base_rules, in_words
from streamlog.plan.recognise import recognise
from streamlog.syntax.ast import Choice, Const, Rule, Type, branches
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import atoms
from tests.plan.walking import Row, walked
from tests.streaming import compiled

FIXTURE = Path(__file__).with_name("recognise.txt")
RULES = Path(__file__).parents[2] / "rules"
_PAIR = re.compile(r"^# (.+)\n((?:.*\n)+?)---\n((?:(?!# ).*\n)*)", re.MULTILINE)


def pairs(*, recognised_only: bool = False) -> Iterator[object]:
    text = FIXTURE.read_text(encoding="utf-8")
    found = _PAIR.findall(text)
    assert len(found) == len(re.findall("^# ", text, re.MULTILINE))
    for title, program, expected in found:
        if not (recognised_only and title.startswith("not:")):
            yield pytest.param(program, expected.strip(), id=title)


ALL = tuple(pairs())
RECOGNISED = tuple(pairs(recognised_only=True))


def the_recursion(program: Program) -> Paths | Unlike:
    (found,) = every_recursion(program).values()
    return found


def every_recursion(program: Program) -> dict[str, Paths | Unlike]:
    closed = program.closed
    assert program.closed.plan and closed and closed.schema and closed.types
    return {
        found.preds[0]: what
        for found in program.closed.plan.components
        if (what := recognise(found, closed.schema, closed.types)) is not None
    }


def shown(found: Paths | Unlike) -> str:
    lines = [in_words(found)]
    if isinstance(found, Unlike):
        return lines[0]
    if isinstance(found, Reach) and found.carried:
        lines.append(f"carried {columns(found.carried)}")
    if found.cost:
        parts = ("cost", found.cost.best, found.cost.combine, str(found.cost.column + 1))
        lines.append(" ".join(p for p in parts if p))
    if found.arcs:
        lines.append("arcs " + ", ".join(map(arc, found.arcs)))
    both = isinstance(found, Closure) and found.both_ways
    if found.symmetric:
        lines.append("symmetric" + ", both ways" * both)
    if found.at_once:
        lines.append("at once")
    return "\n".join(lines)


def arc(a: Arc) -> str:
    words = f"{a.pred} {columns(a.tail)} -> {columns(a.head)}"
    where = [f"{c + 1} = {pretty(const)}" for c, const in a.where]
    where += [f"{x + 1} = {y + 1}" for x, y in a.same]
    words += f" where {' and '.join(where)}" if where else ""
    match a.weight:
        case None:
            return words
        case Const():
            return f"{words} weight {pretty(a.weight)}!"
        case column:
            return f"{words} weight {column + 1}"


def columns(found: tuple[int, ...]) -> str:
    return ", ".join(str(c + 1) for c in found)


@pytest.mark.parametrize(("program", "expected"), ALL)
def test_recognise(program: str, expected: str) -> None:
    assert shown(the_recursion(compiled(program, Mode.BATCH))) == expected


# ----------------------------------------------------------------- the same rows as the kernel


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("program", "expected"), RECOGNISED)
def test_what_is_recognised_is_what_the_rules_mean(program: str, expected: str, seed: int) -> None:
    whole = compiled(program, Mode.BATCH)
    found = the_recursion(whole)
    assert isinstance(found, Paths)
    rng = random.Random(f"{program} {seed}")
    only_base = without_recursion(whole, found.pred)
    while not (base := run(only_base, rows := random_rows(whole, found, rng)))[found.pred]:
        pass  # nothing to begin with: nothing to test
    kernel = run(whole, rows)
    arcs = {a.pred: kernel.get(a.pred, ()) for a in found.arcs}
    assert walked(found, base[found.pred], arcs) == set(kernel[found.pred])


def run(program: Program, rows: dict[str, set[Row]]) -> dict[str, list[Row]]:
    assert program.closed and program.closed.schema
    predicates = program.closed.schema.predicates
    tables = {n: r for n, r in rows.items() if predicates[n].kind is Kind.TABLE}
    engine = streamlog.Engine(program, tables)
    for name in rows.keys() - tables.keys():
        engine.push(name, sorted(rows[name]))
    engine.end()
    engine.step()
    return {name: engine.facts(name) for name in predicates}


def random_rows(program: Program, found: Paths, rng: random.Random) -> dict[str, set[Row]]:
    assert program.closed and program.closed.schema and program.closed.types
    result = {}
    for name, predicate in program.closed.schema.predicates.items():
        if predicate.kind is Kind.DERIVED:
            continue
        types = [program.closed.types.column(name, i) for i in range(predicate.arity)]
        rows = {tuple(value(t, rng) for t in types) for _ in range(7 if len(types) > 1 else 2)}
        if found.cost and found.cost.best == "max" and found.cost.combine == "+":
            rows = {r for r in rows if r[0] < r[1]}  # a cycle has no longest path
        result[name] = rows
    return result


def value(type_: Type | None, rng: random.Random) -> Any:
    match type_:
        case Type.STRING:
            return rng.choice("abcd")
        case Type.FLOAT:
            return rng.choice((0.1, 0.2, 0.3, 0.7))
        case Type.BOOL:
            return rng.random() < 0.7
        case _:
            return rng.randint(1, 3)


def without_recursion(program: Program, pred: str) -> Program:
    assert program.module
    kept = []
    for statement in program.module.statements:
        if isinstance(statement, Rule) and statement.head.pred == pred:
            bodies = tuple(
                b for b in branches(statement.body) if pred not in {a.pred for a in positive(b)}
            )
            if not bodies:
                continue
            body = bodies[0] if len(bodies) == 1 else (Choice(bodies, span=statement.span),)
            statement = evolve(statement, body=body)
        kept.append(statement)
    result = compile_module(evolve(program.module, statements=tuple(kept)), mode=Mode.BATCH)
    assert result.ok, result.diagnostics
    return result


def positive(body: Any) -> Iterator[Any]:
    return (a for a in atoms(body) if a in body)


# --------------------------------------------------------------------------- around the fixture


@pytest.mark.parametrize(("program", "expected"), RECOGNISED)
def test_the_base_is_what_does_not_call_the_predicate(program: str, expected: str) -> None:
    whole = compiled(program, Mode.BATCH)
    found = the_recursion(whole)
    assert isinstance(found, Paths) and whole.closed.plan
    base = base_rules(found, whole.closed.plan)
    assert all(a.pred != found.pred for r in base for a in r.awaits)
    calling = [
        r
        for r in whole.closed.plan.rules
        if r.rule.head.pred == found.pred
        and any(p.start and p.start.pred == found.pred for p in r.pipelines)
    ]
    mine = [r for r in whole.closed.plan.rules if r.rule.head.pred == found.pred]
    assert sorted(r.number for r in (*base, *calling)) == [r.number for r in mine]


def test_what_does_not_recurse_is_no_question() -> None:
    program = compiled("output p.\np(T, X) <- q(T, X).\n")
    assert every_recursion(program) == {}


def test_the_worked_programs() -> None:
    paths = [*sorted((RULES / "graph").glob("*.slog")), RULES / "metro" / "threatened.slog"]
    found = {
        f"{path.stem}: {pred}": in_words(what)
        for path in paths
        for pred, what in every_recursion(compile_file(path)).items()
    }
    assert found == {
        "components: label": "not path-shaped: it asks for `label` under `not`",
        "components_table: component": "least labels along joined, from the base, at column 1",
        "reachability: reach": "paths with the least max of link, from column 2 to column 3",
        "reachability_table: reach": "closure of link, from column 1 to column 2",
        "same_generation: same_generation": "not path-shaped: "
        "its step joins `started` and `started`",
        "same_generation_table: same_generation": "not path-shaped: "
        "its step joins `opened_by` and `opened_by`",
        "shortest_paths: distance": "not path-shaped: it asks for `distance` under `not`",
        "shortest_paths_table: cost": "shortest paths of road, from column 1 to column 2; "
        "no cycle may have a negative weight",
        "shortest_paths_table: roads": "shortest paths of road, from column 1 to column 2",
        "threatened: steps": "shortest paths of neighbour, from column 1 to column 2",
    }
