from common import read, write
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

WEEK = 7 * 24 * 3600


def run(data, out):
    trades = read(data, "trade", "T TIMESTAMP, id BIGINT, stock STRING, volume BIGINT")
    seconds = F.col("T").cast("bigint")
    window = Window.partitionBy("stock").orderBy(seconds).rangeBetween(1 - WEEK, 0)
    answers = trades.select("T", "stock", F.sum("volume").over(window).alias("volume"))
    write(answers.distinct(), out)
