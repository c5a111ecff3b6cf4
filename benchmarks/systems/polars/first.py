import polars as pl


def run(data, out):
    messages = pl.scan_csv(data / "msg.csv", schema={"T": pl.Int64, "code": pl.String})
    messages.group_by("code").agg(pl.col("T").min()).select("T", "code").sink_csv(out)
