"""Ctrl-C while Spark runs.

PySpark's own handler calls Java, which is nearly always in the midst of another call. That, or an
exception that cuts such a call off, ends in tracebacks of Py4J's.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

Handler = Callable[[int, FrameType | None], object]
INTERRUPTED = 130


def leave(signum: int, frame: FrameType | None) -> NoReturn:
    """At once. Java ends with us, and files are there whole or not at all."""
    from streamlog.app.render import console

    console(stderr=True).show_cursor()  # a live line hides it
    os._exit(INTERRUPTED)


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
