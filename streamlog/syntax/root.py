"""The folder below which a program finds the files that it uses."""

from __future__ import annotations

from pathlib import Path

PROJECT = "streamlog.toml"  # at the root of a project


def project_of(folder: Path) -> Path | None:
    """The root of the project that a folder lies in."""
    return next((f for f in (folder, *folder.parents) if (f / PROJECT).is_file()), None)


def root_of(path: Path) -> Path:
    """The root of a file's project, or else the file's own folder."""
    folder = path.resolve().parent
    return project_of(folder) or folder
