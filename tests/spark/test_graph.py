"""Path-shaped recursion by GraphFrames gives the rows that the rules mean.

These tests need a Spark session with the JVM part of GraphFrames, and so a process of their own:

    pytest -n 0 -m graphframes tests/spark/test_graph.py

STREAMLOG_GRAPHFRAMES names another jar or other Maven coordinates than those that CI uses.
"""

from __future__ import annotations

import heapq
import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from graphframes import GraphFrame
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamlog.analysis.types import TypeTable
from streamlog.app.cli import main
from streamlog.compiler import Mode, Program
from streamlog.plan.paths import Paths
from streamlog.spark import graph, graph_calls
from streamlog.spark.graph_calls import ELSEWHERE, available
from streamlog.spark.session import TINY, session
from streamlog.syntax.ast import Type
from tests.plan.test_recognise import (
    RECOGNISED,
    random_rows,
    run,
    the_recursion,
    without_recursion,
)
from tests.streaming import compiled

pytestmark = pytest.mark.graphframes
GRAPHFRAMES = os.environ.get("STREAMLOG_GRAPHFRAMES", ELSEWHERE)
DEMO = Path(__file__).parents[2] / "demos" / "04_paths"
SQL_TYPES = {Type.STRING: "string", Type.FLOAT: "double", Type.BOOL: "boolean"}
Row = tuple[Any, ...]

CLOSURE = """
table link(a: int, b: int).
reach(X, Y) <- link(X, Y).
reach(X, Z) <- reach(X, Y), link(Y, Z).
"""
REACH = """
table start(a: int).
table link(a: int, b: int).
reach(Y) <- start(Y).
reach(Z) <- reach(Y), link(Y, Z).
"""
SHORTEST = """
table road(a: int, b: int, cost: int 0..9).
cost(X, Y, min<C>) <- road(X, Y, C).
cost(X, Z, min<C>) <- cost(X, Y, A), road(Y, Z, B), C = A + B.
"""
FROM_ONE = """
table start(a: int).
table road(a: int, b: int, cost: int).
cost(X, min<C>) <- start(X), C = 0.
cost(Z, min<C>) <- cost(Y, A), road(Y, Z, B), C = A + B.
"""
SYMMETRIC = """
table link(a: int, b: int).
joined(X, Y) <- link(X, Y) ; link(Y, X).
reach(X, Y) <- joined(X, Y).
reach(X, Z) <- reach(X, Y), joined(Y, Z).
"""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    assert SparkSession.getActiveSession() is None, "these tests need a process of their own"
    settings = {
        **TINY,
        "spark.checkpoint.dir": str(tmp_path_factory.mktemp("checkpoints")),
        "spark.driver.memory": "2g",
        # What `call_sites` reads.
        "spark.ui.retainedJobs": "100000",
        "spark.ui.retainedStages": "100000",
    }
    packages = [GRAPHFRAMES]
    if GRAPHFRAMES.endswith(".jar"):
        settings["spark.jars"], packages = GRAPHFRAMES, []
    made = session("local[2]", settings, packages)
    missing = available(made)
    assert missing is None, missing
    yield made
    made.stop()


def paths_of(program: str) -> Paths:
    found = the_recursion(compiled(program, Mode.BATCH))
    assert isinstance(found, Paths)
    return found


def frame(spark: SparkSession, rows: Iterable[Row], types: Iterable[str]) -> DataFrame:
    schema = ", ".join(f"c{i} {type_}" for i, type_ in enumerate(types))
    return spark.createDataFrame(sorted(rows), schema)


def integers(spark: SparkSession, rows: Iterable[Row], arity: int) -> DataFrame:
    return frame(spark, rows, ["bigint"] * arity)


def rows_of(found: DataFrame) -> set[Row]:
    rows = [tuple(row) for row in found.collect()]
    assert len(set(rows)) == len(rows)
    return set(rows)


# -------------------------------------------------------------- every form that is recognised


@pytest.mark.parametrize(("program", "expected"), RECOGNISED)
def test_the_rows_are_those_of_the_rules(spark: SparkSession, program: str, expected: str) -> None:
    whole = compiled(program, Mode.BATCH)
    found = the_recursion(whole)
    assert isinstance(found, Paths)
    rng = random.Random(program)
    only_base = without_recursion(whole, found.pred)
    while not (base := run(only_base, rows := random_rows(whole, found, rng)))[found.pred]:
        pass
    kernel = run(whole, rows)
    relations = {a.pred: frame(spark, kernel[a.pred], types_of(whole, a.pred)) for a in found.arcs}
    given = frame(spark, base[found.pred], types_of(whole, found.pred))
    assert rows_of(graph.relation(found, given, relations)) == set(kernel[found.pred])


def types_of(program: Program, pred: str) -> list[str]:
    closed = program.closed
    assert closed and closed.schema and isinstance(closed.types, TypeTable)
    types = [closed.types.column(pred, i) for i in range(closed.schema[pred].arity)]
    return [SQL_TYPES.get(t, "bigint") if t else "bigint" for t in types]


# ------------------------------------------------------------------------------ random graphs


def some_arcs(rng: random.Random, nodes: int, arcs: int) -> set[tuple[int, int]]:
    """With cycles, loops and places that nothing leads to."""
    found = {(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(arcs)}
    return found | {(0, 0), (nodes, nodes + 1)}


def reached(arcs: set[tuple[int, int]], start: int) -> set[int]:
    """By one or more arcs."""
    found: set[int] = set()
    queue = [start]
    for node in queue:
        fresh = {b for a, b in arcs if a == node} - found
        found |= fresh
        queue += fresh
    return found


def dijkstra(arcs: Iterable[tuple[int, int, int]], starts: dict[int, int]) -> dict[int, int]:
    out: dict[int, list[tuple[int, int]]] = {}
    for a, b, weight in arcs:
        out.setdefault(a, []).append((b, weight))
    best: dict[int, int] = {}
    queue = [(cost, node) for node, cost in starts.items()]
    heapq.heapify(queue)
    while queue:
        cost, node = heapq.heappop(queue)
        if node not in best:
            best[node] = cost
            for other, weight in out.get(node, ()):
                heapq.heappush(queue, (cost + weight, other))
    return best


@pytest.mark.parametrize("seed", range(2))
def test_closure(spark: SparkSession, seed: int) -> None:
    arcs = some_arcs(random.Random(seed), 30, 45)
    found = graph.relation(paths_of(CLOSURE), integers(spark, arcs, 2), {})
    assert rows_of(found) == {(a, b) for a in range(32) for b in reached(arcs, a)}


def test_reach_from_some_places(spark: SparkSession) -> None:
    arcs = some_arcs(random.Random(3), 60, 70)
    starts = [(7,), (20,), (99,)]
    given = {"link": integers(spark, arcs, 2)}
    found = graph.relation(paths_of(REACH), integers(spark, starts, 1), given)
    expected = {s for (s,) in starts}.union(*(reached(arcs, s) for (s,) in starts))
    assert rows_of(found) == {(node,) for node in expected}


@pytest.mark.parametrize("seed", range(2))
def test_shortest_paths(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    roads = {(a, b, rng.randrange(10)) for a, b in some_arcs(rng, 25, 50) for _ in range(2)}
    found = graph.relation(paths_of(SHORTEST), integers(spark, roads, 3), {})
    expected = set()
    for source in {a for a, _, _ in roads}:
        starts: dict[int, int] = {}
        for a, b, weight in sorted(roads, reverse=True):
            if a == source:
                starts[b] = weight  # the cheapest comes last
        expected |= {(source, b, cost) for b, cost in dijkstra(roads, starts).items()}
    assert rows_of(found) == expected


def test_shortest_paths_from_one_place(spark: SparkSession) -> None:
    rng = random.Random(5)
    roads = {(a, b, rng.randrange(10)) for a, b in some_arcs(rng, 40, 80) for _ in range(2)}
    given = {"road": integers(spark, roads, 3)}
    found = graph.relation(paths_of(FROM_ONE), integers(spark, [(0, 0)], 2), given)
    assert rows_of(found) == set(dijkstra(roads, {0: 0}).items())


def test_symmetric_closure(spark: SparkSession) -> None:
    arcs = some_arcs(random.Random(4), 40, 30)
    both = arcs | {(b, a) for a, b in arcs}
    found = paths_of(SYMMETRIC)
    assert found.symmetric
    rows = rows_of(graph.relation(found, integers(spark, both, 2), {}))
    assert rows == {(a, b) for a in range(42) for b in reached(both, a)}


def test_long_paths(spark: SparkSession) -> None:
    """So many rounds that Spark's estimate of the nodes' size would have 3 ** 25 digits."""
    arcs = {(i, i + 1) for i in range(25)}
    given = {"link": integers(spark, arcs, 2)}
    found = graph.relation(paths_of(REACH), integers(spark, [(0,)], 1), given)
    assert rows_of(found) == {(i,) for i in range(26)}


# ------------------------------------------------------------------------------------ limits


def test_negative_weights_without_a_cycle(spark: SparkSession) -> None:
    roads = {(0, 1, 5), (0, 2, 1), (1, 3, -4), (2, 3, 2)}
    given = {"road": integers(spark, roads, 3)}
    found = graph.relation(paths_of(FROM_ONE), integers(spark, [(0, 0)], 2), given)
    assert rows_of(found) == {(0, 0), (1, 5), (2, 1), (3, 1)}


def test_a_cycle_that_makes_the_cost_better_is_an_error(spark: SparkSession) -> None:
    given = {"road": integers(spark, {(0, 1, 1), (1, 0, -2)}, 3)}
    with pytest.raises(graph.EndlessError, match="no cycle may have a negative weight"):
        graph.relation(paths_of(FROM_ONE), integers(spark, [(0, 0)], 2), given)


def test_no_more_rounds_than_asked_for(spark: SparkSession) -> None:
    given = {"link": integers(spark, {(i, i + 1) for i in range(5)}, 2)}
    with pytest.raises(graph.EndlessError, match=r"not done after 2 rounds$"):
        graph.relation(paths_of(REACH), integers(spark, [(0,)], 1), given, rounds=2)


def test_nothing_to_begin_with(spark: SparkSession) -> None:
    given = {"link": integers(spark, {(0, 1)}, 2)}
    empty = integers(spark, [], 1)
    assert rows_of(graph.relation(paths_of(REACH), empty, given)) == set()
    assert rows_of(graph.relation(paths_of(CLOSURE), integers(spark, [], 2), {})) == set()


def test_no_arcs(spark: SparkSession) -> None:
    given = {"link": integers(spark, [], 2)}
    found = graph.relation(paths_of(REACH), integers(spark, [(3,)], 1), given)
    assert rows_of(found) == {(3,)}


# ---------------------------------------------------------------------------- how it was done


def call_sites(spark: SparkSession, group: str, description: str) -> str:
    """Where the jobs of a group came from; all have this description."""
    store: Any = spark.sparkContext._jsc.sc().statusStore()  # type: ignore[union-attr]
    jobs = store.jobsList(None)
    stages: set[int] = set()
    for job in (jobs.apply(number) for number in range(jobs.size())):
        if job.jobGroup().isDefined() and job.jobGroup().get() == group:
            assert job.description().get() == description
            stages |= {job.stageIds().apply(i) for i in range(job.stageIds().size())}
    return "\n".join(store.lastStageAttempt(stage).details() for stage in stages)


@pytest.mark.parametrize(
    ("program", "description", "expected"),
    [
        pytest.param(CLOSURE, "closure of link", "org.graphframes.lib.Pregel.run", id="Pregel"),
        pytest.param(
            SYMMETRIC,
            "closure of joined",
            "org.graphframes.lib.ConnectedComponents.run",
            id="components",
        ),
    ],
)
def test_graphframes_did_it(
    spark: SparkSession, program: str, description: str, expected: str
) -> None:
    context = spark.sparkContext
    context.setJobGroup(description, "before")
    graph.relation(paths_of(program), integers(spark, {(0, 1), (1, 0)}, 2), {})
    assert context.getLocalProperty("spark.job.description") == "before"
    assert expected in call_sites(spark, description, f"GraphFrames: {description}")


def test_nothing_stays_cached(spark: SparkSession) -> None:
    cached: Any = spark._jsparkSession.sharedState().cacheManager()  # type: ignore[attr-defined]
    cached.clearCache()
    for program, types in (
        (CLOSURE, ["bigint"] * 2),
        (SHORTEST, ["bigint"] * 3),
        (SYMMETRIC, ["bigint"] * 2),
        (SYMMETRIC.replace("int", "string"), ["string"] * 2),
    ):
        as_type = str if "string" in types else int
        rows = [tuple(as_type(n) for n in (i, i + 1, 1)[: len(types)]) for i in range(3)]
        graph.relation(paths_of(program), frame(spark, rows, types), {})
    assert cached.isEmpty()


def test_what_others_have_cached_stays_cached(spark: SparkSession) -> None:
    links = integers(spark, {(0, 1), (1, 2)}, 2).persist()
    starts = integers(spark, [(0,)], 1).persist()
    try:
        graph.relation(paths_of(REACH), starts, {"link": links})
        graph.relation(paths_of(SYMMETRIC), links, {})
        assert links.storageLevel.useMemory and starts.storageLevel.useMemory
    finally:
        links.unpersist()
        starts.unpersist()


# ----------------------------------------------------------------------------- other versions

# The setters of Pregel by version, as far as Python parts and sources show them; 0.9.2 is
# the one that runs here.
ACTIVE = {
    "setInitialActiveVertexExpression",
    "setUpdateActiveVertexExpression",
    "setSkipMessagesFromNonActiveVertices",
    "setStopIfAllNonActiveVertices",
}
SETTERS = {
    "0.9.1": {"setEarlyStopping"},
    "0.9.2": {"setEarlyStopping", *ACTIVE},
    "0.10.0": {"setEarlyStopping", "setUseLocalCheckpoints", *ACTIVE},
    "0.10.1": {"setEarlyStopping", "setUseLocalCheckpoints", "requiredSrcColumns", *ACTIVE},
    "0.12.0": {
        "setEarlyStopping",
        "setUseLocalCheckpoints",
        "requiredSrcColumns",
        "requiredEdgeColumns",
        *ACTIVE,
    },
}


class Recorder:
    """A Pregel of the JVM that has these setters and no others."""

    def __init__(self, known: set[str]) -> None:
        self.known = known
        self.called: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in self.known:
            raise AttributeError(name)
        return lambda value, *more: self.called.update({name: value})


@pytest.mark.parametrize("version", SETTERS)
def test_a_setter_is_called_only_where_it_exists(spark: SparkSession, version: str) -> None:
    known = SETTERS[version]
    made = GraphFrame(spark.range(1), spark.sql("SELECT 0L AS src, 0L AS dst")).pregel
    made._java_obj = Recorder(known)
    graph_calls.configured(
        made,
        frozenset(known),
        sends="fresh",
        reads=["weight"],
        is_active=(F.lit(True), F.lit(False)),
        is_local=True,
    )
    # It must stop by itself, in one of the two ways.
    needless = {"setEarlyStopping"} if known >= ACTIVE else set()
    assert made._java_obj.called.keys() == known - needless
    assert made._java_obj.called.get("requiredEdgeColumns", "weight") == "weight"


def test_0_9_2_is_what_runs_here(spark: SparkSession) -> None:
    if GRAPHFRAMES == ELSEWHERE:
        known = graph_calls.setters(spark) & set().union(*SETTERS.values())
        assert known == SETTERS["0.9.2"]


def test_without_active_nodes(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with 0.9.1: it ends when there are no more messages."""
    known = graph_calls.setters(spark) - ACTIVE
    monkeypatch.setattr(graph_calls, "setters", lambda spark: known)
    test_shortest_paths_from_one_place(spark)
    test_a_cycle_that_makes_the_cost_better_is_an_error(spark)
    test_nothing_stays_cached(spark)


def test_a_checkpoint_directory_is_demanded(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert available(spark) is None
    monkeypatch.setattr(graph_calls, "has_directory", lambda spark: False)
    if "setUseLocalCheckpoints" in graph_calls.setters(spark):
        assert available(spark) is None
    else:
        assert "add --conf spark.checkpoint.dir=DIR" in (available(spark) or "")


# -------------------------------------------------------------------------------- the command


def command(*args: str) -> tuple[str, str]:
    done = CliRunner().invoke(main, ["run", *args, "--engine", "spark"])
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


def test_the_demo_with_graphframes(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DEMO)
    answers, report = command("ways_out.slog", "--strategy", "graph")
    assert answers == command("ways_out.slog", "--strategy", "kernel")[0]
    page = (DEMO / "README.md").read_text(encoding="utf-8")
    shown = page.split("says `graph` for")[1].split("```text\n")[1].split("```")[0]
    assert shown in "".join(f"{line.rstrip()}\n" for line in report.splitlines())


def test_recursion_that_graphframes_cannot_do(spark: SparkSession, tmp_path: Path) -> None:
    program = tmp_path / "odd.slog"
    program.write_text(
        "table link(a: int, b: int).\noutput odd.\nlink(1, 2). link(2, 3). link(3, 4).\n"
        "odd(X, Y) <- link(X, Y).\nodd(X, Z) <- even(X, Y), link(Y, Z).\n"
        "even(X, Z) <- odd(X, Y), link(Y, Z).\n"
    )
    answers, report = command(str(program), "--strategy", "graph", "--format", "csv")
    assert answers == "X,Y\n1,2\n1,4\n2,3\n3,4\n"
    said = " ".join(report.split())
    assert "kernel" in said and "not path-shaped: `even` and `odd` call each other" in said
