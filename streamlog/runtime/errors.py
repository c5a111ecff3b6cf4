"""What evaluating rules may raise."""

from __future__ import annotations

import json
from typing import TypeAlias

from streamlog.syntax.ast import Value

# Rows of a predicate, by those of their values that are known.
Pattern: TypeAlias = tuple[str, tuple[Value | None, ...]]

_AND_GOALS = "\x1f"  # between a message and the goals, where an error is sent as text


class EvaluationError(Exception):
    """A value cannot be computed: a division by zero, a number beyond 64 bits. Where they are
    known, `goals` are the rows for which the rule asked for it."""

    def __init__(self, message: str, goals: tuple[Pattern, ...] = ()) -> None:
        super().__init__(message)
        self.goals = goals

    def as_text(self) -> str:
        """In one line."""
        return f"{self}{_AND_GOALS}{json.dumps(self.goals)}" if self.goals else str(self)

    @staticmethod
    def from_text(text: str) -> EvaluationError:
        message, _, goals = text.partition(_AND_GOALS)
        found = json.loads(goals) if goals else ()
        return EvaluationError(message, tuple((pred, tuple(values)) for pred, values in found))
