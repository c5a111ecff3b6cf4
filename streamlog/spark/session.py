"""The one place that starts Spark, or takes the session that is there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import uuid4

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from streamlog.runtime.executor import LimitError, Limits
from streamlog.runtime.memory import size
from streamlog.spark.failures import in_our_words

# For Spark that is started here, wherever its tasks run.
OURS: Mapping[str, str] = {
    "spark.app.name": "streamlog",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # The plans of rules with many goals are deep.
    "spark.driver.extraJavaOptions": "-Xss16m",
}

# For one machine and small data; nothing here changes an answer.
LOCAL: Mapping[str, str] = {
    **OURS,
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # Every stage that is re-planned is a job of its own, and jobs are what small data costs.
    "spark.sql.adaptive.enabled": "false",
    # A broadcast is a job too; tables are broadcast where that is asked for.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
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
    this process; on a cluster Spark's own stand, and under `spark-submit` what it was told.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return usable(active)
    given = dict(conf or {})
    if packages:
        given["spark.jars.packages"] = ",".join(packages)
    if is_submitted():
        return _submitted(master, given)
    master = master or "local[*]"
    local = master.startswith("local")
    # Workers must run this very Python, with the packages it has, unless told where theirs is.
    os.environ.setdefault("PYSPARK_PYTHON", given.get("spark.pyspark.python", sys.executable))
    quiet = (Path(__file__).parent / "log4j2.properties").as_uri()
    os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile={quiet}")
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {"spark.master": master, **(LOCAL if local else OURS), **given}
    return _built(settings, launch=SparkContext._gateway is None)


_LEAST = 2**29  # bytes, below which Spark does not start
_PATIENCE = 5.0  # seconds


def with_memory(conf: Mapping[str, str], memory: int | None) -> Mapping[str, str]:
    """Settings under which Java, where queries run, takes no more than kernels may (`Limits`)."""
    if memory is None:
        return conf
    if is_submitted() or SparkSession.getActiveSession() is not None:
        raise SessionError(
            "--max-memory is too late for Spark that runs already: give spark-submit "
            "--driver-memory and --executor-memory"
        )
    if memory < _LEAST:
        raise SessionError(f"Spark needs --max-memory {size(_LEAST).replace(' ', '')} or more")
    kilobytes = f"{memory // 1024}k"
    return {"spark.driver.memory": kilobytes, "spark.executor.memory": kilobytes, **conf}


def is_submitted() -> bool:
    """Whether `spark-submit` has started this process, and a JVM for it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _submitted(master: str | None, given: Mapping[str, str]) -> SparkSession:
    """In a JVM that `spark-submit` has started: it is too late for some settings."""
    late = [key for key in given if key == "spark.jars.packages" or "spark.driver." in key]
    if master is not None or late:
        what = "--master" if master is not None else late[0]
        raise SessionError(f"spark-submit has started Spark already; give it {what} instead")
    return _built({"spark.sql.ansi.enabled": "true", **given})


def _built(settings: Mapping[str, str], *, launch: bool = False) -> SparkSession:
    """`launch`: in a JVM that is started for it, as there is none yet."""
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        if launch:
            conf = SparkConf().setAll(list(settings.items()))
            SparkContext(conf=conf, gateway=_launched(conf))
        return usable(builder.getOrCreate())
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        asked = settings.get("spark.jars.packages")
        hint = f"; was {asked} to be had?" if asked else ""
        raise SessionError(
            f"Spark did not start: Java has ended, for the reason that it gives above{hint}"
        ) from None


def _launched(conf: SparkConf) -> JavaGateway:
    """A JVM whose standard error is ours, but for a line that Java prints at each start, because
    Spark's launcher always asks for this module."""
    reading, writing = os.pipe()

    def copy() -> None:
        with os.fdopen(reading, "rb") as lines:
            for line in lines:
                if b"Using incubator modules: jdk.incubator.vector" not in line:
                    os.write(2, line)

    copying = Thread(target=copy, daemon=True)
    copying.start()
    try:
        launch: Any = launch_gateway  # has no types
        gateway: JavaGateway = launch(conf, {"stderr": writing})
    except PySparkRuntimeError:
        os.close(writing)
        copying.join(_PATIENCE)  # what Java has to say comes before what we say of it
        raise
    os.close(writing)
    return gateway


def usable(spark: SparkSession) -> SparkSession:
    """The session, unless its settings would let wrong answers pass."""
    if spark.conf.get("spark.sql.ansi.enabled") != "true":
        raise SessionError(
            "this Spark session has spark.sql.ansi.enabled=false: a number beyond 64 bits would "
            "become a wrong answer instead of an error; set it to true"
        )
    return spark


def is_local(spark: SparkSession) -> bool:
    """Whether tasks run in this process, and so see the files of this machine."""
    context: Any = spark.sparkContext
    return bool(context._jsc.sc().isLocal())


class Jobs:
    """Counts the jobs that Spark runs inside a `with` block, whoever asks for them; after
    `seconds` the block's own are cancelled, and it ends with a LimitError."""

    def __init__(self, spark: SparkSession, what: str, seconds: float | None = None) -> None:
        self._context: Any = spark.sparkContext
        self._what, self._seconds = what, seconds
        self.count = 0

    def __enter__(self) -> Jobs:
        self._before = self._context.getLocalProperty(_DESCRIPTION)
        self._context.setLocalProperty(_DESCRIPTION, self._what)
        self._start = self._total()
        self._over, self._ended = Event(), Event()
        if self._seconds is not None:
            self._tag = f"streamlog {uuid4()}"
            self._context.addJobTag(self._tag)
            self._watching = Thread(target=self._watch, args=(self._seconds,), daemon=True)
            self._watching.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._ended.set()
        if error is not None and self._is_gone():
            return
        self.count = self._total() - self._start
        self._context.setLocalProperty(_DESCRIPTION, self._before)
        if self._seconds is None:
            return
        self._watching.join()
        self._context.removeJobTag(self._tag)
        if isinstance(error, PySparkException | Py4JError) and self._over.is_set():
            known = in_our_words(error) if isinstance(error, PySparkException) else None
            limit = Limits(seconds=self._seconds).reached(0, 0, inf)
            raise known or LimitError(f"stopped after {limit}: {self._what}") from error

    def _watch(self, seconds: float) -> None:
        """A job that begins when time is up already is cancelled too."""
        while not self._ended.wait(seconds):
            self._over.set()
            self._context.cancelJobsWithTag(self._tag)
            seconds = _AGAIN

    def _is_gone(self) -> bool:
        """Spark ends itself when it has no more memory."""
        try:
            return bool(self._context._jsc.sc().isStopped())
        except Py4JError:
            return True

    def _total(self) -> int:
        return int(self._context._jsc.sc().dagScheduler().numTotalJobs())


_DESCRIPTION = "spark.job.description"
_AGAIN = 0.5  # seconds
