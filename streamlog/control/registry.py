"""Instances of programs: each a folder of a registry, with all that it needs to go on.

    .streamlog/alarms/instance.json    its versions, inputs, outputs and options
                      versions/2/      the files of the program, copied
                      state/           the checkpoint
                      lock             held by the process that runs it
                      log              what its runs print

A version counts when `instance.json` says so; if that was not written, the checkpoint says which
version it is of.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from attrs import asdict, evolve, frozen

from streamlog.compiler import Program
from streamlog.control.text import text_of
from streamlog.runtime import checkpoint
from streamlog.runtime.addresses import redacted
from streamlog.runtime.envelope import fingerprint
from streamlog.runtime.lock import PRIVATE, holder, locked
from streamlog.syntax.root import PROJECT, project_of

FOLDER = ".streamlog"
_FILE, _VERSIONS, _STATE, _LOG = "instance.json", "versions", "state", "log"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_PATIENCE = 60.0  # seconds for a run to end when it is asked to


class RegistryError(Exception):
    """What was asked for cannot be done; the message says why."""


@frozen
class Version:
    number: int
    fingerprint: str
    main: str  # the program's file, below the folder of the version
    since: str
    inputs: tuple[str, ...]  # NAME=PLACE
    outputs: tuple[str, ...]


@frozen
class Instance:
    folder: Path
    engine: str
    options: tuple[str, ...]  # more of `run`
    versions: tuple[Version, ...]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def state(self) -> Path:
        return self.folder / _STATE

    @property
    def log(self) -> Path:
        return self.folder / _LOG

    @property
    def version(self) -> Version:
        """The newest, or that of the checkpoint."""
        found = checkpoint.read(self.state) if self.engine == "local" else None
        if found is not None:
            for version in reversed(self.versions):
                if version.fingerprint == found.program:
                    return version
        return self.versions[-1]

    @property
    def program(self) -> Path:
        version = self.version
        return self.folder / _VERSIONS / str(version.number) / version.main

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that run it: the one that starts it again, and the run itself."""
        found = (holder(self.folder), holder(self.state))
        return tuple(dict.fromkeys(pid for pid in found if pid is not None))

    def arguments(self) -> list[str]:
        """Of `streamlog run`."""
        made = [str(self.program), "--engine", self.engine, "--follow"]
        made += ["--checkpoint", str(self.state), *self.options]
        version = self.version
        made += (part for text in version.inputs for part in ("--input", text))
        return [*made, *(part for text in version.outputs for part in ("--output", text))]


def registry_of(given: str | None) -> Path:
    """The folder of instances: the one given, or that of the project, or of this folder."""
    here = Path.cwd()
    return Path(given) if given else (project_of(here) or here) / FOLDER


def instances(registry: Path) -> list[Instance]:
    """By name."""
    if not registry.is_dir():
        return []
    found = sorted(p.parent for p in registry.glob(f"*/{_FILE}"))
    return [_read(folder) for folder in found]


def instance(registry: Path, name: str) -> Instance:
    _check_name(name)
    if not (registry / name / _FILE).is_file():
        known = ", ".join(i.name for i in instances(registry))
        raise RegistryError(
            f"there is no instance '{name}' in '{registry}'; it has {known or 'none'}"
        )
    return _read(registry / name)


def create(
    registry: Path,
    name: str,
    program: Program,
    engine: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    options: Sequence[str] = (),
) -> Instance:
    """A new instance, which does not run yet."""
    _check_name(name)
    folder = registry / name
    if folder.exists():
        raise RegistryError(f"there is an instance '{name}' already")
    for other in instances(registry):
        for place in sorted(_places(other.version.outputs) & _places(outputs)):
            shown = redacted(place, [place])
            raise RegistryError(f"'{shown}' is an output of '{other.name}'")
    new = registry / f".new-{name}"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=PRIVATE, parents=True)
    add_version(Instance(new, engine, tuple(options), ()), program, inputs, outputs)
    new.rename(folder)
    return _read(folder)


def add_version(
    known: Instance, program: Program, inputs: Sequence[str], outputs: Sequence[str]
) -> None:
    """A copy of the program, as the newest version."""
    print_ = fingerprint(program)
    number = max((v.number for v in known.versions), default=0) + 1
    text = text_of(program)
    folder = known.folder / _VERSIONS / str(number)
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in text["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    (folder / PROJECT).touch()  # so that paths count from here, and no other project is meant
    now = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
    version = Version(number, print_, text["main"], now, tuple(inputs), tuple(outputs))
    _write(evolve(known, versions=(*known.versions, version)))


def _write(made: Instance) -> None:
    body = {
        "engine": made.engine,
        "options": made.options,
        "versions": [asdict(version) for version in made.versions],
    }
    new = made.folder / f".{_FILE}.new"
    with new.open("w", encoding="utf-8") as file:
        json.dump(body, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    new.rename(made.folder / _FILE)


def remove(known: Instance) -> None:
    """With its state and its log; outputs stay."""
    if known.pids:
        raise RegistryError(f"'{known.name}' is running: stop it first")
    with locked(known.folder):
        gone = known.folder.with_name(f".gone-{known.name}")
        known.folder.rename(gone)
    shutil.rmtree(gone)


def stop(known: Instance) -> bool:
    """Ask its processes to end, and wait until they have; whether there were any."""
    pids = known.pids
    for pid in pids[:1]:  # it asks the run itself; a second request would end that at once
        os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + _PATIENCE
    while known.pids:
        if time.monotonic() > until:
            raise RegistryError(f"'{known.name}' has not ended within {_PATIENCE:.0f} seconds")
        time.sleep(0.05)
    return bool(pids)


def last_lines(path: Path, count: int) -> Iterator[str]:
    if path.exists():
        yield from path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]


def _read(folder: Path) -> Instance:
    try:
        body: Mapping[str, Any] = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        versions = tuple(
            Version(**{**v, "inputs": tuple(v["inputs"]), "outputs": tuple(v["outputs"])})
            for v in body["versions"]
        )
        options = tuple(map(str, body["options"]))
        return Instance(folder, str(body["engine"]), options, versions)
    except (ValueError, KeyError, TypeError) as error:
        raise RegistryError(f"'{folder / _FILE}' is damaged: {error}") from None


def _places(outputs: Sequence[str]) -> set[str]:
    return {text.partition("=")[2] for text in outputs}


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise RegistryError(
            f"'{name}' is not a name of an instance: letters, digits, `_`, `.` and `-`, at most 64"
        )
