"""What the compiler has to say, as data: passes make diagnostics, `app` prints them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cached_property

from attrs import field, frozen

from streamlog.codes import SEVERITIES, Severity


@frozen(slots=False)
class Source:
    """A text and the name people know it by."""

    path: str
    text: str = field(repr=False)

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        return (0, *(i + 1 for i, c in enumerate(self.text) if c == "\n"))

    def position(self, offset: int) -> tuple[int, int]:
        """The line and column of an offset, both from one."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        start = self.line_starts[number - 1]
        end = self.line_starts[number] - 1 if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


@frozen
class Span:
    """A half-open range of characters of a source."""

    source: Source = field(repr=False)
    start: int
    end: int

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.start <= self.end <= len(self.source.text):
            raise ValueError(f"span {self.start}:{self.end} lies outside {self.source.path}")

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def place(self) -> str:
        """File and line."""
        line, _ = self.source.position(self.start)
        return f"{self.source.path}:{line}"

    def encloses(self, other: Span) -> bool:
        return self.source == other.source and self.start <= other.start <= other.end <= self.end

    def to(self, other: Span) -> Span:
        """From the start of this span to the end of a later one."""
        return Span(self.source, self.start, max(self.end, other.end))


@frozen
class Label:
    span: Span
    text: str = ""


@frozen
class Diagnostic:
    """One finding. The first label is where it is; the others are related places."""

    code: str
    message: str
    labels: tuple[Label, ...]
    help: tuple[str, ...] = ()
    severity: Severity = field()
    # What the annotations of its rule say.
    metadata: Mapping[str, str | list[str]] = field(factory=dict, eq=False, repr=False)

    @severity.default
    def _severity_of_code(self) -> Severity:
        return SEVERITIES[self.code]

    def __attrs_post_init__(self) -> None:
        if not self.labels:
            raise ValueError(f"{self.code} points nowhere")

    @property
    def span(self) -> Span:
        return self.labels[0].span

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR


def finding(
    code: str,
    message: str,
    span: Span,
    label: str = "",
    *,
    related: Iterable[tuple[Span, str]] = (),
    help: str | Iterable[str] = (),
) -> Diagnostic:
    """The usual way to make a diagnostic: one primary place, perhaps some related ones."""
    labels = (Label(span, label), *(Label(s, t) for s, t in related))
    return Diagnostic(code, message, labels, (help,) if isinstance(help, str) else tuple(help))


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Without repetitions, by place, then by code: the order in which they are printed."""

    def key(d: Diagnostic) -> tuple[str, int, str, str]:
        return d.span.source.path, d.span.start, d.code, d.message

    return tuple(sorted(dict.fromkeys(diagnostics), key=key))


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` is most likely a slip for."""
    words = sorted(w for w in known if w != word)
    swapped = [w for w in words if sorted(w) == sorted(word)]
    return next(iter(swapped or get_close_matches(word, words, n=1, cutoff=0.76)), None)
