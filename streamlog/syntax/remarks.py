"""What is said about statements, and changes nothing of what they mean."""

from __future__ import annotations

from attrs import field, frozen

from streamlog.diagnostics import Span
from streamlog.syntax.terms import place as _span


@frozen
class Annotation:
    """`@tags login, brute_force` on a line above a rule."""

    name: str
    values: tuple[str, ...]
    span: Span = _span()


@frozen
class Suppression:
    """A comment that allows a statement warnings; without codes if it cannot be read."""

    codes: tuple[str, ...]
    reason: str
    statement: Span | None
    span: Span = field(repr=False, kw_only=True)
