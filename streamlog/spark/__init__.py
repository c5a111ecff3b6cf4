"""Rules over Spark DataFrames: `run` over complete data, `start` over streaming DataFrames."""

from pyspark.sql import DataFrame

from streamlog.spark.batch import Answers, Metrics, run
from streamlog.spark.run_status import Status
from streamlog.spark.session import session
from streamlog.spark.start import Running, start

__all__ = ["Answers", "DataFrame", "Metrics", "Running", "Status", "run", "session", "start"]
