"""Python source in the making."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from streamlog.syntax.ast import Rule


class Generated:
    """Source text, which rule each of its lines belongs to, and the objects that it names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.rules: dict[int, Rule] = {}
        self.objects: dict[str, object] = {}
        self._named: set[str] = set()  # in the function at hand
        self._depth = 0
        self._rule: Rule | None = None

    def __call__(self, line: str) -> None:
        self.lines.append("    " * self._depth + line)
        if self._rule is not None:
            self.rules[len(self.lines)] = self._rule

    def named(self, name: str, thing: object) -> str:
        """The name, for an object that is changed in place and never replaced."""
        self.objects[name] = thing
        self._named.add(name)
        return name

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
        """A function to which objects are defaults of parameters: locals are faster."""
        at = len(self.lines)
        self._named = set()
        with self.block(""):
            yield
        defaults = (f"{n}={n}" for n in sorted(self._named))
        self.lines[at] = f"def {name}({', '.join(filter(None, [parameters, *defaults]))}):"

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def run(self, path: str, functions: Mapping[str, Any]) -> dict[str, Any]:
        """The functions, by name; `functions` are those that they call, `path` is for errors."""
        names = {**functions, **self.objects}
        exec(compile(self.text, path, "exec"), names)
        return names
