"""That there is no value."""

from __future__ import annotations


class ValueFailure(Exception):  # noqa: N818
    """An operation has no result for these values."""
