"""What a run in this process says of itself: how far it is, and at its end what it did and cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.table import Table

from streamlog.app.closing import profile_table, times_table
from streamlog.app.formats import count
from streamlog.control.layers import Layers
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import Measured, Profiled
from streamlog.runtime.values import moment


def progress_line(engine: Engine) -> str:
    report = engine.report
    clocks = [c for c in engine.progress.clocks.values() if not c.ended]
    slowest = min(clocks, key=lambda c: c.progress, default=None)
    at = moment(slowest.progress, engine.clock(slowest.stream)) if slowest else "the end"
    rows = sum(c.rows for c in report.streams.values())
    answers = sum(report.answers.values())
    return f"{rows:,} rows · progress {at} · {report.state:,} rows of state · {answers:,} answers"


def withheld_lines(engine: Engine, withheld: Mapping[str, int], hint: str) -> Iterator[str]:
    """What an upgrade could not vouch for, of each output."""
    if isinstance(engine.executor, Layers):
        for name, before in sorted(engine.executor.before.items()):
            if number := withheld[name]:
                at = moment(before, engine.clock(name))
                yield f"withheld {count(number, 'answer')} of {name} before {at}{hint}"


def costs(engine: Engine, seconds: float, *, profiled: bool) -> Iterator[Table | str]:
    report, executor = engine.report, engine.executor
    state = f"state: {report.state_high:,} rows at most"
    if seconds >= 1:
        rows = sum(c.rows for c in report.streams.values())
        state += f"; {seconds:.1f} s ({rows / seconds:,.0f} rows a second)"
        if isinstance(executor, Measured) and not profiled:
            yield times_table(executor.seconds)
    if isinstance(executor, Profiled) and profiled:
        yield profile_table(executor.costs)
    yield state
