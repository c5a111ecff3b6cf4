import polars as pl


def run(data, out):
    columns = {"T": pl.Int64, "stock": pl.String, "price": pl.Int64}
    prices = pl.scan_csv(data / "price.csv", schema=columns).set_sorted("T")
    columns.pop("price")
    trades = pl.scan_csv(data / "trade.csv", schema=columns).set_sorted("T")
    found = trades.join_asof(prices, on="T", by="stock").drop_nulls("price")
    found.unique().sink_csv(out)
