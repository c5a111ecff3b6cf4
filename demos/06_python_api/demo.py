"""Rules in the middle of PySpark code. The cells can be run one by one in an editor or notebook."""

# %% A session of Spark: `session()` starts one for this machine, or takes the one that is there.
from datetime import datetime, timedelta, timezone

import streamlog
from streamlog.spark import run, session

spark = session()

# %% DataFrames, from wherever Spark gets them.
start = datetime(2026, 11, 15, 8, tzinfo=timezone.utc)


def minute(number: float) -> datetime:
    return start + timedelta(minutes=number)


orders = spark.createDataFrame(
    [
        (minute(0), 1, "ann", 120.0),
        (minute(3), 2, "bob", 15.5),
        (minute(4), 3, "ann", 80.0),
        (minute(9), 4, "cem", 42.0),
        (minute(12), 5, "ann", 300.0),
    ],
    "T timestamp, id long, customer string, amount double",
)
payments = spark.createDataFrame(
    [(minute(2), 1), (minute(30), 2), (minute(13), 4)], "T timestamp, id long"
)

# %% A program, here as a text. It is checked before anything runs.
program = streamlog.compile("""
stream orders(T: time, id: int, customer: string, amount: float).
stream payments(T: time, id: int).
output unpaid, risky.

% Not paid within a quarter of an hour.
unpaid(T, Id, C, A) <-
    orders(T, Id, C, A), not (payments(T1, Id), T <= T1, T1 <= T + 15min).

% A second order while another one of the customer turns out to be unpaid.
risky(T, Id, C) <- orders(T, Id, C, _), unpaid(T0, _, C, _), T0 < T, T <= T0 + 1h.
""")

# %% DataFrames in, DataFrames out, by name.
answers = run(program, {"orders": orders, "payments": payments})
print("outputs:", ", ".join(answers))

# %% An answer is a DataFrame like any other.
answers["unpaid"].orderBy("T").show()
answers["risky"].printSchema()

# %% So it goes on in Spark: joins, SQL, files.
regions = spark.createDataFrame([("ann", "north"), ("bob", "south")], "C string, region string")
owed = answers["unpaid"].join(regions, "C").groupBy("region").sum("A").orderBy("region")
owed.show()

answers["risky"].createOrReplaceTempView("risky")
spark.sql("SELECT C, count(*) AS orders FROM risky GROUP BY C").show()

# %% What was done: how each predicate was evaluated, and what could not be read.
for name, choice in sorted(answers.metrics.strategies.items()):
    print(f"{name}: {choice.strategy.value} ({choice.reason})")
print("rejected rows:", answers.rejects.count())

# %% A mistake in the rules is an exception that says where.
try:
    streamlog.compile("stream s(T: time, x: int). output o. o(T, X) <- s(T, Y).")
except streamlog.CompileError as error:
    print(error)
