"""Plans to SQL: a predicate's rules as one query, built as a tree, for Spark and for DuckDB."""

from sqlglot.expressions import Query

from streamlog.plan.sql.context import (
    DIALECTS,
    Context,
    Unsupported,
    Untyped,
    Version,
    named,
    render,
    with_slice,
)
from streamlog.plan.sql.query import group_query, is_grouped, predicate_query, rule_query

__all__ = [
    "DIALECTS",
    "Context",
    "Query",
    "Unsupported",
    "Untyped",
    "Version",
    "group_query",
    "is_grouped",
    "named",
    "predicate_query",
    "render",
    "rule_query",
    "with_slice",
]
