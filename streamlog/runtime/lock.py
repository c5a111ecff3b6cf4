"""One process at a time: a lock on a folder, which the kernel releases when its holder dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

NAME = "lock"
PRIVATE = 0o700  # of a folder: for its owner alone


class Locked(Exception):  # noqa: N818  (a state of the folder, named as such)
    """Another process works in the folder; the message names it."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder, which is made if need be, or raise `Locked` at once.

    The file stays when the lock is released: one that was deleted could be locked twice. What it
    says counts only while somebody holds it, so a process that crashed is no obstacle.
    """
    folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    handle = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Locked(f"'{folder}' is in use by {_holder(handle)}") from None
        now = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
        held = {"pid": os.getpid(), "host": socket.gethostname(), "since": now}
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{json.dumps(held)}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def _holder(handle: int) -> str:
    """Who holds the lock, as it says itself: it has the lock a moment before it can say so."""
    for _ in range(20):
        try:
            held = json.loads(os.pread(handle, 4096, 0))
            return f"process {held['pid']} on {held['host']}, since {held['since']}"
        except (ValueError, KeyError, TypeError):
            time.sleep(0.05)
    return "another process"
