from common import read, write
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812


def run(data, out):
    trades = read(data, "trade", "T TIMESTAMP, id BIGINT, stock STRING, volume BIGINT")
    window = Window.partitionBy("stock").orderBy("T").rowsBetween(-9, 0)
    write(trades.select("T", "stock", F.sum("volume").over(window).alias("volume")), out)
