"""A file and the files it uses, each read once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import define, evolve, field

from streamlog.diagnostics import Diagnostic, Source, Span, finding
from streamlog.syntax.ast import Function, Module, Statement, Use
from streamlog.syntax.parse import parse
from streamlog.syntax.root import PROJECT


@define(eq=False)
class File:
    """The statements of a file; each `use` with the file that it names, unless that cannot be
    had."""

    module: Module  # as it was read
    path: Path | None = None  # None: of a text that is no file
    statements: list[Statement] = field(factory=list)
    uses: dict[int, File] = field(factory=dict)  # by the place of the `use` among the statements
    is_whole: bool = True  # all statements could be read

    @property
    def source(self) -> Source:
        return self.module.span.source


def joined(files: Iterable[File]) -> File:
    """Files as if they were one: the statements of the first, then those of the next."""
    files = tuple(files)
    allowed = tuple(s for file in files for s in file.module.suppressions)
    made = File(evolve(files[-1].module, suppressions=allowed))
    for file in files:
        for at, statement in enumerate(file.statements):
            if at in file.uses:
                made.uses[len(made.statements)] = file.uses[at]
            made.statements.append(statement)
    return made


def load(
    module: Module, root: Path | None, known: Iterable[File] = ()
) -> tuple[File, tuple[Diagnostic, ...]]:
    """`root` is the folder below which the program may use files; None for no folder. Files that
    are known are not read again."""
    source = module.span.source
    if not any(isinstance(s, Use | Function) for s in module.statements):
        return File(module, None, list(module.statements)), ()
    main = File(module)
    loader = _Loader(root)
    loader.files.update((file.path, file) for file in known if file.path)
    folder = root
    if root is not None:
        path = Path(source.path).resolve()
        path = path if path.is_relative_to(root.resolve()) else (root / path.name).resolve()
        loader.files[path], folder = main, path.parent
    loader.pending.append((main, folder))
    while loader.pending:
        loader.fill(*loader.pending.pop())
    return main, tuple(loader.diagnostics)


class _Loader:
    def __init__(self, root: Path | None) -> None:
        self.root = root
        # Paths count from the root of the project or else from the file itself.
        self.base = root if root is not None and (root / PROJECT).is_file() else None
        self.files: dict[Path, File] = {}
        self.pending: list[tuple[File, Path | None]] = []  # read, but not looked into
        self.diagnostics: list[Diagnostic] = []

    def fill(self, file: File, folder: Path | None) -> None:
        for statement in file.module.statements:
            if isinstance(statement, Use | Function):
                found = self._locate(statement, self.base or folder)
                if isinstance(found, Diagnostic):
                    self.diagnostics.append(found)
                elif isinstance(statement, Use):
                    used = self._file(found, statement, folder)
                    if used is not None:
                        file.uses[len(file.statements)] = used
                else:  # nothing but its name is looked at
                    if not found.is_file():
                        reason = f"`{statement.path}` cannot be read: no such file"
                        self.diagnostics.append(finding("SL0107", reason, statement.span))
                    statement = evolve(statement, file=str(found))
            file.statements.append(statement)

    def _file(self, path: Path, use: Use, folder: Path | None) -> File | None:
        if path not in self.files:
            source = read(path, use.span)
            if isinstance(source, Diagnostic):
                self.diagnostics.append(evolve(source, help=self._from_root(use, folder)))
                return None
            module, diagnostics = parse(source)
            self.diagnostics += diagnostics
            is_whole = not any(d.is_error for d in diagnostics)
            self.files[path] = File(module, path, is_whole=is_whole)
            self.pending.append((self.files[path], path.parent))
        return self.files[path]

    def _from_root(self, use: Use, folder: Path | None) -> tuple[str, ...]:
        """What to write in a project, if the path counts from the file that has it."""
        if self.base is None or folder is None:
            return ()
        base, near = self.base.resolve(), (folder / use.path).resolve()
        if not near.is_file() or not near.is_relative_to(base):
            return ()
        path = near.relative_to(base).as_posix()
        return (f'paths count from the root of the project: `use "{path}"`',)

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
            what = "project" if self.base else "program"
            return finding(
                "SL0107",
                f"`{use.path}` lies outside the folder of this {what}",
                use.span,
                help="a program may use only files below the root of its project"
                if self.base
                else "a program may use only files below its own folder",
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
