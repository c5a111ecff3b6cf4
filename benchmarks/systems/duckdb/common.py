"""One statement of SQL: CSV in, CSV out."""

from pathlib import Path

import duckdb

warm_ups = 0


def copied(query: str, data: Path, out: Path, **inputs: str) -> None:
    """`inputs`: for each file its columns, as DuckDB writes them."""
    with duckdb.connect() as connection:
        for name, columns in inputs.items():
            connection.execute(
                f"CREATE VIEW {name} AS SELECT * FROM "
                f"read_csv('{data / name}.csv', header = true, columns = {{{columns}}})"
            )
        connection.execute(f"COPY ({query}) TO '{out}' (HEADER)")
