from common import read, write
from pyspark.sql import functions as F  # noqa: N812


def run(data, out):
    messages = read(data, "msg", "T BIGINT, code STRING")
    write(messages.groupBy("code").agg(F.min("T").alias("T")).select("T", "code"), out)
