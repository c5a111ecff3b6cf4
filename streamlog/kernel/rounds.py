"""How long a recursion has gone on, and what to call the rule it is in."""

from __future__ import annotations

from typing import Any

from streamlog.runtime.executor import BEGIN
from streamlog.syntax.ast import Rule
from streamlog.syntax.pretty import pretty


class Rounds:
    """How many rounds a recursion has gone without time moving on."""

    def __init__(self) -> None:
        self.count = 0
        self._latest: Any = BEGIN

    def at(self, time: Any) -> None:
        self.count = 0 if time > self._latest else self.count + 1
        self._latest = max(self._latest, time)


def in_a_line(rule: Rule) -> str:
    return " ".join(pretty(rule).split())


def place(rule: Rule) -> str:
    line, _ = rule.span.source.position(rule.span.start)
    return f"{rule.span.source.path}:{line}"
