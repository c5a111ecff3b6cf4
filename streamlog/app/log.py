"""`--log json`: what a run prints to standard error as JSON Lines, for whoever collects logs."""

from __future__ import annotations

import io
import json
import sys
from datetime import datetime, timezone
from typing import TextIO

_LEVELS = (
    ("error", ("Error:", "streamlog:")),
    ("warning", ("warning", "rejected ", "late ", "skipped ", "withheld ")),
)


class JsonLog(io.TextIOBase):
    """Each line that is written becomes an object: `at`, `level`, `message`."""

    def __init__(self, target: TextIO) -> None:
        self.target, self._line = target, ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in filter(str.strip, lines):
            at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
            entry = {"at": at.replace("+00:00", "Z"), "level": _level(line), "message": line}
            self.target.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self.target.flush()
        return len(text)

    def flush(self) -> None:
        if self._line:
            self.write("\n")


def _level(line: str) -> str:
    return next((level for level, starts in _LEVELS if line.startswith(starts)), "info")


def log_as_json() -> None:
    """From now on, until the process ends."""
    if not isinstance(sys.stderr, JsonLog):
        sys.stderr = JsonLog(sys.stderr)
