import duckdb

from benchmarks.programs.risk import risk

COLUMNS = {"T": "VARCHAR", "id": "BIGINT", "euros": "DOUBLE", "country": "VARCHAR"}


def run(data, out):
    with duckdb.connect() as connection:
        connection.create_function("risk", risk, ["DOUBLE", "VARCHAR"], "DOUBLE")
        rows = connection.read_csv(str(data / "payment.csv"), header=True, columns=COLUMNS)
        rows.filter("risk(euros, country) > 0.9").project("T, id").write_csv(str(out))
