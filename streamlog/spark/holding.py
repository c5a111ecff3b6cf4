"""One run at a time in a checkpoint, wherever it is."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from tempfile import gettempdir

from streamlog.runtime.lock import NAME, Locked, locked
from streamlog.spark.files import Files


def held(files: Files) -> AbstractContextManager[None]:
    """Hold a checkpoint's folder, or raise `Locked` at once."""
    return locked(files.local) if files.local is not None else by_a_file(files)


@contextmanager
def by_a_file(files: Files) -> Iterator[None]:
    """Where there are no locks: a file that only one process can make, and that says which.

    One that was killed leaves it behind. On its own machine this is noticed; elsewhere nobody can
    know, so somebody has to delete the file.
    """
    _make(files)
    try:
        yield
    finally:
        files.delete(NAME)


def _make(files: Files) -> None:
    now = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
    text = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": now})
    key = hashlib.sha256(files.path("").encode()).hexdigest()[:16]
    # Two processes of this machine must not both take the place of one that is gone.
    with locked(Path(gettempdir()) / f"streamlog-{getpass.getuser()}-{key}"):
        if files.create(NAME, text):
            return
        holder = json.loads(files.read(NAME) or "{}")
        if holder.get("host") != socket.gethostname() or _is_alive(holder["pid"]):
            raise Locked(
                f"'{files.root}' is in use by process {holder.get('pid')} on {holder.get('host')}, "
                f"since {holder.get('since')}; if it is no longer running, delete "
                f"'{files.path(NAME)}'"
            )
        files.write(NAME, text)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True
