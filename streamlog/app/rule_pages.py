"""Pages about programs, in Markdown: what each is for, promises, is made of and is tested with."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import PurePath
from urllib.parse import quote

from attrs import frozen

from streamlog.analysis.contract import PredicateContract
from streamlog.app import show
from streamlog.app.graph import mermaid
from streamlog.compiler import Compilation, Parsed, Program
from streamlog.syntax.ast import Rule, Test
from streamlog.syntax.metadata import NAMES, metadata
from streamlog.syntax.pretty import pretty
from streamlog.syntax.scan import scan
from streamlog.syntax.walk import atoms

INDEX = "index.md"


@frozen(slots=False)
class Page:
    """A program, and where its page lies below the folder of all pages."""

    place: str
    program: Compilation

    @staticmethod
    def of(file: str, program: Compilation) -> Page:
        """Pages lie as files do; those of files from elsewhere have their name alone."""
        path = PurePath(os.path.relpath(file))
        inside = path if ".." not in path.parts else PurePath(path.name)
        return Page(inside.with_suffix(".md").as_posix(), program)

    @property
    def title(self) -> str:
        return PurePath(self.place).with_suffix(".slog").as_posix()

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """As they are written, those of used files too."""
        module = self.program.written if isinstance(self.program, Parsed) else None
        return tuple(s for s in module.statements if isinstance(s, Rule)) if module else ()

    @property
    def own_rules(self) -> tuple[Rule, ...]:
        return tuple(r for r in self.rules if r.span.source == self.program.source)

    @property
    def tests(self) -> tuple[Test, ...]:
        statements = self.program.parsed.statements if isinstance(self.program, Parsed) else ()
        return tuple(s for s in statements if isinstance(s, Test))

    @property
    def predicates(self) -> tuple[PredicateContract, ...]:
        """Those that somebody has written."""
        return tuple(p for p in self.contract if p.predicate.view is None)

    @property
    def contract(self) -> tuple[PredicateContract, ...]:
        """Of these predicates, and of the timelines of streams."""
        if not isinstance(self.program, Program):
            return ()
        made = {r.head.pred for r in self.program.schema.rules if r.is_auxiliary}
        entries = self.program.contract.predicates
        return tuple(p for p in entries if p.predicate.name not in made)

    def link(self, to: str, predicate: str = "") -> str:
        """To another page, as seen from this one."""
        path = os.path.relpath(to, PurePath(self.place).parent).replace(os.sep, "/")
        return _link(path, predicate)


# --------------------------------------------------------------------------- of one program


def page(one: Page) -> str:
    parts = [f"# {one.title}", f"[All programs]({one.link(INDEX)})", _opening_comment(one)]
    program = one.program
    if isinstance(program, Program):
        graph = mermaid(program.graph, program.contract)
        parts += ["## Contract", show.summary(program.contract), _contract(one, program)]
        parts += [f"```mermaid\n{graph}\n```", "## Predicates"]
        for entry in one.predicates:
            parts += _predicate(entry, program, one)
    else:
        errors = (f"- {d.code}: {_escaped(d.message)}" for d in program.diagnostics if d.is_error)
        parts += ["This program is refused:", "\n".join(errors)]
    if one.tests:
        parts.append("## Tests")
        parts += (f"{_escaped(test.name)}:\n\n{_code(test.span.text)}" for test in one.tests)
    return "\n\n".join(part for part in parts if part) + "\n"


def _opening_comment(one: Page) -> str:
    """The first comment, if it stands above the first statement."""
    source = one.program.source
    scanned = scan(source)
    first = scanned.starts[0] if scanned.starts else len(source.text)
    words: list[str] = []
    end = 0
    for comment in scanned.comments:
        apart = source.text.count("\n", end, comment.span.start) > 1
        if comment.span.start > first or (words and apart):
            break
        words.append(comment.text.strip("%/* \n"))
        end = comment.span.end
    return _escaped("\n".join(words))


def _contract(one: Page, program: Program) -> str:
    promised = program.contract
    rows = []
    for p in one.contract:
        written = program.schema.stream_of(p.predicate.name)
        name = f"[`{p.predicate.name}`]({_link('', written)})"
        name = f"**{name}**" if p.predicate.name in promised.outputs else name
        released = "when asked" if p.is_open else p.released.value if p.released else ""
        delay = "" if p.is_open else show.delay_text(p)
        rows.append((name, show.class_text(p, promised), delay, released, show.kept_text(p)))
    return _table(("predicate", "class", "delay", "released", "kept"), rows)


def _predicate(entry: PredicateContract, program: Program, one: Page) -> Iterator[str]:
    name, arity = entry.predicate.name, entry.predicate.arity
    known = {p.predicate.name for p in one.predicates}
    yield f"### Predicate {name}"
    types = (program.types.column(name, place) or "any" for place in range(arity))
    columns = zip(program.schema.column_names[name], types, strict=True)
    yield f"Columns: {', '.join(f'`{column}: {t}`' for column, t in columns) or 'none'}"
    rules = [r for r in one.rules if r.head.pred == name]
    reads = {a.pred for r in rules for a in atoms(r.body)} & known
    read_by = {r.head.pred for r in one.rules if name in {a.pred for a in atoms(r.body)}}
    for what, names in (("Reads", reads), ("Read by", read_by)):
        if names:
            links = (f"[`{n}`]({_link('', n)})" for n in sorted(names))
            yield f"{what}: {', '.join(links)}"
    if entry.predicate.declaration:
        yield _code(pretty(entry.predicate.declaration))
    for rule in rules:
        said = [*_said(rule)]
        if rule.span.source != program.source:
            said.append(f"from {_escaped(rule.span.source.path)}")
        yield " · ".join(said)
        yield _code(pretty(rule))


def _said(rule: Rule) -> Iterator[str]:
    """What annotations say of it."""
    found = metadata(rule)
    yield from (f"{name}: {_words(found[name])}" for name in NAMES if name in found)


def _words(value: str | list[str]) -> str:
    return _escaped(value if isinstance(value, str) else ", ".join(value))


# --------------------------------------------------------------------------------- the index


def index(pages: Sequence[Page]) -> str:
    """All programs, all rules that have annotations, and all predicates."""
    parts = ["# Rules", "## Programs", _table(_PROGRAM, map(_program_row, pages))]
    annotated = [(p, r) for p in pages for r in p.own_rules if r.annotations]
    if annotated:
        rows = sorted(_annotated_row(one, rule) for one, rule in annotated)
        parts += ["## Annotated rules", _table((*NAMES, "rule of", "program"), rows)]
    parts += ["## Predicates", _table(("predicate", "programs"), _predicate_rows(pages))]
    return "\n\n".join(parts) + "\n"


_PROGRAM = ("program", "answers", "contract", "rules", "tests")


def _program_row(one: Page) -> tuple[str, ...]:
    answers, promise = "", "refused"
    if isinstance(one.program, Program):
        answers = ", ".join(
            f"[`{name}`]({_link(one.place, name)})" for name in one.program.contract.outputs
        )
        promise = show.summary(one.program.contract)
    name = f"[{_escaped(one.title)}]({_link(one.place)})"
    return name, answers, promise, str(len(one.own_rules)), str(len(one.tests))


def _annotated_row(one: Page, rule: Rule) -> tuple[str, ...]:
    found = metadata(rule)
    said = (_words(found[name]) if name in found else "" for name in NAMES)
    pred = rule.head.pred
    is_linked = any(p.predicate.name == pred for p in one.predicates)
    name = f"[`{pred}`]({_link(one.place, pred)})" if is_linked else f"`{pred}`"
    return *said, name, f"[{_escaped(one.title)}]({_link(one.place)})"


def _predicate_rows(pages: Iterable[Page]) -> Iterator[tuple[str, str]]:
    places: dict[str, list[Page]] = {}
    for one in pages:
        for entry in one.predicates:
            places.setdefault(entry.predicate.name, []).append(one)
    for name, found in sorted(places.items()):
        links = (f"[{_escaped(p.title)}]({_link(p.place, name)})" for p in found)
        yield f"`{name}`", "<br>".join(links)


# ---------------------------------------------------------------------------------- Markdown


def _link(path: str, predicate: str = "") -> str:
    """The heading of a predicate has this name on GitHub and elsewhere."""
    slug = re.sub(r"[^\w-]", "", predicate.lower())
    return quote(path) + (f"#predicate-{quote(slug)}" if predicate else "")


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    cells = ([cell.replace("\n", "<br>") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _code(text: str) -> str:
    return f"```slog\n{text}\n```"


def _escaped(text: str) -> str:
    """A text of the user's, so that nothing in it is taken for Markdown."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#" else c for c in text)
