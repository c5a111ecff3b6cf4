"""Between batches Spark keeps what the contract says, where that is one row per key."""

from __future__ import annotations

from pathlib import Path

import pytest
from runtime.test_kept import PROGRAMS, assert_one_row_per_key, batches

from streamlog.analysis.contract import Keeps
from streamlog.compiler import compile_file, the
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.spark.executor import SparkExecutor

ROOT = Path(__file__).parents[2]


def per_key(path: Path) -> bool:
    contract = the(compile_file(ROOT / path).contract)
    return any(p.kept.what is Keeps.PER_KEY for p in contract.predicates)


@pytest.mark.parametrize("path", [p for p in PROGRAMS if per_key(p)], ids=str)
def test_one_row_per_key(path: Path) -> None:
    program = compile_file(ROOT / path)
    spark, local = (Engine(program, executor) for executor in (SparkExecutor, Kernel))
    # Components in kernels keep their own state, which `tests/runtime` looks at.
    promised = {
        p.predicate.name: p.kept
        for p in the(program.contract).predicates
        if p.kept.what is Keeps.PER_KEY
    }
    for batch, now in list(batches(program))[:4]:
        for engine in (spark, local):
            for stream, row in batch:
                engine.push(stream, [row])
            engine.advance(now)
        assert spark.step() == local.step()
        for name, rows in spark.executor.holding().items():
            if name in promised:
                past = [row for row in rows if row[0] < now - promised[name].span]
                goals = {i.where for i in the(program.plan).indexes if i.pred == name}
                assert_one_row_per_key(program, name, past, promised[name], len(goals))
