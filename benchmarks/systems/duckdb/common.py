"""Statements of SQL: CSV in, CSV out."""

from contextlib import contextmanager

import duckdb

warm_ups = 0


@contextmanager
def connected(data, **inputs):
    """`inputs`: for each file its columns, as DuckDB writes them."""
    with duckdb.connect() as connection:
        for name, columns in inputs.items():
            connection.execute(
                f'CREATE VIEW "{name}" AS SELECT * FROM '
                f"read_csv('{data / name}.csv', header = true, columns = {{{columns}}})"
            )
        yield connection


def copied(query, data, out, **inputs):
    with connected(data, **inputs) as connection:
        connection.execute(f"COPY ({query}) TO '{out}' (HEADER)")
