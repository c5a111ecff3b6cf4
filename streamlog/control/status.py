"""What the last checkpoint of an instance says."""

from __future__ import annotations

from collections.abc import Iterator

from streamlog.control.registry import Instance
from streamlog.runtime import checkpoint
from streamlog.runtime.addresses import redacted
from streamlog.runtime.values import moment
from streamlog.syntax.ast import Type


def facts(known: Instance) -> Iterator[tuple[str, str]]:
    version = known.version
    yield "instance", known.name
    yield "state", f"running, process {known.pids[0]}" if known.pids else "stopped"
    yield "program", f"{version.main}, version {version.number} since {version.since}"
    yield "engine", known.engine
    for what, places in (("input", version.inputs), ("output", version.outputs)):
        for text in places:
            yield what, redacted(text, [text])  # an address may have a password
    found = checkpoint.read(known.state) if known.engine == "local" else None
    if found is None:
        yield "checkpoint", "none"
        return
    figures = found.saved.figures
    yield "checkpoint", found.path.name
    for stream, (progress, *_) in sorted(figures["clocks"].items()):
        clock = Type.TIME if stream in figures["calendar"] else None
        rows = figures["rows"].get(stream)
        counted = "" if rows is None else f", {rows:,} rows, {figures['late'][stream]:,} late"
        yield stream, f"complete before {moment(progress, clock)}{counted}"
    for output, answers in sorted(figures["answers"].items()):
        yield output, f"{answers:,} answers"
    yield "state rows", f"{figures['state'][0]:,}"
