"""What evaluating rules may raise."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streamlog.syntax.ast import Rule, Value

_NO_VALUES: Mapping[str, Value] = MappingProxyType({})


class EvaluationError(Exception):
    """A value cannot be computed: a division by zero, a number beyond 64 bits. Where it is known,
    `rule` is the one that asked for it, and `values` are those of its variables."""

    def __init__(
        self, message: str, rule: Rule | None = None, values: Mapping[str, Value] = _NO_VALUES
    ) -> None:
        super().__init__(message)
        self.rule, self.values = rule, values
