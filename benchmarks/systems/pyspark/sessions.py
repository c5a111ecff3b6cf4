from common import read, write
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812


def run(data, out):
    clicks = read(data, "click", "T TIMESTAMP, id BIGINT, user STRING")
    window = Window.partitionBy("user").orderBy("T")
    gap = F.unix_seconds("T") - F.unix_seconds(F.lag("T").over(window))
    clicks = clicks.withColumn("begins", F.coalesce(gap > 1800, F.lit(True)).cast("int"))
    clicks = clicks.withColumn("session", F.sum("begins").over(window))
    sessions = clicks.groupBy("user", "session").agg(
        F.max("T").alias("T"), F.min("T").alias("B"), F.count("*").alias("clicks")
    )
    write(sessions.select("T", "user", "B", "clicks"), out)
