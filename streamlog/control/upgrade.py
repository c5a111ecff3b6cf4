"""A checkpoint of one version of a program becomes one of the next, whole or not at all: the new
one is written beside the old, which goes only when that is complete (`runtime.checkpoint`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from streamlog.compiler import Planned, Program
from streamlog.control.change import Change, Fate, change
from streamlog.control.layers import Known, Layer, Layers, time_of
from streamlog.control.stored import layers_of, stored
from streamlog.control.text import compiled, text_of
from streamlog.runtime import checkpoint
from streamlog.runtime.engine import Engine
from streamlog.runtime.envelope import CheckpointError, difference
from streamlog.runtime.executor import BEGIN, Limits, Row, Saved
from streamlog.runtime.merging import merged
from streamlog.runtime.sources import Input, Rows, read_files

Tables = Mapping[str, Iterable[Any]]


@frozen
class Upgrade:
    """A change that has not been written yet."""

    change: Change
    engine: Engine
    extra: Mapping[str, Any]
    dropped: Mapping[str, int]  # rows that waited in streams that are others now

    def write(self, folder: Path) -> None:
        checkpoint.save(self.engine, folder, self.extra)


def old_program(found: checkpoint.Stored, given: Program | None, allow_python: bool) -> Program:
    """What a checkpoint was made by: its own text, or else what is given."""
    if "program" in found.extra:
        return compiled(found.extra["program"], allow_python)
    if given is None:
        raise CheckpointError(
            f"'{found.path}' was made by an earlier streamlog, without the text of its program: "
            "give that with --old"
        )
    if reason := difference(given, found.program):
        raise CheckpointError(f"'{found.path}' {reason}")
    return given


def upgrade(
    found: checkpoint.Stored,
    old: Program,
    new: Program,
    tables: Tables,
    *,
    allow_python: bool = False,
    limits: Limits | None = None,
    since: int | None = None,
    incomplete: Sequence[str] = (),
) -> Upgrade:
    """From a checkpoint of the old program to one of the new. `since`: read the sources again, as
    far as rows from then on are concerned. `incomplete`: outputs to give in any case."""
    saved, extra = found.saved, found.extra
    if extra.get("finished"):
        raise CheckpointError(f"the run of '{found.path.parent}' has finished")
    if saved.figures["remembers"]:
        raise CheckpointError(f"'{found.path}' was made by an engine that remembers everything")
    text = extra.get("program") or text_of(old)
    current = Layer(old.closed, text=text, errors=tuple(old.errors or ()))
    layers = Layers(layers_of(extra, current, allow_python), {}, limits, current=current)
    layers.load(_executors(saved))
    if not layers.stepped:
        layers.stepped = _progress(saved, found.path)
    more = _kept(old, saved)
    if since is not None:
        more = _replayed(old, extra, tables, layers.stepped, since)
    same = {
        n
        for n in new.schema.streams
        if n in old.schema.streams and _shape(old, n) == _shape(new, n)
    }
    lost = {
        name: clock[1] + 1
        for name, clock in saved.figures["clocks"].items()
        if old.schema.stream_of(name) not in same and clock[1] > BEGIN
    }
    made: list[Change] = []

    def make(planned: Planned, rows: Mapping[str, Sequence[Row]], limits: Limits) -> Layers:
        altered = {
            name
            for name in rows.keys() & {*old.schema.inputs}
            if extra.get("tables", {}).get(name) != checkpoint.checksum(rows[name])
        }
        layer = Layer(planned, text=text_of(new), errors=tuple(new.errors or ()))
        made.append(
            change(layers, layer, layer.outputs, rows, altered, more, limits, incomplete, lost)
        )
        return made[0].layers

    engine = Engine(new, make, tables, limits, remember=False, checked=True)
    dropped = {
        name: len(saved.tables[f"buffer {name}"])
        for name in old.schema.streams
        if name not in same and saved.tables[f"buffer {name}"]
    }
    engine.load(_carried(engine, saved, same))
    for name in sorted(same):
        before = {*old.schema.rows_of(name)}
        engine.take(name, [row for row in new.schema.rows_of(name) if row not in before])
    added = [e.name for e in made[0].entries if e.is_output and e.name not in old.contract.outputs]
    gone = [e.name for e in made[0].entries if e.fate is Fate.REMOVED]
    outputs = {n: mark for n, mark in extra.get("outputs", {}).items() if n not in gone}
    inputs = [i for i in extra.get("inputs", ()) if i["pred"] in new.schema.streams]
    kept = {**extra, "inputs": inputs, "outputs": outputs, "finished": False}
    kept["added"] = sorted({*added, *extra.get("added", ()), "--withheld"} - {*gone})
    return Upgrade(made[0], engine, {**kept, **stored(engine)}, dropped)


def _executors(saved: Saved) -> dict[str, list[Row]]:
    start = "executor "
    tables = saved.tables.items()
    return {k.removeprefix(start): list(v) for k, v in tables if k.startswith(start)}


def _progress(saved: Saved, path: Path) -> dict[str, int]:
    """Of the last step, where that is not recorded: that of now, if no row has come since."""
    progress = {name: clock[0] for name, clock in saved.figures["clocks"].items()}
    for name, at in progress.items():
        rows = saved.tables.get(f"buffer {name}", ())
        if any(isinstance(row[0], int) and row[0] <= at for row in rows):
            raise CheckpointError(
                f"'{path}' was made by an earlier streamlog, between two steps: run the old "
                "program once more from it first"
            )
    return progress


def _kept(program: Program, saved: Saved) -> dict[str, Known]:
    """The rows of streams that declare `keep`."""
    found = {}
    for name in program.schema.streams:
        option, rows = program.schema[name].option("keep"), saved.tables.get(f"history {name}")
        reached = saved.figures["clocks"][name][2]
        if option is not None and rows is not None and name not in program.schema.views:
            since = BEGIN if reached == BEGIN else reached - int(option.value.value) + 1
            found[name] = Known(since, [row for row in rows if time_of(row) >= since])
    return found


def _shape(program: Program, stream: str) -> object:
    """What a row of a stream looks like, and which timelines it lies on."""
    schema = program.schema
    columns = range(schema[stream].arity)
    return [program.types.column(stream, p) for p in columns], schema.elsewhere.get(stream)


def _carried(engine: Engine, saved: Saved, same: set[str]) -> Saved:
    """What a new engine starts from: its own, and what it has in common with the old one."""
    fresh, old = engine.save(), saved.figures
    figures: dict[str, Any] = dict(fresh.figures)
    clocks = {n for n in figures["clocks"] if engine.schema.stream_of(n) in same}
    for what, names in (("clocks", clocks), ("duplicates", same)):
        figures[what] = {**figures[what], **{n: old[what][n] for n in names if n in old[what]}}
    for what in ("rows", "late", "rejected", "answers", "skipped"):
        figures[what] = {n: old[what].get(n, count) for n, count in figures[what].items()}
    figures["calendar"] = [n for n in old["calendar"] if n in engine.checkers]
    figures["steps"], figures["state"] = old["steps"], old["state"]
    tables = dict(fresh.tables)
    for name in same:
        for what in ("buffer", "edge", "history"):
            key = f"{what} {name}"
            if key in tables and key in saved.tables:
                tables[key] = saved.tables[key]
    return Saved(figures, tables)


class _Collecting:
    """An executor that only takes note of the rows."""

    def __init__(self, *_: object) -> None:
        self.rows: dict[str, list[Row]] = {}

    def step(
        self, arrived: Mapping[str, Sequence[Row]], progress: Mapping[str, int]
    ) -> Mapping[str, list[Row]]:
        for name, rows in arrived.items():
            self.rows.setdefault(name, []).extend(rows)
        return {}

    def holding(self) -> Mapping[str, list[Row]]:
        return {}


def _first(rows: Rows, count: int) -> Rows:
    yield from islice(rows, count)


def _replayed(
    program: Program,
    extra: Mapping[str, Any],
    tables: Tables,
    stepped: Mapping[str, int],
    since: int,
) -> dict[str, Known]:
    """The rows of streams as they were read, up to where the last step was."""
    program = evolve(program, errors=None)
    collected = _Collecting()
    given = {n: rows for n, rows in tables.items() if n in program.schema.inputs}
    engine = Engine(program, lambda *_: collected, given, remember=False, checked=True)
    sources = [Input(i["pred"], Path(i["path"]), i.get("header", True)) for i in extra["inputs"]]
    for source in sources:
        if not source.path.is_file():
            raise CheckpointError(f"--since: '{source.path}' is not there any more")
    opened = read_files(sources, engine.checkers, [0] * len(sources), [None] * len(sources))
    read = [_first(rows, i["rows"]) for rows, i in zip(opened, extra["inputs"], strict=True)]
    for which, row in merged(read):
        if row is not None:
            engine.take(sources[which].pred, (row,))
    engine.step()
    found = {}
    for name in program.schema.streams:
        if name in program.schema.views:
            continue
        rows = [*collected.rows.get(name, ()), *engine.buffers[name].rows()]
        rows = [r for r in dict.fromkeys(rows) if since <= time_of(r) <= stepped[name]]
        found[name] = Known(since, sorted(rows, key=time_of))
    return found
