"""The lines of files with their numbers, which Spark's own reader does not tell.

It reads files in blocks, the lines of a block in their order. So a line's number is how many lines
the blocks before its own have, and how many come before it in its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamlog.runtime.data_files import literal

FILE, NUMBER = "file", "number"
_BLOCK, _ID = "block", "id"


def located(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """The lines of files, for `numbered`."""
    return spark.read.text(literal(files), lineSep="\n").selectExpr(
        "value",
        f"_metadata.file_path AS {FILE}",
        f"_metadata.file_block_start AS {_BLOCK}",
        f"MONOTONICALLY_INCREASING_ID() AS {_ID}",
    )


def numbered(some: DataFrame, lines: DataFrame) -> DataFrame:
    """Some of the lines (`located`), with the `number` of each. To count all the lines is a job of
    its own; none are moved or sorted."""
    blocks = lines.groupBy(FILE, _BLOCK).agg(
        F.min(_ID).alias("first"), F.count(F.lit(1)).alias("lines")
    )
    before = f"SUM(lines) OVER (PARTITION BY {FILE} ORDER BY {_BLOCK}) - lines AS before"
    blocks = blocks.selectExpr(FILE, _BLOCK, "first", before)
    found = some.join(F.broadcast(blocks), [FILE, _BLOCK])
    return found.withColumn(NUMBER, F.expr(f"before + {_ID} - first + 1"))
