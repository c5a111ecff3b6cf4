import polars as pl
from common import TIME

COLUMNS = {"T": pl.String, "id": pl.Int64, "user": pl.String}


def run(data, out):
    clicks = pl.scan_csv(data / "click.csv", schema=COLUMNS)
    clicks = clicks.with_columns(pl.col("T").str.to_datetime(TIME)).sort("T")
    gap = (pl.col("T") - pl.col("T").shift(1)).over("user")
    begins = (gap > pl.duration(minutes=30)).fill_null(True)
    clicks = clicks.with_columns(begins.alias("begins"))
    clicks = clicks.with_columns(pl.col("begins").cum_sum().over("user").alias("session"))
    sessions = clicks.group_by("user", "session").agg(
        pl.col("T").max(), pl.col("T").min().alias("B"), pl.len().alias("clicks")
    )
    text = [pl.col(name).dt.strftime(TIME) for name in ("T", "B")]
    sessions.select(text[0], "user", text[1], "clicks").sink_csv(out)
