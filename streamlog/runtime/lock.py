"""One process at a time: a lock on a folder, which the kernel releases when its holder dies."""

from __future__ import annotations

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


def private(path: str, flags: int) -> int:
    """An opener of files that only their owner can read."""
    return os.open(path, flags, 0o600)


class Locked(Exception):  # noqa: N818  (a state of the folder, named as such)
    """Another process works in the folder; the message names it."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder, which is made if need be, or raise `Locked` at once.

    The file stays when the lock is released: one that was deleted could be locked twice. What it
    says counts only while somebody holds it, so a process that crashed is no obstacle.
    """
    folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    handle = private(str(folder / NAME), os.O_RDWR | os.O_CREAT)
    try:
        if not _taken(handle):
            raise Locked(f"'{folder}' is in use by {_holder(handle)}")
        now = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
        held = {"pid": os.getpid(), "host": socket.gethostname(), "since": now}
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{json.dumps(held)}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def hold(handle: int, path: Path) -> None:
    """Hold an open file or folder until it is closed, or raise `Locked`."""
    if not _taken(handle):
        raise Locked(f"'{path}' is being written by another run")


def free(path: Path) -> None:
    """Raise `Locked` if somebody holds the file."""
    if os.name == "nt":  # nobody can
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        hold(handle, path)
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    """Whether the lock is ours now."""
    try:
        import fcntl
    except ModuleNotFoundError:
        raise Locked("this system has no locks (flock), which checkpoints need") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(handle: int) -> str:
    """Who holds the lock, as it says itself: it has the lock a moment before it can say so."""
    for _ in range(20):
        try:
            held = json.loads(os.pread(handle, 4096, 0))
            return f"process {held['pid']} on {held['host']}, since {held['since']}"
        except (ValueError, KeyError, TypeError):
            time.sleep(0.05)
    return "another process"


def holder(folder: Path) -> int | None:
    """The process that holds a folder, if one does."""
    path = folder / NAME
    if not path.exists():
        return None
    handle = os.open(path, os.O_RDONLY)
    try:
        if _taken(handle):
            return None
        _holder(handle)  # it may not have said so yet
        return int(json.loads(os.pread(handle, 4096, 0))["pid"])
    except (ValueError, KeyError, TypeError):
        return None
    finally:
        os.close(handle)
