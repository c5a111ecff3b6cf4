"""The text of a program and of all files that it uses, as JSON that a checkpoint can hold: a later
version goes on with what this one computes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamlog import prepared
from streamlog.compiler import Mode, Program, compile_source, focused
from streamlog.diagnostics import Source
from streamlog.runtime.envelope import CheckpointError
from streamlog.syntax.root import PROJECT

Text = Mapping[str, Any]
# What a Python function means is the text of its file, which may be asked for until the end.
_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def text_of(program: Program) -> Text:
    """What `compiled` makes the program from."""
    root = (program.root or Path()).resolve()
    main = Path(program.source.path)
    files = {_below(file.path, root): file.text for file in program.files}
    files |= {_below(s.function.file or "", root): s.text for s in program.closed.python}
    return {
        "main": _below(main.as_posix(), root),
        "files": {**files, _below(main.as_posix(), root): program.source.text},
        "project": (root / PROJECT).is_file(),
        "mode": program.mode.value,
        "on_error": "stop" if program.errors is None else "skip",
    }


def _below(path: str, root: Path) -> str:
    """A path that is the same wherever the root lies."""
    whole = Path(path).resolve()
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else whole.name


def compiled(text: Text, allow_python: bool) -> Program:
    """The program as it is run."""
    mode, files = Mode(text["mode"]), text["files"]
    if len(files) == 1:
        made = compile_source(Source(text["main"], files[text["main"]]), mode=mode)
        return _ready(made, text, allow_python)
    folder = tempfile.TemporaryDirectory()
    _FOLDERS.append(folder)
    root = Path(folder.name).resolve()
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    if text["project"]:
        (root / PROJECT).touch()
    main = Source(str(root / text["main"]), files[text["main"]])
    return _ready(compile_source(main, mode=mode, root=root), text, allow_python)


def _ready(made: object, text: Text, allow_python: bool) -> Program:
    if not isinstance(made, Program):
        raise CheckpointError(
            f"the checkpoint goes on with rules of an earlier '{text['main']}', which this "
            "streamlog refuses"
        )
    return prepared(focused(made), text["on_error"], allow_python)
