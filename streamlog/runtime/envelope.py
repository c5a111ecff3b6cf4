"""The envelope of every JSON file of a checkpoint, on both engines: what it is, which version, and
a checksum of what is inside."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from attrs import evolve

from streamlog.compiler import Program
from streamlog.syntax.ast import Test
from streamlog.syntax.pretty import pretty

FORMAT, VERSION = "streamlog checkpoint", 8
# Version 7 has no layers (`control.layers`): whoever reads it does so as one that has a single one.
READ = (7, VERSION)


class CheckpointError(Exception):
    """A checkpoint cannot be used; the message says why."""


def sealed(body: dict[str, Any]) -> str:
    document = {"format": FORMAT, "version": VERSION, "sha256": body_sha256(body), "body": body}
    return json.dumps(document, indent=1)


def opened(text: str | bytes, file: object) -> dict[str, Any]:
    """What `sealed` was given; raises `CheckpointError` if this is not what it returned."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise CheckpointError(f"'{file}' is damaged: it is not JSON") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CheckpointError(f"'{file}' is not part of a checkpoint of this streamlog")
    if document.get("version") not in READ:
        known = " and ".join(map(str, READ))
        raise CheckpointError(
            f"'{file}' has version {document.get('version')}; this streamlog reads {known}"
        )
    body = document.get("body")
    if not isinstance(body, dict) or body_sha256(body) != document.get("sha256"):
        raise CheckpointError(f"'{file}' is damaged: its checksum is wrong")
    return body


def body_sha256(body: Any) -> str:
    return sha256(json.dumps(body, sort_keys=True).encode())


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def fingerprint(program: Program) -> str:
    """What must be the same for a run to continue: the program without its tests, and whether
    it skips what cannot be computed."""
    module = program.module
    kept = tuple(s for s in module.statements if not isinstance(s, Test))
    mode = program.mode.value if program.errors is None else f"{program.mode.value} skip"
    python = "".join(f"{sha256(s.text.encode())}\n" for s in program.closed.python)
    return sha256(f"{python}{mode}\n{pretty(evolve(module, statements=kept))}".encode())


def difference(program: Program, known: str) -> str | None:
    """Why a run with this fingerprint cannot be continued with a program."""
    if known == fingerprint(program):
        return None
    if known == fingerprint(evolve(program, errors={} if program.errors is None else None)):
        return "was made with another --on-error"
    return "is of another program, or of an older form of this one"
