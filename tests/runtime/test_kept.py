"""The kernel holds what the contract says is kept, and nothing else: on every program there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from streamlog.analysis.builtins import TICK
from streamlog.analysis.contract import Keeps, Kept
from streamlog.compiler import Program, compile_file
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import Row
from streamlog.runtime.sources import declared_inputs
from streamlog.syntax.ast import Const, Rule, Type
from streamlog.syntax.walk import walk

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted(
    path.relative_to(ROOT)
    for folder in ("rules", "tests/programs")
    for path in (ROOT / folder).rglob("*.slog")
    if "stored" not in path.parts  # over stored data all of it is there
)
STEPS, ROWS = 20, 8


def texts_of(program: Program) -> list[str]:
    """Some of the program's own words, so that its rules have something to find."""
    constants = (c for c in walk(program.module.statements) if isinstance(c, Const))
    return sorted({c.value for c in constants if isinstance(c.value, str)} | {"a", "b", "c"})[:7]


def value(type_: Type | None, texts: list[str], now: int, random: Random) -> Any:
    match type_:
        case Type.INT:
            return random.randrange(1, 6)
        case Type.FLOAT:
            return random.choice([1.0, 30.0, 50.0, 70.0])
        case Type.BOOL:
            return random.random() < 0.5
        case Type.TIME:
            return now
        case Type.DURATION:
            return random.randrange(1, 100) * 1_000_000
        case _:
            return random.choice(texts)


def row_of(program: Program, stream: str, now: int, random: Random) -> Row:
    """Texts go up within a row: Example 7 does not end on a graph with cycles."""
    arity = program.schema[stream].arity
    types = [program.types.column(stream, i) for i in range(1, arity)]
    texts = texts_of(program)
    values = [value(t, texts, now, random) for t in types]
    words = iter(sorted(random.sample(texts, sum(isinstance(v, str) for v in values))))
    return (now, *(next(words) if isinstance(v, str) else v for v in values))


def batches(program: Program) -> Iterator[tuple[list[tuple[str, Row]], int]]:
    """Rows by chance, at distances that go with the contract, each batch with the progress."""
    random = Random(1)
    contract = program.contract
    spans = [p.kept.span for p in contract.predicates]
    spans += [d.by or 0 for p in contract.predicates for d in p.delays]
    unit = max(1, max(spans) // 20)
    streams = program.schema.streams
    now = 1_790_000_000_000_000 if program.clocks.get(streams[0]) is Type.TIME else 0
    for _ in range(STEPS):
        rows: list[tuple[str, Row]] = []
        for _ in range(ROWS):
            now += random.choice([0, 1, unit // 2, unit])
            rows += ((s, row_of(program, s, now, random)) for s in streams if random.random() < 0.8)
        yield rows, now


def tables_by_chance(program: Program) -> dict[str, list[Row]]:
    """Of tables whose files are nowhere."""
    rng, texts, types = Random(2), texts_of(program), program.types
    lost = [i.pred for i in declared_inputs(program) if not i.path.exists()]
    return {
        name: [
            tuple(
                value(types.column(name, i), texts, 0, rng)
                for i in range(program.schema[name].arity)
            )
            for _ in range(8)
        ]
        for name in lost
    }


@pytest.mark.parametrize("path", PROGRAMS, ids=str)
def test_memory_is_what_the_contract_says(path: Path) -> None:
    """And what was forgotten is missed by no answer: the other engine has not yet tidied up."""
    program = compile_file(ROOT / path)
    tidy, other = (Engine(program, Kernel, remember=False) for _ in range(2))
    kept = {p.predicate.name: p.kept for p in program.contract.predicates}
    kept[TICK] = Kept(Keeps.NOTHING)
    open_of = {
        r.core.head.pred: r.rule.head.pred for r in program.open_rules if isinstance(r.core, Rule)
    }
    for batch, now in batches(program):
        for engine in (tidy, other):
            for stream, row in batch:
                engine.push(stream, [row])
            engine.advance(now)
        assert tidy.step() == other.step()
        kernel = tidy.executor
        assert isinstance(kernel, Kernel)
        for name, rows in kernel.holding().items():  # which tidies up
            promise = kept[open_of.get(name, name)]
            if promise.what in (Keeps.NOTHING, Keeps.SPAN):
                assert [row for row in rows if row[0] < now - promise.span] == [], name
        for index in kernel.plan.indexes:  # candidates may hold a row for a while longer
            promise = kept[open_of.get(index.pred, index.pred)]
            if promise.what is Keeps.PER_KEY:
                rows = [r for r in kernel._memory.rows(index) if (r[0] or 0) < now - promise.span]
                assert_one_row_per_key(program, index.pred, rows, promise)


def assert_one_row_per_key(
    program: Program, name: str, rows: list[Row], promise: Kept, selections: int = 1
) -> None:
    """The best of each kind, for each of the selections that goals make; of the latest, all."""
    names = program.closed.schema.column_names[name]
    keys = [tuple(row[names.index(c)] for c in promise.columns) for row in rows]
    if any(e.is_time for e in promise.best):
        keys = [key for key, _ in {(k, row[0]) for k, row in zip(keys, rows, strict=True)}]
    most = selections * max(1, sum(e.count for e in promise.best))
    assert max(Counter(keys).values(), default=0) <= most, name
