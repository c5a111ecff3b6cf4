"""Sums of floats on Spark, exact as those of the kernel."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf

from streamlog.plan.sql.aggregates import EXACT_SUM
from streamlog.runtime.functions import exact_sum


def register(spark: SparkSession) -> None:
    """Queries call it by name."""
    spark.udf.register(EXACT_SUM, arrow_udf(_sums, "double"))  # type: ignore[call-overload]


def _sums(values: pa.Array) -> pa.Array:
    """Of each list of floats."""
    return pa.array([exact_sum(some) for some in values.to_pylist()], pa.float64())
