"""The settings of a project: `streamlog.toml`, at its root."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import click
from attrs import field, frozen

from streamlog.codes import SEVERITIES, Severity
from streamlog.diagnostics import did_you_mean
from streamlog.syntax.root import PROJECT, project_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ENGINES = ("spark", "local")


@frozen
class Project:
    """What `streamlog.toml` says; without one, nothing."""

    root: Path | None = None
    engine: str | None = None  # what `run` evaluates with
    inputs: Mapping[str, str] = field(factory=dict)  # where `run` finds rows; paths are absolute
    strict: bool = False  # whether warnings fail `check`
    allowed: Mapping[str, str] = field(factory=dict)  # codes of warnings, and why they are allowed
    stored: tuple[str, ...] = ()  # patterns of programs that are for complete, stored data

    def is_stored(self, path: str | Path) -> bool:
        return any(Path(path).resolve().match(pattern) for pattern in self.stored)


def project(path: str | Path) -> Project:
    """The settings of the project that a file or folder lies in."""
    path = Path(path).resolve()
    root = project_of(path if path.is_dir() else path.parent)
    if root is None:
        return Project()
    settings = _Settings(root / PROJECT)
    settings.known("", ("batch", "run", "check"))
    run, check = settings.table("run"), settings.table("check")
    settings.known("run", ("engine", "inputs"))
    settings.known("check", ("strict", "allow"))
    engine, strict = run.get("engine"), check.get("strict", False)
    if engine is not None and engine not in ENGINES:
        raise settings.wrong(f"`run.engine` is {' or '.join(map(repr, ENGINES))}, not {engine!r}")
    if not isinstance(strict, bool):
        raise settings.wrong(f"`check.strict` is true or false, not {strict!r}")
    stored = settings.all.get("batch", [])
    if not isinstance(stored, list) or not all(isinstance(p, str) and p for p in stored):
        raise settings.wrong('`batch` is a list of patterns, as in `batch = ["stored/*.slog"]`')
    return Project(root, engine, settings.inputs(), strict, settings.allowed(), tuple(stored))


def project_here() -> str | None:
    """The root of the project that the current folder lies in, as a path from there."""
    root = project_of(Path.cwd())
    return None if root is None else os.path.relpath(root)


class _Settings:
    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.all: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise self.wrong(f"it is not TOML: {error}") from None

    def wrong(self, what: str) -> click.UsageError:
        return click.UsageError(f"{os.path.relpath(self.path)}: {what}")

    def table(self, name: str) -> dict[str, Any]:
        found: Any = self.all
        for part in name.split(".") if name else ():
            found = found.get(part, {})
            if not isinstance(found, dict):
                raise self.wrong(f"`{name}` is a table: write `[{name}]` on a line of its own")
        assert isinstance(found, dict)
        return found

    def known(self, table: str, keys: Collection[str]) -> None:
        for key in self.table(table):
            if key not in keys:
                near = did_you_mean(key, keys)
                where = f" in `[{table}]`" if table else ""
                hint = f"did you mean `{near}`?" if near else f"it can have {', '.join(keys)}"
                raise self.wrong(f"unknown key `{key}`{where}; {hint}")

    def inputs(self) -> dict[str, str]:
        from streamlog.runtime.addresses import is_address
        from streamlog.runtime.data_files import STANDARD

        found: dict[str, str] = {}
        for name, place in _flat(self.table("run.inputs")):
            if not isinstance(place, str):
                raise self.wrong(f'the input `{name}` is a path in quotes, as in `"{name}.csv"`')
            elsewhere = place in STANDARD or is_address(place)
            found[name] = place if elsewhere else str(self.path.parent / place)
        return found

    def allowed(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for code, reason in self.table("check.allow").items():
            if code not in SEVERITIES:
                near = did_you_mean(code, SEVERITIES)
                hint = f"; did you mean `{near}`?" if near else ""
                raise self.wrong(f"there is no code `{code}`{hint}")
            if SEVERITIES[code] is Severity.ERROR:
                raise self.wrong(f"`{code}` is an error; only warnings can be allowed")
            if not isinstance(reason, str) or not reason.strip():
                raise self.wrong(f'say why `{code}` is allowed: `{code} = "the reason"`')
            found[code] = reason
        return found


def _flat(table: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """`auth.login = …` is to TOML a table `auth` with a key `login`."""
    found: list[tuple[str, Any]] = []
    for name, value in table.items():
        if isinstance(value, dict):
            found += ((f"{name}.{inner}", place) for inner, place in _flat(value))
        else:
            found.append((name, value))
    return found
