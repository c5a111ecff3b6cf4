"""streamlog on Spark beside PySpark jobs written by hand for the same task.

    python benchmarks/spark.py [EVENTS]

Both read the same CSV files and write Parquet, in the same process and session, alternating, first
a few times to warm up; the ratio is of the medians. The hand-written jobs are what we would write
ourselves, and know their data to be without errors. `hot` is the same task with one key that has
half of the events.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

import streamlog
from streamlog.spark import session
from streamlog.spark.batch import evaluate
from streamlog.spark.inputs import Inputs
from streamlog.spark.session import Jobs
from streamlog.spark.sources import read

FIRST = """
stream msg(T: int, code: string).
output first.
first(T, X)    <- msg(T, X), not previous(T, X).
previous(T, X) <- msg(T0, X), T0 < T.
"""
ALARM = """
stream pre_alarm(T: time, area: string).
stream report(T: time, area: string).
output pc_alarm.
pc_alarm(T, A) <- pre_alarm(T, A), not (report(T1, A), T <= T1, T1 <= T + 5min).
"""
LATEST = """
stream price(T: int, stock: string, price: int).
stream trade(T: int, stock: string).
output traded.
traded(T, S, P) <-
    trade(T, S), price(T0, S, P), T0 <= T, not (price(T1, S, _), T0 < T1, T1 <= T).
"""
WARM_UPS, ROUNDS = 3, 5


def first_by_hand(spark: SparkSession, files: dict[str, Path]) -> DataFrame:
    messages = spark.read.csv(str(files["msg"]), schema="T BIGINT, code STRING", header=True)
    return messages.groupBy("code").agg(F.min("T").alias("T")).select("T", "code")


def alarm_by_hand(spark: SparkSession, files: dict[str, Path]) -> DataFrame:
    """The next report of the area at or after each pre-alarm, in one pass over both."""
    schema = "T TIMESTAMP, area STRING"
    asked = spark.read.csv(str(files["pre_alarm"]), schema=schema, header=True)
    reports = spark.read.csv(str(files["report"]), schema=schema, header=True)
    both = asked.withColumn("report", F.lit(None).cast("timestamp")).unionByName(
        reports.withColumn("report", F.col("T"))
    )
    latest_first = Window.partitionBy("area").orderBy(
        F.col("T").desc(), F.col("report").isNull().asc()
    )
    upto_here = latest_first.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    following = both.withColumn("next", F.min("report").over(upto_here))
    due = F.col("T") + F.expr("INTERVAL 5 MINUTES")
    unanswered = F.col("report").isNull() & (F.col("next").isNull() | (F.col("next") > due))
    return following.where(unanswered).select("T", "area").distinct()


def latest_by_hand(spark: SparkSession, files: dict[str, Path]) -> DataFrame:
    """Each trade with the price that came last before it, in one pass over both. It knows, as the
    rules do not, that a stock has one price at a time."""
    prices = spark.read.csv(
        str(files["price"]), schema="T BIGINT, stock STRING, price BIGINT", header=True
    )
    trades = spark.read.csv(str(files["trade"]), schema="T BIGINT, stock STRING", header=True)
    both = prices.withColumn("asks", F.lit(0)).unionByName(
        trades.withColumns({"price": F.lit(None).cast("bigint"), "asks": F.lit(1)})
    )
    upto_here = (
        Window.partitionBy("stock")
        .orderBy("T", "asks")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    found = both.withColumn("last", F.last("price", ignorenulls=True).over(upto_here))
    asked = found.where((F.col("asks") == 1) & F.col("last").isNotNull())
    return asked.select("T", "stock", F.col("last").alias("price"))


def made(folder: Path, name: str, rows: list[tuple[object, ...]], columns: str) -> Path:
    path = folder / f"{name}.csv"
    with path.open("w") as file:
        file.write(columns + "\n")
        file.writelines(",".join(map(str, row)) + "\n" for row in rows)
    return path


def messages(folder: Path, count: int, hot: bool) -> dict[str, Path]:
    rng = random.Random(1)
    codes = max(count // 10, 1)
    rows: list[tuple[object, ...]] = [
        (t, "c0" if hot and rng.random() < 0.5 else f"c{rng.randrange(codes)}")
        for t in range(count)
    ]
    return {"msg": made(folder, f"msg_{hot}", rows, "T,code")}


def alarms(folder: Path, count: int, hot: bool) -> dict[str, Path]:
    rng = random.Random(2)
    start = time.mktime((2026, 11, 1, 0, 0, 0, 0, 0, 0))
    rows: dict[str, list[tuple[object, ...]]] = {"pre_alarm": [], "report": []}
    for number in range(count):
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start + number * 0.3))
        area = "a0" if hot and rng.random() < 0.5 else f"a{rng.randrange(10_000)}"
        rows["pre_alarm" if rng.random() < 0.5 else "report"].append((at, area))
    return {n: made(folder, f"{n}_{hot}", r, "T,area") for n, r in rows.items()}


def trades(folder: Path, count: int, hot: bool) -> dict[str, Path]:
    rng = random.Random(3)
    rows: dict[str, list[tuple[object, ...]]] = {"price": [], "trade": []}
    for at in range(count):
        stock = "s0" if hot and rng.random() < 0.5 else f"s{rng.randrange(1_000)}"
        if rng.random() < 0.5:
            rows["price"].append((at, stock, rng.randrange(10_000)))
        else:
            rows["trade"].append((at, stock))
    columns = {"price": "T,stock,price", "trade": "T,stock"}
    return {n: made(folder, f"{n}_{hot}", r, columns[n]) for n, r in rows.items()}


def by_rules(text: str, spark: SparkSession, files: dict[str, Path], output: str) -> DataFrame:
    program = streamlog.compile(text)
    frames = {name: read(spark, path, name, program) for name, path in files.items()}
    # As `streamlog run` does: rows that SQL is not certain of would be noticed, and read anew.
    given = Inputs.of(spark, program, frames).without_python()
    return evaluate(program, given)[output]


def measured(spark: SparkSession, make: Callable[[], DataFrame], path: Path) -> tuple[float, int]:
    began = time.perf_counter()
    with Jobs(spark, "benchmark") as jobs:
        make().write.mode("overwrite").parquet(str(path))
    return time.perf_counter() - began, jobs.count


def compared(
    spark: SparkSession,
    ours: Callable[[], DataFrame],
    hand: Callable[[], DataFrame],
    folder: Path,
) -> str:
    seconds: dict[str, list[float]] = {"ours": [], "hand": []}
    jobs = {"ours": 0, "hand": 0}
    for number in range(WARM_UPS + ROUNDS):
        for who, make in (("ours", ours), ("hand", hand)):
            took, jobs[who] = measured(spark, make, folder / who)
            if number >= WARM_UPS:
                seconds[who].append(took)
    answers = {who: spark.read.parquet(str(folder / who)).count() for who in seconds}
    assert answers["ours"] == answers["hand"], answers
    a, b = (statistics.median(took) for took in seconds.values())
    return (
        f"ours {a:6.2f} s ({jobs['ours']} jobs)  by hand {b:6.2f} s ({jobs['hand']} jobs)  "
        f"ratio {a / b:4.2f}  {answers['ours']:,} answers"
    )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    spark = session("local[2]")
    tasks = {
        "first": (FIRST, "first", messages, first_by_hand),
        "pc_alarm": (ALARM, "pc_alarm", alarms, alarm_by_hand),
        "latest": (LATEST, "traded", trades, latest_by_hand),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for task, (text, output, generate, by_hand) in tasks.items():
            for hot in (False, True):
                files = generate(folder, count, hot)
                told = compared(
                    spark,
                    partial(by_rules, text, spark, files, output),
                    partial(by_hand, spark, files),
                    folder,
                )
                print(f"{task}{' hot' * hot:5} {count:,} events  {told}", flush=True)


if __name__ == "__main__":
    main()
