"""Files to one module: `use` statements replaced by what they name, each file once."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from streamlog.diagnostics import Diagnostic, Source, Span, finding
from streamlog.syntax.ast import Function, Module, Statement, Suppression, Use
from streamlog.syntax.parse import parse


def load(module: Module, root: Path | None) -> tuple[Module, tuple[Diagnostic, ...]]:
    """`root` is the folder of the program, below which it may use files; None for no folder."""
    if not any(isinstance(s, Use | Function) for s in module.statements):
        return module, ()
    loader = _Loader(root)
    if root is not None:
        loader.seen.add((root / Path(module.span.source.path).name).resolve())
    loader.add(module, root)
    statements, suppressions = tuple(loader.statements), tuple(loader.suppressions)
    whole = evolve(module, statements=statements, suppressions=suppressions)
    return whole, tuple(loader.diagnostics)


class _Loader:
    def __init__(self, root: Path | None) -> None:
        self.root = root
        self.seen: set[Path] = set()
        self.statements: list[Statement] = []
        self.suppressions: list[Suppression] = []
        self.diagnostics: list[Diagnostic] = []

    def add(self, module: Module, folder: Path | None) -> None:
        self.suppressions += module.suppressions
        for statement in module.statements:
            if not isinstance(statement, Use | Function):
                self.statements.append(statement)
                continue
            found = self._locate(statement, folder)
            if isinstance(found, Diagnostic):
                self.diagnostics.append(found)
            elif isinstance(statement, Function):  # nothing but its name is looked at
                if not found.is_file():
                    reason = f"`{statement.path}` cannot be read: no such file"
                    self.diagnostics.append(finding("SL0107", reason, statement.span))
                self.statements.append(evolve(statement, file=str(found)))
            elif found not in self.seen:
                self.seen.add(found)
                self._add_file(found, statement)

    def _add_file(self, path: Path, use: Use) -> None:
        source = read(path, use.span)
        if isinstance(source, Diagnostic):
            self.diagnostics.append(source)
            return
        module, diagnostics = parse(source)
        self.diagnostics += diagnostics
        self.add(module, path.parent)

    def _locate(self, use: Use | Function, folder: Path | None) -> Path | Diagnostic:
        if folder is None or self.root is None:
            return finding(
                "SL0107",
                f"`{use.path}` cannot be used here",
                use.span,
                help="a program that is not a file has no folder to look in",
            )
        try:
            path = (folder / use.path).resolve()
        except (OSError, ValueError, RuntimeError):  # the last for links that go round
            return finding("SL0107", "this is not a path", use.span)
        if not path.is_relative_to(self.root.resolve()):
            return finding(
                "SL0107",
                f"`{use.path}` lies outside the folder of this program",
                use.span,
                help="a program may use only files below its own folder",
            )
        return path


def read(path: Path, span: Span | None = None) -> Source | Diagnostic:
    """A file's text, or why it cannot be had; `span` is the place that asks for it."""
    name = _shown(path)
    try:
        return Source(name, path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        reason = f"`{name}` is not UTF-8 text (byte {error.start})"
    except OSError as error:
        reason = f"`{name}` cannot be read: {(error.strerror or 'unknown reason').lower()}"
    except ValueError:
        reason = f"`{name!a}` is not a path"
    return finding("SL0107", reason, span or Span(Source(name, ""), 0, 0))


def _shown(path: Path) -> str:
    """Relative to where the user stands, if it lies below."""
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return path.as_posix()
