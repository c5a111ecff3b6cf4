"""What beginners type: a word or a date that means something else than they think."""

from __future__ import annotations

import re
from collections.abc import Iterable

from streamlog.diagnostics import Span
from streamlog.syntax.pretty import is_bare

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def slips(spans: Iterable[Span], *, words: bool = True) -> tuple[str, ...]:
    """Help for terms that have the wrong type, if they look like something of another one."""
    found = (_slip(span.text, words) for span in spans)
    return tuple(dict.fromkeys(help for help in found if help))


def _slip(text: str, words: bool) -> str | None:
    if _DATE.fullmatch(text):
        return f"`{text}` is a subtraction; a timestamp begins with `@`: `@{text}`"
    if words and is_bare(text):
        variable = text[:1].upper() + text[1:]
        return f"`{text}` is a text; variables begin with a capital: `{variable}`"
    return None
