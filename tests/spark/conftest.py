"""One Spark session for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from streamlog.spark.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    made = session("local[2]")
    yield made
    made.stop()
