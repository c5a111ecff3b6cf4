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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve

from streamlog.compiler import Program
from streamlog.runtime.engine import Engine, Saved
from streamlog.runtime.executor import Row
from streamlog.runtime.lock import PRIVATE, private
from streamlog.runtime.segments import Segment, packed, unpacked
from streamlog.syntax.ast import Test
from streamlog.syntax.pretty import pretty

FORMAT = "streamlog checkpoint"
VERSION = 4
MANIFEST, ROWS, BEGUN = "manifest.json", "rows.arrow", "begun.json"
_NAME = re.compile(r"checkpoint-([0-9]{12})")


class CheckpointError(Exception):
    """A checkpoint cannot be used; the message says why."""


def fingerprint(program: Program) -> str:
    """What must be the same for a run to continue: the program without its tests."""
    module = program.module
    kept = tuple(s for s in module.statements if not isinstance(s, Test))
    return _sha256(f"{program.mode.value}\n{pretty(evolve(module, statements=kept))}".encode())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ----------------------------------------------------------------------------------- saving


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
                        "sha256": _sha256(segment.data),
                    }
                )
                file.write(segment.data)
        file.flush()
        os.fsync(file.fileno())
    body = {
        "number": number,
        "program": fingerprint(engine.program),
        "inputs": engine.tables_sha256,
        "tables": sorted(saved.tables),
        "figures": saved.figures,
        "extra": dict(extra or {}),
        "segments": segments,
    }
    document = {"format": FORMAT, "version": VERSION, "sha256": _body_sha256(body), "body": body}
    _write(new / MANIFEST, document)
    _sync(new)
    made = new.rename(folder / f"checkpoint-{number:012}")
    _sync(folder)
    for _, path in old:
        shutil.rmtree(path, ignore_errors=True)
    return made


def _write(path: Path, document: Mapping[str, Any]) -> None:
    with open(path, "wb", opener=private) as file:
        file.write(json.dumps(document, indent=1).encode())
        file.flush()
        os.fsync(file.fileno())


def _body_sha256(body: Mapping[str, Any]) -> str:
    return _sha256(json.dumps(body, sort_keys=True).encode())


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
    _write(new, {"format": FORMAT, "version": VERSION, "outputs": dict(outputs)})
    new.rename(folder / BEGUN)
    _sync(folder)


def begun(folder: Path) -> Mapping[str, str]:
    """What `begin` was given; nothing, if no run has begun."""
    if not (folder / BEGUN).exists():
        return {}
    outputs: Mapping[str, str] = _document(folder / BEGUN, folder).get("outputs", {})
    return outputs


# ---------------------------------------------------------------------------------- loading


def load(engine: Engine, folder: Path) -> Mapping[str, Any] | None:
    """Continue from the newest checkpoint of a folder, in a new engine for the same program.

    Returns its owner's JSON, or None when there is no checkpoint.
    """
    found = _found(folder)
    if not found:
        return None
    _, path = found[-1]
    body = _manifest(path)
    if body["program"] != fingerprint(engine.program):
        raise CheckpointError(f"'{path}' is of another program, or of an older form of this one")
    if body["inputs"] != engine.tables_sha256:
        raise CheckpointError(f"'{path}' was made with other rows in the program's tables")
    tables: dict[str, list[Segment]] = {name: [] for name in body["tables"]}
    data = _read(path / ROWS)
    for entry in body["segments"]:
        part = data[entry["offset"] : entry["offset"] + entry["length"]]
        if len(part) != entry["length"] or _sha256(part) != entry["sha256"]:
            raise CheckpointError(
                f"'{path / ROWS}' is damaged: the rows of `{entry['table']}` are not those written"
            )
        tables[entry["table"]].append(Segment(entry["shape"], entry["rows"], entry["places"], part))
    rows: dict[str, list[Row]] = {name: unpacked(parts) for name, parts in tables.items()}
    engine.load(Saved(body["figures"], rows))
    extra: Mapping[str, Any] = body["extra"]
    return extra


def _found(folder: Path) -> list[tuple[int, Path]]:
    """The checkpoints of a folder, oldest first."""
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise CheckpointError(f"'{folder}' is not a folder")
    matches = ((_NAME.fullmatch(p.name), p) for p in folder.iterdir())
    return sorted((int(m[1]), p) for m, p in matches if m)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CheckpointError(f"'{path}' cannot be read: {reason}") from None


def _document(file: Path, path: Path) -> dict[str, Any]:
    """A file of a checkpoint, if this streamlog can read it."""
    try:
        document = json.loads(_read(file))
    except (ValueError, RecursionError):
        raise CheckpointError(f"'{file}' is damaged: it is not JSON") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CheckpointError(f"'{path}' is not a checkpoint of streamlog")
    if document.get("version") != VERSION:
        raise CheckpointError(
            f"'{path}' has version {document.get('version')}; this streamlog reads {VERSION}"
        )
    return document


def _manifest(path: Path) -> dict[str, Any]:
    """What a checkpoint says of itself, once it is believed."""
    document = _document(path / MANIFEST, path)
    body = document.get("body")
    if not isinstance(body, dict) or _body_sha256(body) != document.get("sha256"):
        raise CheckpointError(f"'{path / MANIFEST}' is damaged: its checksum is wrong")
    return body
