"""Figures of a run for Prometheus, and whether it is alive, over HTTP on the loopback address.

    /metrics    what the engine reports, in the text format of Prometheus
    /health     200 if the run has gone a round within the last minute, else 503

The run takes note of its figures itself, between two steps; requests read what was noted last, so
they never wait for the engine, nor it for them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from attrs import field, frozen

from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import BEGIN, END, Measured
from streamlog.syntax.ast import Type

LOOPBACK = "127.0.0.1"
ALIVE = 60.0  # seconds between two rounds
_SHARE = 20  # of the time, one part goes into looking at what is held


class MetricsError(Exception):
    """Figures cannot be served; the message says why."""


@frozen
class Figures:
    """What a run has noted."""

    counters: Mapping[str, Mapping[str, float]] = field(factory=dict)  # by name and label
    gauges: Mapping[str, Mapping[str, float]] = field(factory=dict)
    at: float = 0.0


# By name: the label, and what it is.
COUNTERS = {
    "rows": ("input", "Rows that have come"),
    "late_rows": ("input", "Rows that came when their time had passed"),
    "rejected_rows": ("input", "Rows that are not those of their input"),
    "duplicate_rows": ("input", "Rows that had come before"),
    "answers": ("output", "Answers that were given"),
    "withheld_answers": ("output", "Answers that an upgrade cannot vouch for"),
    "skipped_solutions": ("rule", "Solutions that could not be computed"),
    "steps": ("", "Evaluations"),
    "step_seconds": ("", "Seconds that evaluations took"),
}
GAUGES = {
    "progress_timestamp_seconds": ("stream", "Everything earlier has come: event time"),
    "lag_seconds": ("stream", "How far that is behind the wall clock"),
    "held_back_seconds": ("output", "How far an output is behind the latest row of any stream"),
    "held_back_by": ("output,stream", "1 for the stream that an output waits for"),
    "state_rows": ("predicate", "Rows in memory that future answers may need"),
    "state_rows_all": ("", "Rows in memory"),
}


class Metrics:
    """Serves the figures that `look` notes."""

    def __init__(self, port: int) -> None:
        try:
            from prometheus_client import CollectorRegistry
        except ModuleNotFoundError:
            raise MetricsError(
                "--metrics needs prometheus_client: pip install 'streamlog[metrics]'"
            ) from None
        self.figures = Figures()
        self._slow: Mapping[str, Mapping[str, float]] = {}
        self._next = 0.0
        self._registry = CollectorRegistry()
        self._registry.register(self)  # it asks for `collect` alone
        try:
            self._server = ThreadingHTTPServer((LOOPBACK, port), _handler(self))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise MetricsError(f"--metrics {port}: {reason}") from None
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # ---------------------------------------------------------------------------- the run

    def look(self, engine: Engine, seconds: float, withheld: Mapping[str, int]) -> None:
        """Take note of the figures of an engine, whose steps have taken so many seconds."""
        report, now = engine.report, time.time()
        streams = report.streams.items()
        counters: dict[str, Mapping[str, float]] = {
            "rows": {n: c.rows for n, c in streams},
            "late_rows": {n: c.late for n, c in streams},
            "rejected_rows": {n: c.rejected for n, c in streams},
            "duplicate_rows": {n: c.duplicates for n, c in streams},
            "answers": report.answers,
            "withheld_answers": withheld,
            "skipped_solutions": report.skipped,
            "steps": {"": report.steps},
            "step_seconds": {"": seconds},
        }
        progress = dict(_progress(engine))
        lag = {n: now - at for n, at in progress.items()}
        if time.monotonic() >= self._next:
            began = time.monotonic()
            self._slow = _held(engine)
            self._next = time.monotonic() + max(1.0, _SHARE * (time.monotonic() - began))
        executor = engine.executor
        size = executor.size() if isinstance(executor, Measured) else report.state
        gauges: dict[str, Mapping[str, float]] = {
            "progress_timestamp_seconds": progress,
            "lag_seconds": lag,
            "state_rows_all": {"": size},
            **self._slow,
        }
        self.figures = Figures(counters, gauges, time.monotonic())

    # ----------------------------------------------------------------------- the requests

    def collect(self) -> Iterator[Any]:
        """As `prometheus_client` asks for it."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        figures = self.figures
        for families, known, values in (
            (CounterMetricFamily, COUNTERS, figures.counters),
            (GaugeMetricFamily, GAUGES, figures.gauges),
        ):
            for name, (label, text) in known.items():
                labels = label.split(",") if label else []
                family = families(f"streamlog_{name}", f"{text}.", labels=labels)
                for value, number in values.get(name, {}).items():
                    family.add_metric(value.split("\0") if labels else [], float(number))
                yield family

    def text(self) -> bytes:
        from prometheus_client import generate_latest

        return generate_latest(self._registry)

    def health(self) -> tuple[int, bytes]:
        since = time.monotonic() - self.figures.at
        alive = bool(self.figures.at) and since < ALIVE
        body = {"alive": alive, "seconds_since_last_round": round(since, 1) if alive else None}
        return (200 if alive else 503), json.dumps(body).encode()


def _progress(engine: Engine) -> Iterable[tuple[str, float]]:
    for name, clock in engine.progress.clocks.items():
        if engine.clock(name) is Type.TIME and BEGIN < clock.progress < END:
            yield name, clock.progress / 1e6


def _held(engine: Engine) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {"held_back_seconds": {}, "held_back_by": {}}
    furthest = max((c.seen for c in engine.progress.clocks.values()), default=BEGIN)
    for held in engine.status():
        found["held_back_by"][f"{held.output}\0{held.stream}"] = 1
        if held.clock is Type.TIME and held.complete > BEGIN:
            found["held_back_seconds"][held.output] = max(0.0, (furthest - held.complete) / 1e6)
    found["state_rows"] = {n: len(rows) for n, rows in engine.executor.holding().items()}
    return found


def _handler(metrics: Metrics) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "streamlog", ""

        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._answer(200, "text/plain; version=0.0.4; charset=utf-8", metrics.text())
            elif self.path == "/health":
                self._answer(metrics.health()[0], "application/json", metrics.health()[1])
            else:
                self._answer(404, "text/plain; charset=utf-8", b"not here\n")

        def _answer(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
