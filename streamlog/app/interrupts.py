"""Ctrl-C, and the SIGTERM of service managers, while Spark runs.

PySpark's own handler calls Java, which is nearly always in the midst of another call. That, or an
exception that cuts such a call off, ends in tracebacks of Py4J's.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import NoReturn

Handler = Callable[[int, FrameType | None], object]
SIGNALS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 130


def interruptible() -> AbstractContextManager[None]:
    """Within, the run ends at once when it is asked to."""
    return _handled(_leave)


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """Within, the event tells that the run was asked to stop; asked again, it ends at once."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            _leave(number, frame)
        asked.set()

    with _handled(ask):
        yield asked


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """Java ends with us, and files are complete or not there at all."""
    from streamlog.app.render import console

    console(stderr=True).show_cursor()  # a live line hides it
    os._exit(INTERRUPTED)


@contextmanager
def _handled(handler: Handler) -> Iterator[None]:
    """Python lets only its main thread say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, known in before.items():
            signal.signal(number, known)
