import polars as pl

from benchmarks.programs.risk import risk

COLUMNS = {"T": pl.String, "id": pl.Int64, "euros": pl.Float64, "country": pl.String}


def run(data, out):
    payments = pl.read_csv(data / "payment.csv", schema=COLUMNS)
    pairs = zip(payments["euros"], payments["country"], strict=True)
    risks = pl.Series([risk(euros, country) for euros, country in pairs])
    payments.filter(risks > 0.9).select("T", "id").write_csv(out)
