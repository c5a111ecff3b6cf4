from common import read, write
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812


def run(data, out):
    """The next report of the area at or after each pre-alarm, in one pass over both."""
    schema = "T TIMESTAMP, area STRING"
    asked = read(data, "pre_alarm", schema).withColumn("report", F.lit(None).cast("timestamp"))
    reports = read(data, "report", schema).withColumn("report", F.col("T"))
    latest_first = Window.partitionBy("area").orderBy(
        F.col("T").desc(), F.col("report").isNull().asc()
    )
    up_to_here = latest_first.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    both = asked.unionByName(reports).withColumn("next", F.min("report").over(up_to_here))
    due = F.col("T") + F.expr("INTERVAL 5 MINUTES")
    unanswered = F.col("report").isNull() & (F.col("next").isNull() | (F.col("next") > due))
    write(both.where(unanswered).select("T", "area").distinct(), out)
