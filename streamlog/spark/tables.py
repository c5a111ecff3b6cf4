"""Tables of databases, `jdbc:postgresql://host/db?table=staff`, and of Delta Lake, `delta:path`, by
Spark's own connectors.

Over complete data a table is replaced. In micro-batches rows are added, with the number of their
batch in the column `batch`: a batch that is repeated after a crash replaces what is there of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, urlencode

from attrs import frozen
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamlog.runtime.addresses import DELTA, JDBC, redacted
from streamlog.runtime.data_files import SourceError
from streamlog.runtime.envelope import CheckpointError
from streamlog.spark.failures import explained
from streamlog.spark.files import Files

BATCH = "batch"
_NONE: Mapping[str, str] = MappingProxyType({})


@frozen
class Connector:
    """What a session needs for an address."""

    prefix: str
    package: str
    settings: Mapping[str, str] = _NONE
    driver: str = ""

    @property
    def artifact(self) -> str:
        return self.package.split(":")[1]


CONNECTORS = (
    Connector(
        DELTA,
        "io.delta:delta-spark_2.13:4.2.0",
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    ),
    Connector(
        f"{JDBC}postgresql:", "org.postgresql:postgresql:42.7.4", driver="org.postgresql.Driver"
    ),
)


# What Spark says when it has no connector, or one without its settings.
_MISSING = (
    "DATA_SOURCE_NOT_FOUND",
    "No suitable driver",
    "ClassNotFoundException",
    "DELTA_CONFIGURE_SPARK",
)


def is_table(place: str) -> bool:
    return place.startswith((JDBC, DELTA))


@frozen
class Table:
    address: str
    format: str
    options: Mapping[str, str]
    path: str = ""  # of Delta Lake

    @staticmethod
    def of(address: str) -> Table:
        if address.startswith(DELTA):
            path = address.removeprefix(DELTA)
            # Java's working folder stays where it was started.
            path = path if "://" in path else str(Path(path).absolute())
            return Table(address, "delta", {"path": path}, path)
        url, _, more = address.partition("?")
        options = dict(parse_qsl(more, keep_blank_values=True))
        name = options.pop("table", "")
        if not name:
            raise SourceError(
                "a table of a database is written jdbc:…?table=name, not "
                f"'{redacted(address, [address])}'"
            )
        known = (c.driver for c in CONNECTORS if address.startswith(c.prefix))
        driver = options.pop("driver", next(known, ""))
        url += f"?{urlencode(options)}" if options else ""
        # Without a zone, a time counts as UTC, wherever Java takes itself to be.
        found = {"url": url, "dbtable": name, "preferTimestampNTZ": "true"}
        return Table(address, "jdbc", {**found, "driver": driver} if driver else found)

    @property
    def shown(self) -> str:
        return redacted(self.address, [self.address])

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Within, errors say what is wrong, and no password."""
        try:
            with explained():
                yield
        except (SourceError, AnalysisException, Py4JJavaError) as error:
            text = str(error)
            if "[FAILED_JDBC" in text:
                text = _cause(error)
            if not any(sign in text for sign in _MISSING):
                if not isinstance(error, SourceError) and "[FAILED_JDBC" not in str(error):
                    raise
                raise SourceError(redacted(f"'{self.shown}': {text}", [self.address])) from None
            known = [c for c in CONNECTORS if self.address.startswith(c.prefix)]
            hint = "--packages COORDINATES of its driver"
            if known:
                conf = (f" --conf {key}={value}" for key, value in known[0].settings.items())
                hint = f"--packages {known[0].package}{''.join(conf)}"
            raise SourceError(
                f"this Spark has no connector for '{self.shown}': start it with {hint}"
            ) from None

    # ---------------------------------------------------------------------------- databases

    @contextmanager
    def _connection(self, spark: SparkSession) -> Iterator[tuple[Any, Any]]:
        """A connection of the driver's, and what Spark knows of the table."""
        java: Any = spark._jvm
        options = java.org.apache.spark.api.python.PythonUtils.toScalaMap(dict(self.options))
        jdbc = java.org.apache.spark.sql.execution.datasources.jdbc
        written = jdbc.JdbcOptionsInWrite(self.options["url"], self.options["dbtable"], options)
        dialect = java.org.apache.spark.sql.jdbc.JdbcDialects.get(self.options["url"])
        connection = dialect.createConnectionFactory(written).apply(-1)
        try:
            yield connection, written
        finally:
            connection.close()

    def exists(self, spark: SparkSession) -> bool:
        if self.path:
            return bool(Files(spark, self.path).names("_delta_log"))
        java: Any = spark._jvm
        with self._connection(spark) as (connection, written):
            jdbc = java.org.apache.spark.sql.execution.datasources.jdbc
            return bool(jdbc.JdbcUtils.tableExists(connection, written))

    def delete(self, spark: SparkSession, batch: int) -> None:
        java: Any = spark._jvm
        column = java.org.apache.spark.sql.jdbc.JdbcDialects.get(
            self.options["url"]
        ).quoteIdentifier(BATCH)
        with self._connection(spark) as (connection, _):
            statement = connection.createStatement()
            statement.executeUpdate(
                f"DELETE FROM {self.options['dbtable']} WHERE {column} = {batch}"
            )
            statement.close()


def _cause(error: Any) -> str:
    """What the driver of a database said."""
    java = error._origin
    while java.getCause() is not None:
        java = java.getCause()
    return f"{java.getClass().getSimpleName()}: {java.getMessage()}"


# --------------------------------------------------------------------------------- reading


def rows_of(spark: SparkSession, address: str, *, stream: bool) -> DataFrame:
    """What a table has by now, or also all that will be added to it."""
    table = Table.of(address)
    if stream and not table.path:
        raise SourceError(
            f"'{table.shown}' cannot be followed: a table of a database is read as a whole, for a "
            "`table`, or for a stream without --follow and --checkpoint"
        )
    reader: Any = spark.readStream if stream else spark.read
    with table.connected():
        if table.path and not table.exists(spark):
            raise SourceError("it is not a Delta table")
        found: DataFrame = reader.format(table.format).options(**table.options).load()
    return found


# --------------------------------------------------------------------------------- writing


def put(frame: DataFrame, address: str, batch: int | None) -> None:
    """Rows, in place of those of the batch; without a batch, in place of all."""
    table, spark = Table.of(address), frame.sparkSession
    if batch is not None:
        if BATCH in (name.lower() for name in frame.columns):
            raise SourceError(
                f"'{table.shown}' has a column `{BATCH}` for the number of the micro-batch: give "
                "the answers' own another name"
            )
        frame = frame.withColumn(BATCH, F.lit(batch).cast("bigint"))
    writer = frame.write.format(table.format).options(**table.options)
    with table.connected():
        is_replaced = batch is None and table.exists(spark)
        if is_replaced and BATCH in rows_of(spark, address, stream=False).columns:
            raise SourceError(
                f"its column `{BATCH}` says that it is an output of micro-batches, so complete "
                "data cannot replace it"
            )
        if table.path:
            writer = writer.mode("overwrite")
            writer = writer.option("overwriteSchema", "true") if batch is None else writer
            writer = writer if batch is None else writer.option("replaceWhere", _is(batch))
            writer.save()
        elif batch is None:
            writer.mode("overwrite").option("truncate", "true").save()
        else:
            if table.exists(spark):
                table.delete(spark, batch)
            writer.mode("append").save()


def clear(spark: SparkSession, address: str, batch: int) -> None:
    """A batch has no rows after all."""
    table = Table.of(address)
    with table.connected():
        if not table.exists(spark):
            return
        if table.path:
            nothing = spark.read.format("delta").load(table.path).where("FALSE")
            writer = nothing.write.format("delta").mode("overwrite")
            writer.option("replaceWhere", _is(batch)).save(table.path)
        else:
            table.delete(spark, batch)


def check_batches(spark: SparkSession, address: str, last: int) -> None:
    """That a table has no batches later than the last of this run."""
    table = Table.of(address)
    with table.connected():
        if not table.exists(spark):
            return
        found = rows_of(spark, address, stream=False)
        if BATCH not in found.columns:
            raise SourceError(
                f"it has no column `{BATCH}`, so it is not an output of micro-batches"
            )
        other = found.agg(F.max(BATCH)).collect()[0][0]
    if other is not None and other > last:
        raise CheckpointError(
            f"'{table.shown}' has answers that are not of this run: those of batch {other}; give a "
            "new table, or delete them"
        )


def _is(batch: int) -> str:
    return f"{BATCH} = {batch}"
