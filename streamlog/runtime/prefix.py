"""What was read of a file, or written to it: how many bytes, and their checksum.

So a run that goes on can tell a file that has grown from one that was altered or replaced.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_BLOCK = 1 << 20


class Prefix:
    """The bytes so far, in order."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Nothing so far."""
        self.size, self._last, self._sha256 = 0, b"", hashlib.sha256()
        self.is_whole = False  # the file cannot grow, as that of a Parquet writer
        self.at_end = False

    def add(self, data: bytes | memoryview) -> None:
        self._sha256.update(data)
        self.size += len(data)
        self._last = bytes(data[-1:]) or self._last

    @staticmethod
    def of(path: Path, size: int | None = None) -> Prefix:
        """A file's first bytes, or all of them."""
        found = Prefix()
        with path.open("rb") as file:
            while data := file.read(_BLOCK if size is None else min(_BLOCK, size - found.size)):
                found.add(data)
        return found

    def take(self, path: Path) -> None:
        """All of a file that is written once."""
        whole = Prefix.of(path)
        self.size, self._last, self._sha256 = whole.size, whole._last, whole._sha256
        self.is_whole = self.at_end = True

    def record(self) -> dict[str, Any]:
        """As JSON, for `problem`."""
        cut = self.at_end and not self.is_whole and self._last not in (b"", b"\n")
        return {
            "bytes": self.size,
            "sha256": self._sha256.hexdigest(),
            "whole": self.is_whole,
            "cut": cut,  # in its last line, which may go on
        }


def problem(path: Path, record: Mapping[str, Any], done: str) -> str | None:
    """How a file differs from what was `done` (read from it, written to it) before."""
    size = record["bytes"]
    try:
        now = path.stat().st_size
        if now < size:
            return f"'{path}' has {now} bytes, and {size} were {done} it before"
        if Prefix.of(path, size).record()["sha256"] != record["sha256"]:
            return f"'{path}' has changed: its first {size} bytes are not those {done} it before"
        if now > size and record["whole"]:
            return f"'{path}' has changed: it has {now} bytes, and {size} were {done} it before"
        if now > size and record["cut"]:
            with path.open("rb") as file:
                file.seek(size)
                if file.read(1) not in (b"\r", b"\n"):
                    return f"'{path}' has changed: the last line {done} it before has become longer"
    except FileNotFoundError:
        return f"'{path}' is missing, and {size} bytes were {done} it before"
    return None


class Recorded(io.RawIOBase):
    """A file whose bytes are recorded as they are read."""

    def __init__(self, file: io.FileIO, prefix: Prefix) -> None:
        self._file, self._prefix = file, prefix

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer) or 0
        self._prefix.add(memoryview(buffer)[:count])
        self._prefix.at_end = not count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
