from common import read, write
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812


def run(data, out):
    trades = read(data, "trade", "T TIMESTAMP, id BIGINT, stock STRING, volume BIGINT")
    hour = F.date_trunc("hour", "T").alias("T")
    volumes = trades.groupBy(hour, "stock").agg(F.sum("volume").alias("volume"))
    place = F.row_number().over(Window.partitionBy("T").orderBy(F.desc("volume"), "stock"))
    write(volumes.withColumn("place", place).where("place <= 3").drop("place"), out)
