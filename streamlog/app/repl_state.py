"""What a session is made of: texts, and what has happened since it began."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from attrs import field, frozen

from streamlog.analysis.modules import files_of, merged
from streamlog.compiler import Mode
from streamlog.diagnostics import Diagnostic, Source
from streamlog.syntax.ast import Use
from streamlog.syntax.load import File
from streamlog.syntax.root import project_of


@frozen
class Arrive:
    """A row comes, by a typed fact or from a file."""

    pred: str
    row: tuple[Any, ...]


@frozen
class Advance:
    time: int | str
    stream: str | None


@frozen
class End:
    stream: str | None


Event: TypeAlias = Arrive | Advance | End


@frozen
class Loaded:
    """A program file, as it was when it was loaded."""

    path: Path
    source: Source
    file: File = field(repr=False)  # with what it uses
    diagnostics: tuple[Diagnostic, ...]

    @property
    def text(self) -> str:
        """As it stands; where it uses other files, all statements one after the other. With an
        alias that cannot be: then it goes on using them."""
        files = files_of(self.file)
        uses = [s for file in files for s in file.statements if isinstance(s, Use)]
        if not uses or any(use.alias for use in uses):
            return self.source.text
        module, _ = merged(self.file)
        return "".join(f"{s.span.text}\n" for s in module.statements)


@frozen(slots=False)
class State:
    """Everything that a session's engine can be made from."""

    files: tuple[Loaded, ...] = ()
    typed: tuple[str, ...] = ()
    events: tuple[Event, ...] = field(default=(), repr=False)
    mode: Mode = Mode.STREAM

    @cached_property
    def text_of_typed(self) -> str:
        return "".join(f"{text}\n" for text in self.typed)

    @property
    def text(self) -> str:
        """The program as a file would have it."""
        parts = [file.text.rstrip("\n") + "\n" for file in self.files]
        return "\n".join([*parts, *([self.text_of_typed] if self.typed else [])])

    @property
    def used(self) -> list[File]:
        """The files that those loaded use."""
        return [file for loaded in self.files for file in files_of(loaded.file)]

    @property
    def folder(self) -> Path:
        """The folder of what was loaded."""
        folders = [str(file.path.resolve().parent) for file in self.files]
        return Path(os.path.commonpath(folders)) if folders else Path.cwd()

    @property
    def root(self) -> Path:
        """The folder below which the program finds its files."""
        return project_of(self.folder) or self.folder
