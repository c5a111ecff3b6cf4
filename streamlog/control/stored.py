"""Layers in a checkpoint, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamlog.compiler import Planned, Program
from streamlog.control.layers import Layer, Layers
from streamlog.control.text import compiled, text_of
from streamlog.runtime.checkpoint import checksum
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import ExecutorFactory, Limits, Row

Stored = Mapping[str, Any]  # JSON


def stored(engine: Engine) -> Stored:
    """What `executor` needs besides the state of the engine."""
    layers, current = engine.executor, engine.program.closed
    assert isinstance(layers, Layers)
    return {
        "program": text_of(engine.program),
        "layers": [_written(layer, current) for layer in layers.layers],
        "tables": {name: checksum(rows) for name, rows in sorted(engine.tables.items())},
    }


def _written(layer: Layer, current: Planned) -> Stored:
    return {
        "text": None if layer.program is current else layer.text,
        "preds": None if layer.preds is None else sorted(layer.preds),
        "warm": dict(layer.warm),
    }


def layers_of(known: Stored | None, current: Layer, allow_python: bool) -> list[Layer]:
    """The layers of a checkpoint; of one that has no word of them, or of none: a single one."""
    if known is None or "layers" not in known:
        return [current]
    found = []
    for entry in known["layers"]:
        program, text = current.program, current.text
        if entry["text"] is not None:
            text = entry["text"]
            program = compiled(text, allow_python).closed
        preds = None if entry["preds"] is None else frozenset(entry["preds"])
        found.append(Layer(program, preds, entry["warm"], text))
    return found


def executor(
    known: Stored | None, program: Program, allow_python: bool, *, profiled: bool = False
) -> ExecutorFactory:
    """What makes the executor of a program whose checkpoint has this to say."""

    def make(planned: Planned, tables: Mapping[str, Sequence[Row]], limits: Limits) -> Layers:
        current = Layer(planned, text=text_of(program), errors=tuple(program.errors or ()))
        layers = layers_of(known, current, allow_python)
        return Layers(layers, tables, limits, current=current, profiled=profiled)

    return make
