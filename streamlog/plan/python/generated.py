"""Python source in the making."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from contextlib import contextmanager

from streamlog.syntax.ast import Rule

_NAME = re.compile(r"\b[a-z]\w*")


class Generated:
    """Source text, and which rule each of its lines belongs to. `names` are the globals: state
    that is changed in place and never replaced, and what the code calls."""

    def __init__(self, names: Set[str]) -> None:
        self.names = names
        self.lines: list[str] = []
        self.rules: dict[int, Rule] = {}
        self._depth = 0
        self._rule: Rule | None = None

    def __call__(self, line: str) -> None:
        self.lines.append("    " * self._depth + line)
        if self._rule is not None:
            self.rules[len(self.lines)] = self._rule

    @contextmanager
    def block(self, line: str) -> Iterator[None]:
        self(line)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def part_of(self, rule: Rule) -> Iterator[None]:
        self._rule = rule
        yield
        self._rule = None

    @contextmanager
    def function(self, name: str, parameters: str = "") -> Iterator[None]:
        """A function whose globals are its parameters' defaults: locals are faster."""
        at = len(self.lines)
        with self.block(""):
            yield
        used = sorted({n for line in self.lines[at:] for n in _NAME.findall(line)} & self.names)
        defaults = [f"{n}={n}" for n in used]
        self.lines[at] = f"def {name}({', '.join(filter(None, [parameters, *defaults]))}):"

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
