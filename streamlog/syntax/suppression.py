"""What a comment `% streamlog: allow SL0502: the reason` says."""

from __future__ import annotations

from attrs import field, frozen

from streamlog.diagnostics import Span


@frozen
class Suppression:
    """A comment that allows a statement what there are warnings for; without codes if it cannot be
    read."""

    codes: tuple[str, ...]
    reason: str
    statement: Span | None
    span: Span = field(repr=False, kw_only=True)
