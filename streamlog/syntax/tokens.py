"""One statement as the grammar sees it: a string of kinds that knows its text."""

from __future__ import annotations

from collections.abc import Iterable

from streamlog.diagnostics import Diagnostic, Span, finding
from streamlog.syntax.scan import Scan


class Refused(Exception):  # noqa: N818  (it is an answer, and carries one)
    """A statement that cannot be read, and why."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Tokens(str):
    """The kinds of some consecutive tokens.

    pyparsing hands this very object to all its elements, so that they can reach the text, and
    note here what they expected at the furthest place anything was tried.
    """

    scan: Scan
    base: int
    furthest: int
    expected: dict[str, None]
    aggregates: int  # how many terms look like one

    @classmethod
    def of(cls, scan: Scan, start: int, end: int) -> Tokens:
        tokens = cls(scan.kinds[start:end])
        tokens.scan, tokens.base = scan, start
        tokens.furthest, tokens.expected, tokens.aggregates = 0, {}, 0
        return tokens

    def text(self, index: int) -> str:
        at, scan = self.base + index, self.scan
        return scan.source.text[scan.starts[at] : scan.ends[at]]

    def span(self, start: int, end: int) -> Span:
        """Of the tokens from `start` up to `end`, that one not included."""
        base, scan = self.base, self.scan
        return Span(scan.source, scan.starts[base + start], scan.ends[base + end - 1])

    def missed(self, index: int, expected: Iterable[str]) -> None:
        if index > self.furthest:
            self.furthest = index
            self.expected = dict.fromkeys(expected)
        elif index == self.furthest:
            self.expected.update(dict.fromkeys(expected))

    def refuse(
        self, code: str, message: str, start: int, end: int, label: str = "", *, help: str = ""
    ) -> Refused:
        span = self.span(start, end)
        return Refused(finding(code, message, span, label, help=(help,) if help else ()))
