"""`% streamlog: allow SL0502: history is the point`: a comment by which a statement may do what
there is a warning for."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from streamlog.diagnostics import Span
from streamlog.syntax.ast import Annotation, Statement, Suppression
from streamlog.syntax.scan import Comment

_MARK = re.compile(r"(?:%|//|/\*)\s*streamlog:(?P<rest>.*?)(?:\*/)?", re.DOTALL)
_ALLOW = re.compile(r"\s*allow\s+(?P<codes>\w+(?:\s*,\s*\w+)*)\s*(?::(?P<reason>.*))?", re.DOTALL)


def suppressions(
    comments: Iterable[Comment], statements: Sequence[Statement]
) -> Iterator[Suppression]:
    """Each is for the statement in or behind which it stands, or else for the next one."""
    spans = [s.span for s in statements if not isinstance(s, Annotation)]
    ends = [span.end for span in spans]
    for comment in comments:
        mark = _MARK.fullmatch(comment.text)
        if mark is None:
            continue
        allow = _ALLOW.fullmatch(mark["rest"])
        codes = tuple(re.findall(r"\w+", allow["codes"])) if allow else ()
        reason = ((allow and allow["reason"]) or "").strip()
        source, start = comment.span.source, comment.span.start
        span = Span(source, start, start + len(comment.text))
        yield Suppression(codes, reason, _statement_at(span, spans, ends), span=span)


def _statement_at(comment: Span, spans: Sequence[Span], ends: Sequence[int]) -> Span | None:
    after = bisect_left(ends, comment.start + 1)  # the first that ends behind the comment
    if after > 0 and "\n" not in comment.source.text[ends[after - 1] : comment.start]:
        return spans[after - 1]
    return spans[after] if after < len(spans) else None
