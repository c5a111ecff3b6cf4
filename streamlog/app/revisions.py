"""Programs as they were: `main:rules/airport.slog` is a file or folder at a revision of git."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from attrs import frozen

from streamlog.app.inputs import files_of

# What the compiler opens of a project.
_READ = (".slog", ".py", ".toml")


@frozen
class Side:
    """One side of a comparison: a file or folder, and what people call it."""

    name: str
    path: Path
    root: Path | None  # of a revision, where it was unpacked

    def programs(self) -> dict[str, Path]:
        """By their place below the folder; a file's is empty."""
        if self.path.is_file():
            return {"": self.path}
        if self.root is not None and not any(self.path.rglob("*.slog")):
            return {}  # of a revision before there were rules
        files = map(Path, files_of([str(self.path)]))
        return {file.relative_to(self.path).as_posix(): file for file in files}

    def shown(self, path: str) -> str:
        """A file as people know it, not as it was unpacked."""
        if self.root is None:
            return path
        revision = self.name.split(":")[0]
        return f"{revision}:{Path(path).resolve().relative_to(self.root).as_posix()}"


@contextmanager
def side(text: str) -> Iterator[Side]:
    """A path that exists, or `REVISION:PATH`, for as long as it is needed."""
    path = Path(text)
    if path.exists():
        yield Side(text, path, None)
        return
    revision, colon, place = text.partition(":")
    if not colon or not revision:
        raise click.UsageError(
            f"'{text}' does not exist; a file or folder of a revision is written REVISION:PATH"
        )
    top = Path(_git("rev-parse", "--show-toplevel", why=text).decode().strip())
    inside = Path.cwd().resolve().relative_to(top.resolve()) / place if place[:1] == "." else place
    with TemporaryDirectory(prefix="streamlog-") as folder:
        root = Path(folder).resolve()
        asked = ("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
        commit = _git(*asked, why=text).decode().strip()
        archive = _git("-C", str(top), "archive", "--format=tar", commit, why=text)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            folders = [m for m in tar if m.isdir()]
            files = [m for m in tar if m.isfile() and m.name.endswith(_READ)]
            tar.extractall(root, members=[*folders, *files], filter="data")
        path = (root / inside).resolve()
        if not (path.exists() and path.is_relative_to(root)):
            raise click.UsageError(f"there is no program at {inside} in revision {revision}")
        yield Side(text, path, root)


def _git(*args: str, why: str) -> bytes:
    try:
        done = subprocess.run(["git", *args], capture_output=True, check=False)
    except FileNotFoundError:
        raise click.UsageError(f"'{why}' names a revision, and git is not installed") from None
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise click.UsageError(f"'{why}': {reason}")
    return done.stdout
