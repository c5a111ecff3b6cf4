"""PySpark jobs as we would write them for data without errors, in a warm session."""

import os
import sys
from functools import cache

from pyspark.sql import SparkSession

warm_ups = 2
TIME = "yyyy-MM-dd'T'HH:mm:ss'Z'"


@cache
def session():
    os.environ["PYSPARK_PYTHON"] = sys.executable  # of the tasks
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "4g",
    }
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


def read(data, name, schema):
    return session().read.csv(str(data / f"{name}.csv"), schema=schema, header=True)


def write(answers, out):
    answers.write.mode("overwrite").csv(str(out), header=True, timestampFormat=TIME)
