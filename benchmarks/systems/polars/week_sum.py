import polars as pl
from common import TIME

COLUMNS = {"T": pl.String, "id": pl.Int64, "stock": pl.String, "volume": pl.Int64}


def run(data, out):
    trades = pl.scan_csv(data / "trade.csv", schema=COLUMNS)
    trades = trades.with_columns(pl.col("T").str.to_datetime(TIME)).sort("T")
    volume = pl.col("volume").rolling_sum_by("T", window_size="7d", closed="right").over("stock")
    week = trades.select("T", "stock", volume).group_by("T", "stock").agg(pl.col("volume").max())
    week.with_columns(pl.col("T").dt.strftime(TIME)).sink_csv(out)
