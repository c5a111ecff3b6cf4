"""A TextMate grammar as editors apply it, line by line: as much of the format as ours uses.

Its expressions are those of Oniguruma. Python reads them too, but for `\\p{Lu}`.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from attrs import frozen

Rule = Mapping[str, Any]
Scoped = tuple[int, str, str]  # where, the innermost scope without the language, the text
KEYS = {
    *("begin", "beginCaptures", "end", "endCaptures", "match", "captures"),
    *("comment", "include", "name", "patterns"),
}


@cache
def _upper_case() -> str:
    return "".join(
        c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) == "Lu"
    )


@cache
def compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression.replace(r"\p{Lu}", _upper_case()))


@frozen
class Grammar:
    language: str
    patterns: Sequence[Rule]
    repository: Mapping[str, Rule]

    @classmethod
    def read(cls, path: Path) -> Grammar:
        found = json.loads(path.read_text(encoding="utf-8"))
        return cls(found["scopeName"], found["patterns"], found["repository"])

    def rules(self) -> Iterator[Rule]:
        """Every rule, wherever it stands."""
        waiting = [*self.patterns, *self.repository.values()]
        while waiting:
            rule = waiting.pop()
            yield rule
            waiting += rule.get("patterns", ())
            for captures in ("captures", "beginCaptures", "endCaptures"):
                waiting += rule.get(captures, {}).values()

    def tokens(self, text: str) -> Iterator[Scoped]:
        open_rules: list[Rule] = [{"patterns": self.patterns}]
        at = 0
        for line in text.splitlines(keepends=True):
            for start, scope, piece in self._line(line, 0, len(line), open_rules):
                yield at + start, scope, piece
            at += len(line)

    def _line(self, line: str, at: int, end: int, open_rules: list[Rule]) -> Iterator[Scoped]:
        while at < end:
            here = open_rules[-1]
            found = self._first(line, at, end, here)
            scope = self._scope(here, "")
            if found is None:
                break
            rule, match, closes = found
            if at < match.start():
                yield at, scope, line[at : match.start()]
            before = len(open_rules)
            if closes:
                open_rules.pop()
                captures = rule.get("endCaptures", {})
            elif "begin" in rule:
                open_rules.append(rule)
                captures = rule.get("beginCaptures", {})
            else:
                captures = rule.get("captures", {})
            yield from self._captured(match, captures, self._scope(rule, scope))
            assert match.end() > at or len(open_rules) != before, f"{rule} leads nowhere"
            at = match.end()
        if at < end:
            yield at, self._scope(open_rules[-1], ""), line[at:end]

    def _first(
        self, line: str, at: int, end: int, here: Rule
    ) -> tuple[Rule, re.Match[str], bool] | None:
        """The leftmost match; of several the end of what is open, then the first in order."""
        candidates = [(here, here["end"], True)] if "end" in here else []
        candidates += [
            (rule, rule.get("match") or rule["begin"], False)
            for rule in self._flat(here.get("patterns", ()))
        ]
        best = None
        for rule, expression, closes in candidates:
            match = compiled(expression).search(line, at, end)
            if match and (best is None or match.start() < best[1].start()):
                best = rule, match, closes
        return best

    def _flat(self, patterns: Sequence[Rule]) -> Iterator[Rule]:
        for rule in patterns:
            if "include" in rule:
                yield from self._flat([self.repository[rule["include"].removeprefix("#")]])
            elif "match" in rule or "begin" in rule:
                yield rule
            else:
                yield from self._flat(rule["patterns"])

    def _captured(
        self, match: re.Match[str], captures: Mapping[str, Rule], scope: str
    ) -> Iterator[Scoped]:
        at = match.start()
        for number, capture in sorted(captures.items(), key=lambda c: int(c[0])):
            start, end = match.span(int(number))
            if start == end:
                continue
            if at < start:
                yield at, scope, match.string[at:start]
            inner = self._scope(capture, scope)
            nested = {"name": f"{inner}.", "patterns": capture.get("patterns", ())}
            yield from self._line(match.string, start, end, [nested])
            at = end
        if at < match.end():
            yield at, scope, match.string[at : match.end()]

    def _scope(self, rule: Rule, outer: str) -> str:
        name: str = rule.get("name", "")
        return name.rpartition(".")[0] if name else outer
