"""One Spark session for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from streamlog.spark.session import TINY, session


@pytest.fixture(scope="session", autouse=True)
def spark() -> Iterator[SparkSession]:
    made = session("local[2]", {**TINY, "spark.driver.memory": "2g"})
    yield made
    made.stop()
