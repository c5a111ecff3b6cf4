import polars as pl
from common import TIME


def read(path):
    rows = pl.scan_csv(path, schema={"T": pl.String, "area": pl.String})
    return rows.with_columns(pl.col("T").str.to_datetime(TIME)).sort("T")


def run(data, out):
    asked = read(data / "pre_alarm.csv")
    reports = read(data / "report.csv").with_columns(report=pl.col("T"))
    found = asked.join_asof(reports, on="T", by="area", strategy="forward")
    late = pl.col("report") > pl.col("T") + pl.duration(minutes=5)
    alarms = found.filter(pl.col("report").is_null() | late).select("T", "area").unique()
    alarms.with_columns(pl.col("T").dt.strftime(TIME)).sink_csv(out)
