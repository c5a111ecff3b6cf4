"""Files that are written beside their places, and moved there when all are complete."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from streamlog.runtime.lock import free


class Replacing:
    """`with Replacing() as files:` write to `files.beside(path)`; then `files.commit(…)`. What
    is not committed is removed, and what was at the places before stays."""

    def __init__(self) -> None:
        self._made: dict[Path, Path] = {}  # from where to where

    def beside(self, path: Path) -> Path:
        """Where to write what is for `path`, in the same folder; a link stays a link. What was
        written for it before, on another try, is gone."""
        target = path.resolve()
        for earlier in [new for new, place in self._made.items() if place == target]:
            earlier.unlink(missing_ok=True)
            del self._made[earlier]
        if target.exists():
            if not target.is_file():
                return path  # a pipe or a device is written to, not replaced
            free(target)
        new = target.with_name(f".{target.stem}.{secrets.token_hex(4)}{target.suffix}")
        self._made[new] = target
        return new

    def commit(self, paths: Iterable[Path]) -> None:
        """Move what was made for these, with the permissions of what was there."""
        wanted = {path.resolve() for path in paths}
        for new, target in list(self._made.items()):
            if target in wanted:
                if target.exists():
                    shutil.copymode(target, new)
                new.replace(target)
                del self._made[new]

    def __enter__(self) -> Replacing:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for new in self._made:
            new.unlink(missing_ok=True)
