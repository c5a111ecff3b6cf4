"""The one place that starts Spark, or takes the session that is there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

# For one machine and small data; nothing here changes an answer.
LOCAL: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # Every stage that is re-planned is a job of its own, and jobs are what small data costs.
    "spark.sql.adaptive.enabled": "false",
    # A broadcast is a job too; tables are broadcast where that is asked for.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The plans of rules with many goals are deep.
    "spark.driver.extraJavaOptions": "-Xss16m",
}


# For a few rows: compiling queries to Java would take longer than running them.
TINY: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Nor does Java itself run long enough for its second compiler to pay.
    "spark.driver.extraJavaOptions": f"{LOCAL['spark.driver.extraJavaOptions']} "
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
}


class SessionError(Exception):
    """Spark does not start, or the session cannot give right answers as it is set."""


def session(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    packages: Iterable[str] = (),
) -> SparkSession:
    """The active session, else a new one.

    A session that somebody else made is taken as it is. The local settings are for a master in
    this process; on a cluster, and under `spark-submit`, Spark's own stand, but for `conf`.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return usable(active)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is None and not submitted:
        master = "local[*]"
    # Workers must run this very Python, with the packages it has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master is not None and master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        quiet = (Path(__file__).parent / "log4j2.properties").as_uri()
        os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile={quiet}")
    builder = SparkSession.builder.appName("streamlog")
    if master is not None:
        builder = builder.master(master)
    settings = dict(LOCAL) if master is not None and master.startswith("local") else {}
    settings.setdefault("spark.sql.ansi.enabled", "true")
    if packages:
        settings["spark.jars.packages"] = ",".join(packages)
    for key, value in {**settings, **(conf or {})}.items():
        builder = builder.config(key, value)
    try:
        return usable(builder.getOrCreate())
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        asked = settings.get("spark.jars.packages")
        hint = f"; was {asked} to be had?" if asked else ""
        raise SessionError(
            f"Spark did not start: Java has ended, for the reason that it gives above{hint}"
        ) from None


def usable(spark: SparkSession) -> SparkSession:
    """The session, unless its settings would let wrong answers pass."""
    if spark.conf.get("spark.sql.ansi.enabled") != "true":
        raise SessionError(
            "this Spark session has spark.sql.ansi.enabled=false: a number beyond 64 bits would "
            "become a wrong answer instead of an error; set it to true"
        )
    return spark


class Jobs:
    """Counts the jobs that Spark runs inside a `with` block, whoever asks for them."""

    def __init__(self, spark: SparkSession, what: str) -> None:
        self._context: Any = spark.sparkContext
        self._what = what
        self.count = 0

    def __enter__(self) -> Jobs:
        self._before = self._context.getLocalProperty(_DESCRIPTION)
        self._context.setLocalProperty(_DESCRIPTION, self._what)
        self._start = self._total()
        return self

    def __exit__(self, *failure: object) -> None:
        self.count = self._total() - self._start
        self._context.setLocalProperty(_DESCRIPTION, self._before)

    def _total(self) -> int:
        return int(self._context._jsc.sc().dagScheduler().numTotalJobs())


_DESCRIPTION = "spark.job.description"
