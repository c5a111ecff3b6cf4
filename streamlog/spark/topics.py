"""Kafka topics: `kafka://host:port/topic`, whose messages are rows as JSON.

What stands behind a `?` goes to Spark's connector: `?maxOffsetsPerTrigger=10000`,
`?startingOffsets=latest`, `?kafka.security.protocol=SSL`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl

import pyspark
from attrs import frozen
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from streamlog.runtime.addresses import redacted
from streamlog.runtime.sources import SourceError

SCHEME = "kafka://"
_LINE = ".".join(pyspark.__version__.split(".")[:2])
# What a session needs. The connector of a line's first release does for all of its releases,
# and the newest release of Spark can be out before its connector is.
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{_LINE}.0"

# Where a message is, in SQL.
PLACE = "CONCAT(topic, '[', partition, ']@', offset)"

_OLDER = "spark.sql.sources.useV1SourceList"


@frozen
class Topic:
    name: str
    options: dict[str, str]

    @staticmethod
    def of(address: str) -> Topic:
        place, _, more = address.removeprefix(SCHEME).partition("?")
        servers, _, topic = place.partition("/")
        if not (servers and topic) or "/" in topic:
            raise SourceError(
                f"a topic is written kafka://host:port/topic, not '{redacted(address, [address])}'"
            )
        return Topic(topic, {"kafka.bootstrap.servers": servers, **dict(parse_qsl(more))})


def messages(spark: SparkSession, address: str, *, stream: bool) -> DataFrame:
    """The texts of a topic's messages, from its beginning: those that are there, or all to come."""
    topic = Topic.of(address)
    options = {"subscribe": topic.name, "startingOffsets": "earliest", **topic.options}
    reader = spark.readStream if stream else spark.read
    with _connected():
        found = reader.format("kafka").options(**options).load()
    # A message without a value is no row, which is for the checks to say.
    value = "COALESCE(CAST(value AS STRING), 'null') AS value"
    return found.selectExpr(value, "topic", "partition", "offset")


def send(texts: DataFrame, address: str) -> None:
    """A message for each text (`value`). Sent again after a crash, they are there twice."""
    topic = Topic.of(address)
    writer = texts.write.format("kafka").options(**topic.options).option("topic", topic.name)
    with _connected(), _counting(texts.sparkSession):
        writer.mode("append").save()


@contextmanager
def _counting(spark: SparkSession) -> Iterator[None]:
    """Spark's older way to write to Kafka, its default, hides from `observe` what it computes."""
    before = spark.conf.get(_OLDER) or ""
    spark.conf.set(_OLDER, ",".join(n for n in before.split(",") if n != "kafka"))
    try:
        yield
    finally:
        spark.conf.set(_OLDER, before)


@contextmanager
def _connected() -> Iterator[None]:
    try:
        yield
    except AnalysisException as error:
        if "kafka" not in str(error).lower() or "find" not in str(error):
            raise
        raise SourceError(
            f"this Spark has no connector to Kafka: start it with --packages {CONNECTOR}"
        ) from None
