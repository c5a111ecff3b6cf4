"""Calls to GraphFrames, whose JVM part may have any version from 0.9.1 to 0.12.

The Python part has a method for every setter of its own version; the JVM part may be older. So a
setter is called only where the JVM part has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pyspark.errors import IllegalArgumentException
from pyspark.sql import Column, DataFrame, SparkSession

PACKAGE = "graphframes-py"
ARTIFACT = "io.graphframes:graphframes-spark{major}_2.13:{version}"
# Apache Sedona's jar has the classes of GraphFrames 0.9.2 in it, under their own names.
ELSEWHERE = "org.apache.sedona:sedona-spark-shaded-4.0_2.13:1.8.0"
# Checkpoints: plans that grow for two rounds take longer than small rounds do, and Pregel 0.9 does
# not find again what it has cached.
EVERY_ROUND = 1
NO_BROADCAST, NOT_EVEN_LARGE_ONES = -1, 2**31 - 1


def available(spark: SparkSession) -> str | None:
    """None when GraphFrames can be used, else the sentence that says what is missing."""
    try:
        wanted = version(PACKAGE)
        import graphframes  # noqa: F401
    except (PackageNotFoundError, ImportError) as missing:
        return f"GraphFrames cannot be imported ({missing}): install {PACKAGE} and numpy"
    artifact = ARTIFACT.format(major=spark.version.split(".")[0], version=wanted)
    if _loader(spark).getResource("org/graphframes/lib/Pregel.class") is None:
        asked = spark.conf.get("spark.jars.packages", "") or ""
        if "graphframes" in asked or ELSEWHERE in asked:
            return (
                "spark.jars.packages names the JVM part of GraphFrames, but it is not on the class "
                f"path: {asked} was not resolved, or Spark was running before it was asked for"
            )
        return (
            "the JVM part of GraphFrames is not on the class path: start Spark with "
            f"--packages {artifact} or, if that cannot be resolved, --packages {ELSEWHERE}"
        )
    known = setters(spark)
    if "setEarlyStopping" not in known:
        return f"the JVM part of GraphFrames is older than 0.9.1: use {artifact} or {ELSEWHERE}"
    if "setUseLocalCheckpoints" not in known and not has_directory(spark):
        return (
            "this version of GraphFrames, older than 0.10, cannot keep checkpoints with the "
            "executors and needs a checkpoint directory: add --conf spark.checkpoint.dir=DIR, or "
            "call sparkContext.setCheckpointDir"
        )
    return None


def _loader(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.java.lang.Thread.currentThread().getContextClassLoader()


def setters(spark: SparkSession) -> frozenset[str]:
    """The methods that the JVM part's Pregel has."""
    pregel = _loader(spark).loadClass("org.graphframes.lib.Pregel")
    return frozenset(method.getName() for method in pregel.getMethods())


# ------------------------------------------------------------------------------- checkpoints


def has_directory(spark: SparkSession) -> bool:
    """Whether checkpoints go to a directory; else they stay with the executors."""
    return spark.sparkContext.getCheckpointDir() is not None


def cut(frame: DataFrame) -> DataFrame:
    """The frame, computed, without its lineage."""
    return frame.checkpoint() if has_directory(frame.sparkSession) else frame.localCheckpoint()


def without_size(frame: DataFrame) -> DataFrame:
    """The frame, about whose size Spark knows nothing. A checkpoint keeps the estimate."""
    spark = frame.sparkSession
    made = spark._jsparkSession.createDataFrame(frame._jdf.rdd(), frame._jdf.schema())
    return DataFrame(made, spark)


# ------------------------------------------------------------------------------------- calls


def pregel(
    nodes: DataFrame,
    arcs: DataFrame,
    *,
    columns: Iterable[tuple[str, Column, Column]],
    message: Column,
    gathered: Column,
    sends: str,
    is_active: tuple[Column, Column],
    rounds: int,
) -> DataFrame:
    """The nodes after as many rounds of messages as something came of, or after `rounds`.

    `nodes` and `arcs` are cut: Pregel 0.9 reads them anew in each round, and see `release`.
    `columns` are the nodes' new columns: name, value at first, value after each round. `message`
    is sent along an arc; it is null where a node has nothing to say. `sends` is the column of the
    sender that it reads. `is_active` says at first and after each round which nodes may send.
    """
    from graphframes import GraphFrame

    made = configured(
        GraphFrame(nodes, arcs).pregel,
        setters(nodes.sparkSession),
        sends=sends,
        reads=[name for name in arcs.columns if name not in ("src", "dst")],
        is_active=is_active,
        is_local=not has_directory(nodes.sparkSession),
    )
    made.setMaxIter(rounds).setCheckpointInterval(EVERY_ROUND)
    for name, first, then in columns:
        made.withVertexColumn(name, first, then)
    done: DataFrame = made.sendMsgToDst(message).aggMsgs(gathered).run()
    return done


def configured(
    made: Any,
    known: frozenset[str],
    *,
    sends: str,
    reads: list[str],
    is_active: tuple[Column, Column],
    is_local: bool,
) -> Any:
    """Pregel with the options that this JVM part knows."""
    if "setStopIfAllNonActiveVertices" in known:
        made.setInitialActiveVertexExpression(is_active[0])
        made.setUpdateActiveVertexExpression(is_active[1])
        made.setSkipMessagesFromNonActiveVertices(True).setStopIfAllNonActiveVertices(True)
    else:
        made.setEarlyStopping(True)
    if "setUseLocalCheckpoints" in known:
        made.setUseLocalCheckpoints(is_local)
    if "requiredSrcColumns" in known:
        made.required_src_columns(sends)
    if "requiredEdgeColumns" in known and reads:  # from then on arcs come without their columns
        made.required_edge_columns(*reads)
    return made


def connected_components(nodes: DataFrame, arcs: DataFrame) -> DataFrame:
    """The nodes with a number that is the same within a component.

    `nodes` and `arcs` are cut, and the ids are integers: others GraphFrames would number too, but
    keep the numbers cached forever.
    """
    spark = nodes.sparkSession
    jvm: Any = spark._jvm
    # Not by the Python part, which calls setters that GraphFrames 0.9 does not have.
    made = jvm.org.graphframes.GraphFrame.apply(nodes._jdf, arcs._jdf).connectedComponents()
    _first_valid(made.setAlgorithm, "two_phase", "graphframes")
    _first_valid(made.setBroadcastThreshold, NO_BROADCAST, NOT_EVEN_LARGE_ONES)
    made.setCheckpointInterval(EVERY_ROUND)
    if not has_directory(spark):
        made.setUseLocalCheckpoints(True)
    return DataFrame(made.run(), spark)


def _first_valid(setter: Any, newer: Any, older: Any) -> None:
    """Versions before the newer value meant anything refuse it."""
    try:
        setter(newer)
    except IllegalArgumentException:
        setter(older)


def release(found: DataFrame) -> None:
    """Free a result. Pregel 0.9 caches what its result is made of and not the result itself; in
    the result's plan that has other names, so it is found by the RDDs that it reads."""
    found.unpersist()
    spark: Any = found.sparkSession
    manager = spark._jsparkSession.sharedState().cacheManager()
    field = manager.getClass().getDeclaredField("cachedData")
    field.setAccessible(True)
    mine = _rdds(found._jdf.queryExecution().analyzed())
    for plan in [entry.plan() for entry in _items(field.get(manager))]:
        # Nobody else can read these: nodes and arcs were cut for this call.
        if (rdds := _rdds(plan)) and rdds <= mine:
            manager.uncacheQuery(spark._jsparkSession, plan, False)


def _rdds(plan: Any) -> set[int]:
    leaves = _items(plan.collectLeaves())
    return {leaf.rdd().id() for leaf in leaves if leaf.nodeName() == "LogicalRDD"}


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(number) for number in range(sequence.size()))
