"""What was left out because it cannot be computed, as rows: rule, reason, values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamlog.compiler import Program
from streamlog.runtime.ingest import SKIPPED
from streamlog.syntax.ast import Type

ERRORS = "errors"
SKIPPED_TYPES: tuple[Type, ...] = (Type.STRING,) * len(SKIPPED)


def rules_of_errors(program: Program) -> Mapping[str, str]:
    """The places of rules, by the predicates of their errors."""
    return {pred: rule.span.place for pred, rule in (program.errors or {}).items()}


def skipped(found: Mapping[str, DataFrame], rules: Mapping[str, str]) -> DataFrame | None:
    """The errors in relations, as a relation of all rules; None if there are no relations."""
    parts = [
        rows.select(
            F.lit(rules[pred]).alias("c0"),
            *(F.col(c).alias(f"c{i}") for i, c in enumerate(rows.columns[-2:], 1)),
        )
        for pred, rows in found.items()
    ]
    return reduce(DataFrame.unionAll, parts) if parts else None
