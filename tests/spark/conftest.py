"""One Spark session for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from streamlog.spark.session import session

# The data are tiny: compiling queries to Java would take longer than running them.
TINY = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.driver.memory": "2g",
}


@pytest.fixture(scope="session", autouse=True)
def spark() -> Iterator[SparkSession]:
    made = session("local[2]", TINY)
    yield made
    made.stop()
