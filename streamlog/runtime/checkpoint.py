"""Checkpoints: an engine's state in a folder, whole or not at all.

    DIR/begun.json                               the outputs, before anything is written to them
        checkpoint-000000000007/manifest.json    what it is of, figures, checksums
                                rows.arrow       Arrow IPC streams, one after the other

A new one is written beside the old, made durable, and renamed into place; only then is the old
one removed. A crash at any moment leaves the newest complete one. Nothing in it is ever executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from streamlog.runtime.engine import Engine
from streamlog.runtime.envelope import (
    CheckpointError,
    difference,
    fingerprint,
    opened,
    sealed,
    sha256,
)
from streamlog.runtime.executor import Row, Saved
from streamlog.runtime.lock import PRIVATE, private
from streamlog.runtime.query import in_order
from streamlog.runtime.segments import Segment, packed, unpacked

MANIFEST, ROWS, BEGUN = "manifest.json", "rows.arrow", "begun.json"
_NAME = re.compile(r"checkpoint-([0-9]{12})")


# ----------------------------------------------------------------------------------- saving


def tables_checksum(engine: Engine) -> str:
    """Of the tables' rows: what was answered rests on them."""
    return _checksum({name: in_order(rows) for name, rows in sorted(engine.tables.items())})


def checksum(rows: Iterable[Row]) -> str:
    """Of the rows of one table."""
    return _checksum(in_order(rows))


def _checksum(rows: object) -> str:
    return hashlib.sha256(json.dumps(rows, default=repr).encode()).hexdigest()


def save(engine: Engine, folder: Path, extra: Mapping[str, Any] | None = None) -> Path:
    """Write a checkpoint of the engine, with whatever JSON its owner wants back; returns it."""
    folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    old = _found(folder)
    number = old[-1][0] + 1 if old else 1
    saved = engine.save()
    segments: list[dict[str, Any]] = []
    new = folder / f".new-{number:012}"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=PRIVATE)
    with open(new / ROWS, "wb", opener=private) as file:
        for table, rows in sorted(saved.tables.items()):
            for segment in packed(rows):
                segments.append(
                    {
                        "table": table,
                        "shape": segment.shape,
                        "rows": segment.count,
                        "places": segment.has_places,
                        "offset": file.tell(),
                        "length": len(segment.data),
                        "sha256": sha256(segment.data),
                    }
                )
                file.write(segment.data)
        file.flush()
        os.fsync(file.fileno())
    body = {
        "number": number,
        "program": fingerprint(engine.program),
        "inputs": tables_checksum(engine),
        "tables": sorted(saved.tables),
        "figures": saved.figures,
        "extra": dict(extra or {}),
        "segments": segments,
    }
    _write(new / MANIFEST, body)
    _sync(new)
    made = new.rename(folder / f"checkpoint-{number:012}")
    _sync(folder)
    for _, path in old:
        shutil.rmtree(path, ignore_errors=True)
    return made


def _write(path: Path, body: dict[str, Any]) -> None:
    with open(path, "wb", opener=private) as file:
        file.write(sealed(body).encode())
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -------------------------------------------------------------------------------- beginning


def begin(folder: Path, outputs: Mapping[str, str]) -> None:
    """Before the first checkpoint: what is found in these files from now on is this run's."""
    new = folder / f".{BEGUN}.new"
    _write(new, dict(outputs))
    new.rename(folder / BEGUN)
    _sync(folder)


def begun(folder: Path) -> Mapping[str, str]:
    """What `begin` was given; nothing, if no run has begun."""
    if not (folder / BEGUN).exists():
        return {}
    return _opened(folder / BEGUN)


# ---------------------------------------------------------------------------------- loading


@frozen
class Stored:
    """A checkpoint as it was read."""

    path: Path
    program: str  # its fingerprint
    inputs: str  # the checksum of the tables
    saved: Saved
    extra: Mapping[str, Any]  # its owner's JSON


def read(folder: Path) -> Stored | None:
    """The newest checkpoint of a folder, or None when there is none."""
    found = _found(folder)
    if not found:
        return None
    _, path = found[-1]
    body = _opened(path / MANIFEST)
    tables: dict[str, list[Segment]] = {name: [] for name in body["tables"]}
    data = _read(path / ROWS)
    for entry in body["segments"]:
        part = data[entry["offset"] : entry["offset"] + entry["length"]]
        if len(part) != entry["length"] or sha256(part) != entry["sha256"]:
            raise CheckpointError(
                f"'{path / ROWS}' is damaged: the rows of `{entry['table']}` are not those written"
            )
        tables[entry["table"]].append(Segment(entry["shape"], entry["rows"], entry["places"], part))
    rows: dict[str, Sequence[Row]] = {name: unpacked(parts) for name, parts in tables.items()}
    saved = Saved(body["figures"], rows)
    return Stored(path, body["program"], body["inputs"], saved, body["extra"])


def load(engine: Engine, folder: Path, stored: Stored | None = None) -> Mapping[str, Any] | None:
    """Continue from the newest checkpoint of a folder, in a new engine for the same program;
    `stored`, if it has been read already.

    Returns its owner's JSON, or None when there is no checkpoint.
    """
    stored = stored or read(folder)
    if stored is None:
        return None
    if reason := difference(engine.program, stored.program):
        raise CheckpointError(f"'{stored.path}' {reason}")
    if stored.inputs != tables_checksum(engine):
        raise CheckpointError(f"'{stored.path}' was made with other rows in the program's tables")
    engine.load(stored.saved)
    return stored.extra


def _found(folder: Path) -> list[tuple[int, Path]]:
    """The checkpoints of a folder, oldest first."""
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise CheckpointError(f"'{folder}' is not a folder")
    matches = ((_NAME.fullmatch(p.name), p) for p in folder.iterdir())
    return sorted((int(m[1]), p) for m, p in matches if m)


def _opened(path: Path) -> dict[str, Any]:
    return opened(_read(path), path)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CheckpointError(f"'{path}' cannot be read: {reason}") from None
