import polars as pl
from common import TIME

COLUMNS = {"T": pl.String, "id": pl.Int64, "stock": pl.String, "volume": pl.Int64}


def run(data, out):
    trades = pl.scan_csv(data / "trade.csv", schema=COLUMNS)
    hour = pl.col("T").str.to_datetime(TIME).dt.truncate("1h").alias("T")
    volumes = trades.group_by(hour, "stock").agg(pl.col("volume").sum())
    ordered = volumes.sort("T", "volume", "stock", descending=[False, True, False])
    top = ordered.group_by("T", maintain_order=True).head(3)
    top.with_columns(pl.col("T").dt.strftime(TIME)).sink_csv(out)
