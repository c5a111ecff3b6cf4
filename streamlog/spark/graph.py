"""Path-shaped recursion by GraphFrames: the rows of a predicate that `plan.paths` describes.

The base puts labels (the carried columns) on nodes, and the labels travel along the arcs until
nothing is new: a label at a node is a row. So a path from X to X is there only if the rules make
one, on a cycle or in the base. With a cost a node keeps the best for each label.

* symmetric arcs, no cost or one that is carried along: connected components, and each label
  goes to all nodes of its component. Few rounds, however long the paths are.
* nothing carried: Pregel with one value a node.
* else: Pregel with a set, or a map to costs, at each node.

A round of Pregel sends on only what the last has found. The sets are the price: together they are
as large as the result, up to (labels x nodes), and those of one node must fit into one row. What
it takes beside the other strategies is in docs/operations.md; `benchmarks/paths.py` measures it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce

from attrs import frozen
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere
from pyspark.sql.types import LongType

from streamlog.plan.paths import Arc, Closure, Cost, Paths, Reach, in_words
from streamlog.spark.graph_calls import (
    connected_components,
    cut,
    pregel,
    release,
    without_size,
)
from streamlog.spark.labels import Costs, Labels, One, State
from streamlog.syntax.ast import Const

# Spark multiplies its estimates of size where it joins, and a round of Pregel joins nodes with
# nodes with nodes: the estimate has three times as many digits after each round, and after twenty
# Spark does nothing but multiply. So Pregel is started anew before that, with nodes of no size.
ROUNDS_AT_ONCE = 6


class EndlessError(Exception):
    """Not done after as many rounds as there may be: a cycle makes the cost better each time."""


# -------------------------------------------------------------------------------- the relation


def relation(
    paths: Paths,
    base: DataFrame,
    relations: Mapping[str, DataFrame],
    *,
    rounds: int | None = None,
) -> DataFrame:
    """All rows of the predicate, in columns c0, c1, …, each once and materialised.

    `base` has the predicate's columns, `relations` the rows of the predicates of `paths.arcs`
    (a closure needs none: the base is its arcs). Both are read several times: cache what is dear.
    Raises EndlessError after so many rounds of Pregel; unless told otherwise that is after one for
    each node and only if the cost is not known to come to an end.
    """
    used: list[DataFrame] = []
    with _described(base.sparkSession, f"GraphFrames: {in_words(paths).split(',')[0]}"):
        graph = _graph(paths, base, relations)
        try:
            if _by_components(paths):
                found = _components(graph, used)
            else:
                found = _pregel(graph, paths, rounds, used)
            return cut(found.select(*base.columns))
        finally:
            for frame in used:
                release(frame)


@contextmanager
def _described(spark: SparkSession, text: str) -> Iterator[None]:
    """The description of all jobs within, as Spark's pages show it."""
    context = spark.sparkContext
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(text)
    try:
        yield
    finally:
        context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------- the graph


@frozen
class _Graph:
    """Labels on nodes and arcs between nodes. `base` has the predicate's columns and `node`;
    `arcs` have src, dst and, if there is anything to add to a cost, weight."""

    base: DataFrame
    arcs: DataFrame
    carried: tuple[str, ...]
    end: tuple[str, ...]
    cost: Cost | None

    @property
    def cost_column(self) -> str:
        return f"c{self.cost.column}" if self.cost else ""


def _carried(paths: Paths) -> tuple[int, ...]:
    match paths:
        case Closure(source=source, target=target):
            return tuple(s for s in source if s not in target)
        case Reach(carried=carried):
            return carried
        case _:
            raise TypeError(paths)


def _graph(paths: Paths, base: DataFrame, relations: Mapping[str, DataFrame]) -> _Graph:
    match paths:
        case Closure(source=source, target=end):
            if paths.both_ways:
                swap = dict(zip((*source, *end), (*end, *source), strict=True))
                names = [f"c{swap.get(i, i)}" for i in range(len(base.columns))]
                base = base.union(base.select(*names))
            itself = Arc(paths.pred, source, end, weight=paths.cost.column if paths.cost else None)
            arcs = [_arcs(itself, base)]
        case Reach(end=end):
            arcs = [_arcs(arc, relations[arc.pred]) for arc in paths.arcs]
        case _:
            raise TypeError(paths)
    together = reduce(DataFrame.union, arcs)
    if paths.cost is not None and "weight" in together.columns:
        best = F.min if paths.cost.best == "min" else F.max
        together = together.groupBy("src", "dst").agg(best("weight").alias("weight"))
    else:
        together = together.select("src", "dst").distinct()
    return _Graph(
        base.withColumn("node", _node(base, end)),
        together,
        tuple(f"c{c}" for c in _carried(paths)),
        tuple(f"c{c}" for c in end),
        paths.cost,
    )


def _arcs(arc: Arc, rows: DataFrame) -> DataFrame:
    for column, const in arc.where:
        rows = rows.filter(rows[f"c{column}"] == F.lit(const.value))
    for one, other in arc.same:
        rows = rows.filter(rows[f"c{one}"] == rows[f"c{other}"])
    made = [_node(rows, arc.tail).alias("src"), _node(rows, arc.head).alias("dst")]
    match arc.weight:
        case None:
            pass
        case Const(value):
            made.append(F.lit(value).alias("weight"))
        case column:
            made.append(rows[f"c{column}"].alias("weight"))
    return rows.select(*made)


def _node(rows: DataFrame, columns: tuple[int, ...]) -> Column:
    """A node's name: one value, or the same fields whichever columns they come from."""
    if len(columns) == 1:
        return rows[f"c{columns[0]}"]
    return F.struct(*(rows[f"c{c}"].alias(f"n{i}") for i, c in enumerate(columns)))


def _end_of(graph: _Graph, node: str) -> list[Column]:
    """A node's name as the columns of the predicate again."""
    if len(graph.end) == 1:
        return [F.col(node).alias(graph.end[0])]
    return [F.col(f"{node}.n{i}").alias(name) for i, name in enumerate(graph.end)]


def _nodes(graph: _Graph) -> DataFrame:
    ends = [graph.arcs.select("src"), graph.arcs.select("dst"), graph.base.select("node")]
    return reduce(DataFrame.union, ends).toDF("id").distinct()


# ------------------------------------------------------------------------------ by components


def _by_components(paths: Paths) -> bool:
    return paths.symmetric and (paths.cost is None or paths.cost.combine is None)


def _components(graph: _Graph, used: list[DataFrame]) -> DataFrame:
    """What reaches one node of a component reaches them all."""
    nodes, arcs = _nodes(graph), graph.arcs.select("src", "dst")
    numbers = None
    if not isinstance(nodes.schema["id"].dataType, LongType):
        numbers = _numbered(nodes)
        for end in ("src", "dst"):
            numbered = numbers.select(
                F.col("id").alias(end), F.col("number").alias(f"{end}_number")
            )
            arcs = arcs.join(numbered, end)
        arcs = arcs.select(F.col("src_number").alias("src"), F.col("dst_number").alias("dst"))
        nodes = numbers.select(F.col("number").alias("id"))
    component = connected_components(cut(nodes), cut(arcs))
    used.append(component)
    if numbers is not None:
        component = component.withColumnRenamed("id", "number").join(numbers, "number")
    labelled = graph.base.withColumnRenamed("node", "id").join(component, "id")
    if graph.cost is None:
        labels = labelled.select(*graph.carried, "component").distinct()
    else:
        groups = labelled.groupBy(*graph.carried, "component")
        best = F.min if graph.cost.best == "min" else F.max
        labels = groups.agg(best(graph.cost_column).alias(graph.cost_column))
    return labels.join(component, "component").select("*", *_end_of(graph, "id"))


def _numbered(rows: DataFrame) -> DataFrame:
    """Distinct rows with a `number` that stays theirs, so they must be computed now."""
    return cut(rows.withColumn("number", F.monotonically_increasing_id()))


# ----------------------------------------------------------------------------------- by Pregel


def _pregel(graph: _Graph, paths: Paths, rounds: int | None, used: list[DataFrame]) -> DataFrame:
    from graphframes.lib import Pregel

    base, labels = _labelled(graph)
    kind = One if not graph.carried else Costs if graph.cost else Labels
    state: State = kind(graph.cost)
    first = _nodes(graph).join(state.start(base), "id", "left")
    nodes = cut(first.select("id", F.col("start").alias("before"), F.col("start").alias("news")))
    if graph.cost is not None and not graph.cost.ends and rounds is None:
        rounds = nodes.count() + 1
    arcs, message, known = without_size(cut(graph.arcs)), Pregel.msg(), F.col("known")
    left = rounds
    while True:
        done = pregel(
            without_size(nodes),
            arcs,
            columns=(
                ("known", F.col("before"), state.known(known, message)),
                ("fresh", F.col("news"), state.fresh(known, message)),
            ),
            message=state.message(Pregel.src("fresh"), Pregel.edge("weight")),
            gathered=state.gathered(message),
            sends="fresh",
            # A node is active if something has come to it; so the last round finds nothing fresh.
            is_active=(~state.is_empty(F.col("news")), message.isNotNull()),
            rounds=ROUNDS_AT_ONCE if left is None else min(left, ROUNDS_AT_ONCE),
        )
        used.append(done)
        # What is fresh where no arc begins goes nowhere.
        fresh = done.filter(~state.is_empty(F.col("fresh")))
        if fresh.join(arcs, fresh["id"] == arcs["src"], "left_semi").isEmpty():
            break
        if left is not None and left <= ROUNDS_AT_ONCE:
            because = f": {graph.cost.requires}" if graph.cost and graph.cost.requires else ""
            raise EndlessError(f"`{paths.pred}` is not done after {rounds} rounds{because}")
        left = None if left is None else left - ROUNDS_AT_ONCE
        nodes = cut(done.select("id", known.alias("before"), F.col("fresh").alias("news")))
        release(used.pop())
    found = state.rows(done)
    if graph.cost is not None:
        found = found.withColumnRenamed("cost", graph.cost_column)
    if labels is not None:
        found = found.join(labels, "label")
    elif graph.carried:
        found = found.withColumnRenamed("label", graph.carried[0])
    return found.select("*", *_end_of(graph, "id"))


def _labelled(graph: _Graph) -> tuple[DataFrame, DataFrame | None]:
    """The base as node, label and cost. Several carried columns are a number each: sets and maps
    of Spark's are slow with structs."""
    cost = F.lit(True) if graph.cost is None else F.col(graph.cost_column)
    base = graph.base.withColumn("cost", cost)
    if len(graph.carried) < 2:
        names = graph.carried or ("cost",)
        return base.select("node", F.col(names[0]).alias("label"), "cost"), None
    labels = _numbered(graph.base.select(*graph.carried).distinct())
    labels = labels.withColumnRenamed("number", "label")
    return base.join(labels, list(graph.carried)).select("node", "label", "cost"), labels
