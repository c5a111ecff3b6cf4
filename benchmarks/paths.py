"""Path-shaped recursion on Spark: the kernel in a task, the fixpoint, and GraphFrames, in one run.

    python benchmarks/paths.py [--most SECONDS] [--task TASK] [--strategy STRATEGY] [ARCS ...]

Each line is one task with so many arcs, the rows it gives, and the seconds that each strategy took,
from DataFrames to the last row. All give the same number of rows, or the program ends. A strategy
that took more than SECONDS is left out where there are more arcs. The cost rule of
`streamlog/plan/strategies.py` was set by these figures.

GraphFrames comes from Maven, as `streamlog.spark.graph_calls` has it; STREAMLOG_GRAPHFRAMES names
other coordinates.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

import streamlog
from streamlog.compiler import Program
from streamlog.plan.parts import Strategy
from streamlog.spark import run, session
from streamlog.spark.graph_calls import ELSEWHERE, available

Rows = dict[str, list[tuple[int, ...]]]
SIZES = (3_000, 30_000, 300_000)
STRATEGIES = (Strategy.KERNEL, Strategy.FIXPOINT, Strategy.GRAPH)

REACH = """
table start(a: int).
table link(a: int, b: int).
output reach.
reach(Y) <- start(Y).
reach(Z) <- reach(Y), link(Y, Z).
"""
CLOSURE = """
table link(a: int, b: int).
output reach.
reach(X, Y) <- link(X, Y).
reach(X, Z) <- reach(X, Y), link(Y, Z).
"""
SHORTEST = """
table start(a: int).
table road(a: int, b: int, cost: int 1..9).
output way.
way(X, min<C>) <- start(X), C = 0.
way(Z, min<C>) <- way(Y, A), road(Y, Z, B), C = A + B.
"""
COMPONENTS = """
table link(a: int, b: int).
output component.
joined(X, Y) <- link(X, Y) ; link(Y, X).
component(X, min<L>) <- joined(X, _), L = X.
component(Y, min<L>) <- component(X, L), joined(X, Y).
"""


def links(arcs: int) -> list[tuple[int, int]]:
    """Three arcs a node: from most places one comes to most others."""
    rng = random.Random(arcs)
    nodes = arcs // 3
    return [(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(arcs)]


def reach(arcs: int) -> Rows:
    return {"start": [(0,)], "link": links(arcs)}


def shortest(arcs: int) -> Rows:
    rng = random.Random(arcs)
    return {"start": [(0,)], "road": [(a, b, rng.randrange(1, 10)) for a, b in links(arcs)]}


def closure(arcs: int) -> Rows:
    """Chains of twenty nodes with a shortcut each: about nine rows for each arc."""
    rng = random.Random(arcs)
    found = []
    for first in range(0, arcs, 20):
        found += ((n, n + 1) for n in range(first, first + 19))
        found.append((first + rng.randrange(10), first + 10 + rng.randrange(10)))
    return {"link": found}


TASKS: dict[str, tuple[str, str, Callable[[int], Rows]]] = {
    "reach": (REACH, "reach", reach),
    "closure": (CLOSURE, "reach", closure),
    "shortest": (SHORTEST, "way", shortest),
    "components": (COMPONENTS, "component", lambda arcs: {"link": links(arcs)}),
}


def frames(spark: SparkSession, rows: Rows) -> dict[str, DataFrame]:
    columns = ("a long", "b long", "cost long")
    return {
        name: spark.createDataFrame(found, ", ".join(columns[: len(found[0])]))
        for name, found in rows.items()
    }


def measured(
    program: Program, given: dict[str, DataFrame], output: str, strategy: Strategy
) -> tuple[float, int, bool]:
    """Seconds, rows, and whether the strategy was the one that was asked for."""
    began = time.perf_counter()
    answers = run(program, given, strategy=strategy)
    rows = answers[output].count()
    seconds = time.perf_counter() - began
    answers.release()
    return seconds, rows, answers.metrics.strategies[output].strategy is strategy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("arcs", nargs="*", type=int, default=SIZES)
    parser.add_argument("--task", choices=TASKS, action="append")
    names = [strategy.value for strategy in STRATEGIES]
    parser.add_argument("--strategy", choices=names, action="append")
    parser.add_argument("--most", type=float, default=120, metavar="SECONDS")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        packages = [os.environ.get("STREAMLOG_GRAPHFRAMES", ELSEWHERE)]
        spark = session("local[2]", {"spark.checkpoint.dir": folder}, packages)
        missing = available(spark)
        assert missing is None, missing
        wanted = [Strategy(name) for name in asked.strategy or names]
        for task in asked.task or TASKS:
            text, output, made = TASKS[task]
            program = streamlog.compile(text)
            for strategy in wanted:  # to warm up
                measured(program, frames(spark, made(300)), output, strategy)
            strategies = list(wanted)
            for arcs in sorted(asked.arcs):
                given = frames(spark, made(arcs))
                told, counts = [], set()
                for strategy in list(strategies):
                    seconds, rows, is_that = measured(program, given, output, strategy)
                    if not is_that or seconds > asked.most:
                        strategies.remove(strategy)
                    if is_that:
                        told.append(f"{strategy.value} {seconds:.1f} s")
                        counts.add(rows)
                (rows,) = counts
                print(f"{task:10}  {arcs:9,} arcs  {rows:9,} rows  {'  '.join(told)}", flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
