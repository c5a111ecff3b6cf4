"""Ctrl-C while Spark runs.

PySpark's own handler calls Java, which may be in the midst of another call: that ends in tracebacks
of Py4J's. So do exceptions that interrupt such a call, unless they are no `Exception`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

Handler = Callable[[int, FrameType | None], object]
INTERRUPTED = 130


def leave(signum: int, frame: FrameType | None) -> NoReturn:
    """At once. Java ends with us, and what counts is in files that are there whole or not."""
    raise SystemExit(INTERRUPTED)


@contextmanager
def on_interrupt(handler: Handler) -> Iterator[None]:
    """Within, this is what Ctrl-C does. Python lets only its main thread say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
