"""Regular expressions, as RE2 has them: a text is searched in time linear in its length.

Both engines search with this module, so the dialect is one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any


class PatternError(Exception):
    """What is wrong with a pattern."""


@lru_cache(maxsize=256)
def compiled(pattern: str, *, groups: bool = False) -> Any:
    """What searches for a pattern in the bytes of a text, or also says what its groups have
    matched. Raises `PatternError`."""
    import re2  # only programs with a pattern need it

    options = re2.Options()
    options.log_errors = False  # RE2 itself would write to standard error
    options.never_capture = not groups
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason, _, part = error.args[0].decode(errors="replace").partition(": ")
        raise PatternError(f"{reason}: `{part}`" if part else reason) from None
    except UnicodeEncodeError:
        raise PatternError("it has half a character") from None
