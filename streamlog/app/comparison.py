"""Two versions of programs, compared: what changed, as rows for tables and as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import frozen

from streamlog.analysis.changes import Change, Effect, Version, What, changes, queries_changed
from streamlog.analysis.contract import PredicateContract
from streamlog.app import show
from streamlog.compiler import Compilation, Mode, Parsed, Program, compile_file
from streamlog.diagnostics import Diagnostic, Span
from streamlog.syntax.ast import Rule, Stream, Table
from streamlog.syntax.pretty import pretty

Shown = Callable[[str], str]  # a path, as people know it


@frozen
class Row:
    """A change in words. `places` are `path:line`."""

    predicate: str
    change: str
    effect: Effect
    before: str
    after: str
    places: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    contract: tuple[PredicateContract | None, PredicateContract | None] = (None, None)


@frozen
class Comparison:
    """What changed of one program."""

    path: str
    rows: tuple[Row, ...]

    @property
    def worse(self) -> bool:
        return any(row.effect is Effect.WORSE for row in self.rows)


def compare(
    path: str, old: Path | None, new: Path | None, shown: tuple[Shown, Shown], mode: Mode
) -> Comparison:
    """Of a program that may be in one version only."""
    before, after = (None if p is None else compile_file(p, mode=mode) for p in (old, new))
    rows = list(_refusals(before, after, shown))
    match before, after:
        case Program(), Program():
            rows += _of_versions(before, after, shown)
        case None, Program():
            answers = ", ".join(after.contract.outputs)
            rows.append(Row("", "program added", Effect.OTHER, "", answers))
        case Program(), None:
            answers = ", ".join(before.contract.outputs)
            effect = Effect.WORSE if answers else Effect.OTHER
            rows.append(Row("", "program removed", effect, answers, ""))
        case _:
            pass
    return Comparison(path, tuple(rows))


# ---------------------------------------------------------------------------------- refusals


def _refusals(
    before: Compilation | None, after: Compilation | None, shown: tuple[Shown, Shown]
) -> Iterator[Row]:
    """A predicate is refused by the errors in its rules, or in its declaration."""
    old, new = _errors(before), _errors(after)
    for (name, code), error in sorted(new.items()):
        if (name, code) not in old:
            change = "newly refused" if before is not None else "refused"
            place = _place(error.span, shown[1])
            text = f"{code}: {error.message}"
            yield Row(name, change, Effect.WORSE, "", text, (place,))
    for (name, code), error in sorted(old.items()):
        if (name, code) not in new and after is not None:
            text = f"{code}: {error.message}"
            yield Row(name, "newly accepted", Effect.BETTER, text, "")


def _errors(compilation: Compilation | None) -> dict[tuple[str, str], Diagnostic]:
    if compilation is None:
        return {}
    found: dict[tuple[str, str], Diagnostic] = {}
    for error in (d for d in compilation.diagnostics if d.is_error):
        found.setdefault((_predicate(error, compilation), error.code), error)
    return found


def _predicate(error: Diagnostic, compilation: Compilation) -> str:
    statements = compilation.module.statements if isinstance(compilation, Parsed) else ()
    for statement in statements:
        if statement.span.encloses(error.span):
            match statement:
                case Rule(head):
                    return head.pred
                case Stream(name) | Table(name):
                    return name
                case _:
                    return ""
    return ""


# ------------------------------------------------------------------------ contract and meaning


def _of_versions(before: Program, after: Program, shown: tuple[Shown, Shown]) -> Iterator[Row]:
    old, new = _version(before), _version(after)
    for change in changes(old, new):
        yield _row(change, old, new, shown)
    if queries_changed(old, new):
        asked, asks = ("\n".join(map(pretty, p.schema.queries)) for p in (before, after))
        yield Row("", "asks something else", Effect.OTHER, asked, asks)


def _version(program: Program) -> Version:
    names = program.closed.schema.column_names
    return Version(program.schema, program.types, program.contract, names)


def _row(change: Change, old: Version, new: Version, shown: tuple[Shown, Shown]) -> Row:
    words, text = _WORDS[change.what]
    label = words if isinstance(words, str) else words[change.effect]
    before = text(change.old, old) if change.old else ""
    after = text(change.new, new) if change.new else ""
    if change.what is What.DELAY and change.old and change.new:
        before, after = _delays(change.old, change.new)
    if change.what is What.ANNOTATIONS:
        was, said = old.annotations(change.name), new.annotations(change.name)
        gone, added = (was - said).elements(), (said - was).elements()
        before, after = "\n".join(gone), "\n".join(added)
    of_side = shown[change.new is not None]
    places = tuple(_place(rule.span, of_side) for rule in change.because)
    entries = (change.old, change.new)
    return Row(change.name, label, change.effect, before, after, places, change.through, entries)


def _place(span: Span, shown: Shown) -> str:
    line, _ = span.source.position(span.start)
    return f"{shown(span.source.path)}:{line}"


def _nothing(entry: PredicateContract, version: Version) -> str:
    return ""


def _answer(entry: PredicateContract, version: Version) -> str:
    return "answer" if entry.predicate.name in version.contract.outputs else "not an answer"


def _kind(entry: PredicateContract, version: Version) -> str:
    return show.class_text(entry, version.contract)


def _columns(entry: PredicateContract, version: Version) -> str:
    name = entry.predicate.name
    types = (version.types.column(name, p) for p in range(entry.predicate.arity))
    names = version.schema.column_names[name]
    return ", ".join(f"{n}: {t or 'any'}" for n, t in zip(names, types, strict=True))


def _delays(old: PredicateContract, new: PredicateContract) -> tuple[str, str]:
    """Of the streams for which they differ."""
    ways = [{d.ways for d in entry.delays} for entry in (old, new)]
    streams = sorted({stream for (stream, _), *_ in ways[0] ^ ways[1]})

    def text(entry: PredicateContract) -> str:
        words: list[str] = []
        for stream in streams:
            waits = [d for d in entry.delays if d.stream == stream]
            words += [show.ways_text(d, entry.clock) for d in waits] or [f"without {stream}"]
        return "\n".join(words)

    return text(old), text(new)


def _released(entry: PredicateContract, version: Version) -> str:
    return str(entry.released.value) if entry.released else ""


def _kept(entry: PredicateContract, version: Version) -> str:
    return show.kept_text(entry)


def _arrival(entry: PredicateContract, version: Version) -> str:
    declaration = entry.predicate.declaration
    return " ".join(declaration.span.text.split()) if declaration else "not declared"


_Text = Callable[[PredicateContract, Version], str]
_WORDS: dict[What, tuple[str | dict[Effect, str], _Text]] = {
    What.ADDED: ("added", _kind),
    What.REMOVED: ("removed", _kind),
    What.ANSWER: (
        {Effect.WORSE: "no longer an answer", Effect.OTHER: "becomes an answer"},
        _answer,
    ),
    What.KIND: ("other kind", _kind),
    What.COLUMNS: ("other columns", _columns),
    What.DELAY: (
        {
            Effect.WORSE: "answers later",
            Effect.BETTER: "answers sooner",
            Effect.OTHER: "answers at other times",
        },
        _nothing,  # see `_delays`
    ),
    What.RELEASED: (
        {Effect.WORSE: "released later", Effect.BETTER: "released sooner"},
        _released,
    ),
    What.KEPT: (
        {
            Effect.WORSE: "keeps more",
            Effect.BETTER: "keeps less",
            Effect.OTHER: "keeps something else",
        },
        _kept,
    ),
    What.ARRIVAL: ("is read differently", _arrival),
    What.MEANING: ("means something else", _nothing),
    What.ANNOTATIONS: ("other annotations", _nothing),  # see `_row`
}
