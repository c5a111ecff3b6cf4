"""How much memory this process may take, and an error in place of more.

Linux refuses memory beyond a limit that a process sets itself (`RLIMIT_DATA`), and Python raises
`MemoryError` then. So one huge allocation is caught as well as many small ones, and nothing has to
be measured along the way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock

from streamlog.runtime.executor import LimitError

_USED = Path("/proc/self/statm")
_UNITS = (("GB", 2**30), ("MB", 2**20), ("kB", 2**10))

_lock = Lock()
_inside = 0  # steps at hand, of all threads
_before = (-1, -1)  # the limits as they were before the first of them


def share(processes: int = 1) -> int | None:
    """What a process may take unless somebody says otherwise: half of the memory, divided
    by as many processes as work at once. None where no limit can be kept."""
    if sys.platform != "linux":
        return None
    return machine() // 2 // max(1, min(processes, os.cpu_count() or 1))


@cache
def machine() -> int:
    """The memory of this machine, or of the control group that this process is in, in bytes."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    groups = Path("/proc/self/cgroup")
    for line in groups.read_text().splitlines() if groups.exists() else ():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, name = Path("/sys/fs/cgroup"), "memory.max"
        elif controllers == "memory":
            root, name = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
        else:
            continue
        own = root / path.lstrip("/")
        for folder in (own, *own.parents):
            limit = folder / name
            if folder.is_relative_to(root) and limit.exists():
                text = limit.read_text().strip()
                found += [int(text)] if text.isdigit() else []
    return min(found)


@contextmanager
def at_most(memory: int | None) -> Iterator[None]:
    """Inside, an allocation that would take the process beyond `memory` raises MemoryError."""
    if memory is None:
        yield
        return
    if sys.platform != "linux":
        raise LimitError("--max-memory cannot be kept on this system: it needs Linux")
    import resource

    global _inside, _before
    with _lock:
        if not _inside:
            _before = resource.getrlimit(resource.RLIMIT_DATA)
        _inside += 1
        pages = _USED.read_bytes().split()
        resident, data = (int(pages[i]) * resource.getpagesize() for i in (1, 5))
        wanted = data + max(0, memory - resident)
        soft, hard = _before
        ends = [end for end in (wanted, soft, hard) if end != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min(ends), hard))
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                resource.setrlimit(resource.RLIMIT_DATA, _before)


def size(count: int) -> str:
    """A number of bytes for people."""
    for unit, factor in _UNITS:
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} bytes"
