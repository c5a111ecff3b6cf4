"""The files of a program to one module, in which every predicate has one name.

Predicates belong to the file that defines them. Files that are used plainly share the names of
the program; before the names of a file that is used under an alias stands the alias, and before
those of a file used by that one both aliases, as in `auth.net.seen`. Later passes know nothing of
files: a qualified name is to them a name like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from pathlib import PurePosixPath

from attrs import evolve, field, frozen

from streamlog.analysis.builtins import is_built_in
from streamlog.diagnostics import Diagnostic, Span, did_you_mean, finding
from streamlog.syntax.ast import (
    Advance,
    Atom,
    Export,
    Extend,
    Fact,
    Module,
    Output,
    PredName,
    Query,
    Rule,
    State,
    Statement,
    Stream,
    Table,
    Use,
)
from streamlog.syntax.load import File
from streamlog.syntax.pretty import is_bare
from streamlog.syntax.walk import Node, transform, walk


def merged(main: File) -> tuple[Module, tuple[Diagnostic, ...]]:
    """All statements in the order of the text, those of a file where it is used first."""
    if not main.uses and not any(map(_speaks_of_files, walk(main.statements))):
        return evolve(main.module, statements=tuple(main.statements)), ()
    names = _Names(main)
    allowed = tuple(s for file in files_of(main) for s in file.module.suppressions)
    module = evolve(main.module, statements=tuple(names.statements(main)), suppressions=allowed)
    return module, tuple(names.diagnostics)


def files_of(main: File) -> tuple[File, ...]:
    """A file and all that it uses, directly or not."""
    found: dict[File, None] = {main: None}
    for file in (pending := [main]):
        new = [used for used in file.uses.values() if used not in found]
        found.update(dict.fromkeys(new))
        pending += dict.fromkeys(new)
    return tuple(found)


def _speaks_of_files(node: Node) -> bool:
    match node:
        case Atom(name) | PredName(name):
            return "." in name
        case _:
            return isinstance(node, Extend | Use)


@frozen(eq=False, slots=False)
class _Scope:
    """What a file says about names. Of a name, the place that says it first."""

    file: File
    path: str  # as the first `use` writes it
    prefix: tuple[str, ...]
    declared: dict[str, Span] = field(factory=dict)
    ruled: dict[str, Span] = field(factory=dict)
    facts: dict[str, Span] = field(factory=dict)
    mentioned: dict[str, Span] = field(factory=dict)
    extended: dict[str, Span] = field(factory=dict)
    offered: set[str] = field(factory=set)  # by `export` or `output`
    plain: list[_Scope] = field(factory=list)  # what it uses without an alias
    aliases: dict[str, tuple[_Scope, Span]] = field(factory=dict)

    def full(self, name: str) -> str:
        return ".".join((*self.prefix, name))

    @cached_property
    def reach(self) -> tuple[_Scope, ...]:
        """The scope itself and those it uses without an alias, directly or not."""
        found: dict[_Scope, None] = {self: None}
        for scope in (pending := [self]):
            new = [s for s in scope.plain if s not in found]
            found.update(dict.fromkeys(new))
            pending += new
        return tuple(found)

    @cached_property
    def written(self) -> dict[str, Use]:
        """The aliases in its text, also of files that cannot be read."""
        uses = (s for s in self.file.statements if isinstance(s, Use))
        return {use.alias: use for use in uses if use.alias}

    @property
    def aliased(self) -> str:
        name = PurePosixPath(self.path).stem
        return f'`use "{self.path}" as {name if is_bare(name) else "other"}.`'

    @cached_property
    def defined(self) -> dict[str, Span]:
        """By declarations, by rules, or by facts of what nothing declares."""
        declared = {n for scope in self.reach for n in scope.declared}
        facts = {n: span for n, span in self.facts.items() if n not in declared}
        found = {**facts, **self.ruled, **self.declared}
        return {n: span for n, span in found.items() if n not in self.extended}

    def definer(self, name: str) -> _Scope | None:
        return next((s for s in self.reach if name in s.defined), None)

    def name_of(self, name: str) -> str:
        """The full name of a predicate that this file calls `name`, without any alias."""
        return (self.definer(name) or self).full(name)

    @cached_property
    def visible_aliases(self) -> dict[str, tuple[_Scope, Span]]:
        """Its own and those of the files it uses without an alias."""
        return {a: used for s in reversed(self.reach) for a, used in s.aliases.items()}

    @cached_property
    def public(self) -> set[str]:
        """What those may name who use the file under an alias: what it exports or outputs, and
        its inputs, whose rows come from outside anyway."""
        found = {n for s in self.reach for n in s.offered}
        mentioned = {n for s in self.reach for n in s.mentioned}
        inputs = {n for n in mentioned if self.definer(n) is None}
        return found | inputs | {n for s in self.reach for n in s.declared}


class _Names:
    def __init__(self, main: File) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.scopes: dict[File, _Scope] = {}
        self._add_scopes(main)
        for scope in self.scopes.values():
            self._link(scope)
        taken = self._taken()
        reported: set[tuple[_Scope, str]] = set()
        for scope in self.scopes.values():
            self.diagnostics += _same_aliases(scope)
            self.diagnostics += _same_names(scope, reported)
            self.diagnostics += _like_predicates(scope, taken)
            self.diagnostics += _nothing_to_extend(scope, self._defined)

    # ------------------------------------------------------------------------- the scopes

    def _add_scopes(self, main: File) -> None:
        """Fewest aliases first: a file that is reached in several ways has its shortest name."""
        level: list[_Scope] = [_Scope(main, main.source.path, ())]
        while level:
            deeper: list[_Scope] = []
            for scope in level:
                if scope.file in self.scopes:
                    continue
                self.scopes[scope.file] = scope
                _read(scope)
                for use, used in _uses(scope.file):
                    if use.alias is None:
                        level.append(_Scope(used, use.path, scope.prefix))
                    else:
                        deeper.append(_Scope(used, use.path, (*scope.prefix, use.alias)))
            level = deeper

    def _link(self, scope: _Scope) -> None:
        for use, file in _uses(scope.file):
            used = self.scopes[file]
            if use.alias is None:
                scope.plain.append(used)
            elif (old := scope.aliases.setdefault(use.alias, (used, use.span)))[0] is not used:
                self.diagnostics.append(_two_files(use.alias, use.span, old[1]))

    def _taken(self) -> dict[str, Span]:
        """The full names of predicates."""
        taken: dict[str, Span] = {}
        for scope in self.scopes.values():
            for name, span in (*scope.defined.items(), *scope.mentioned.items()):
                taken.setdefault(scope.name_of(name), span)
        return taken

    @cached_property
    def _defined(self) -> set[str]:
        return {s.full(name) for s in self.scopes.values() for name in s.defined}

    # --------------------------------------------------------------------- the statements

    def statements(self, main: File) -> Iterator[Statement]:
        for file, statement in _in_order(main):
            scope = self.scopes[file]
            if isinstance(statement, Use):
                pass  # what it stands for comes behind it
            elif isinstance(statement, Output | Query) and scope.prefix:
                pass  # the answers of that file on its own, not of this program
            else:
                if isinstance(statement, Rule | State | Fact):
                    self._check_head(scope, statement)
                named = transform(statement, partial(self._named, scope))
                if not isinstance(statement, Extend):
                    yield named

    def _named(self, scope: _Scope, node: Node) -> Node:
        match node:
            case Atom(name):
                full = self._full_name(scope, name, node.span)
                return node if full == name else evolve(node, pred=full)
            case Advance(_, str(name)):
                return evolve(node, timeline=self._timeline(scope, name, node.span))
            case Stream(name) | Table(name) | PredName(name):
                full = self._full_name(scope, name, node.span)
                return node if full == name else evolve(node, name=full)
            case _:
                return node

    def _timeline(self, scope: _Scope, name: str, span: Span) -> str:
        """The stream by its full name, and the column if there is one."""
        words = name.split(".")
        count = 2 if words[0] in scope.visible_aliases else 1
        stream = self._full_name(scope, ".".join(words[:count]), span)
        return ".".join((stream, *words[count:]))

    def _full_name(self, scope: _Scope, name: str, span: Span) -> str:
        if is_built_in(name):
            return name
        if "." not in name:
            return scope.name_of(name)
        found = _of_alias(scope, name, span)
        if isinstance(found, Diagnostic):
            self.diagnostics.append(found)
            return name
        return found

    def _check_head(self, scope: _Scope, statement: Rule | State | Fact) -> None:
        """Another file's predicate is added to by who says so; facts of inputs are data."""
        atom = statement.atom if isinstance(statement, Fact) else statement.head
        if "." not in atom.pred or atom.pred in scope.extended:
            return
        alias, name = atom.pred.split(".", 1)
        used, _ = scope.visible_aliases.get(alias, (None, None))
        if used is None or name not in used.public:
            return  # `_named` says it
        definer = used.definer(name)
        if isinstance(statement, Fact) and (definer is None or name in definer.declared):
            return
        places = [s.defined.get(name) or s.mentioned.get(name) for s in used.reach]
        self.diagnostics.append(
            finding(
                "SL0208",
                f"`{atom.pred}` belongs to another file",
                atom.span,
                "defined here, too",
                related=[(place, "its file") for place in places if place][:1],
                help=f"if this is to add to it, write `extend {atom.pred}.`; else choose a name"
                " of this file",
            )
        )


def _in_order(main: File) -> Iterator[tuple[File, Statement]]:
    """The statements of a file, behind a `use` those of the file that it is the first to name."""
    seen = {main}
    stack = [(main, iter(enumerate(main.statements)))]
    while stack:
        file, rest = stack[-1]
        at, statement = next(rest, (0, None))
        if statement is None:
            stack.pop()
            continue
        yield file, statement
        used = file.uses.get(at)
        if used is not None and used not in seen:
            seen.add(used)
            stack.append((used, iter(enumerate(used.statements))))


def _uses(file: File) -> Iterator[tuple[Use, File]]:
    for at, used in file.uses.items():
        use = file.statements[at]
        assert isinstance(use, Use)
        yield use, used


def _read(scope: _Scope) -> None:
    for statement in scope.file.statements:
        match statement:
            case Stream(name) | Table(name):
                scope.declared.setdefault(name, statement.span)
            case Rule(head) | State(head):
                scope.ruled.setdefault(head.pred, head.span)
            case Fact(atom):
                scope.facts.setdefault(atom.pred, atom.span)
            case Output(preds) | Export(preds):
                scope.offered.update(p.name for p in preds)
            case Extend(preds):
                for pred in preds:
                    scope.extended.setdefault(pred.name, pred.span)
            case _:
                pass
        if isinstance(statement, Rule | State | Fact | Query):
            for node in walk(statement):
                if isinstance(node, Atom) and not is_built_in(node.pred) and "." not in node.pred:
                    scope.mentioned.setdefault(node.pred, node.span)
    # Another file's predicates; `_check_head` asks for those that are not extended.
    for names in (scope.ruled, scope.facts):
        for name in [n for n in names if "." in n]:
            del names[name]


def _of_alias(scope: _Scope, qualified: str, span: Span) -> str | Diagnostic:
    """The full name of `auth.failed`, or why it cannot be used."""
    alias, name = qualified.split(".", 1)
    aliases = scope.visible_aliases
    if alias not in aliases and any(alias in s.written for s in scope.reach):
        return scope.full(qualified)  # its file is what is wrong
    if alias not in aliases:
        near = did_you_mean(alias, aliases)
        if any(alias in s.declared for s in scope.reach):
            message = f"`{alias}` is not an alias: it is a stream or table"
            return finding("SL0209", message, span, help=f"rules read it as `{alias}(…)`")
        return finding(
            "SL0209",
            f"no file is used as `{alias}` here",
            span,
            help=(
                *([f"did you mean `{near}.{name}`?"] if near else []),
                f'name the file, as in `use "lib/{alias}.slog" as {alias}.`',
                "or, if the dot ends a statement, write a blank behind it",
            ),
        )
    used, at = aliases[alias]
    path = used.file.source.path
    if "." in name:
        inner = name.split(".")[0]
        return finding(
            "SL0209",
            f"what `{alias}` uses as `{inner}` is private to it",
            span,
            related=[(at, f"`{alias}` is used here")],
            help=f'use the file here, too, as in `use "lib/{inner}.slog" as {inner}.`',
        )
    public = used.public
    if name in public:
        return used.name_of(name)
    definer = used.definer(name)
    if definer is None and not all(s.file.is_whole for s in used.reach):
        return used.name_of(name)  # it may be in what could not be read
    if definer is None:
        near = did_you_mean(name, public)
        return finding(
            "SL0209",
            f"`{path}` has no predicate `{name}`",
            span,
            related=[(at, f"`{alias}` is used here")],
            help=f"did you mean `{alias}.{near}`?"
            if near
            else f"it offers {', '.join(sorted(public)) or 'nothing'}",
        )
    return finding(
        "SL0209",
        f"`{name}` is private to `{path}`",
        span,
        related=[(definer.defined[name], "defined here")],
        help=f"to offer it to other files, write `export {name}.` there",
    )


# -------------------------------------------------------------------------- what goes wrong


def _same_aliases(scope: _Scope) -> Iterator[Diagnostic]:
    """A plain use brings the aliases of the file, too."""
    known: dict[str, tuple[_Scope, Span]] = {}
    for other in scope.reach:
        for alias, (used, span) in other.aliases.items():
            first, place = known.setdefault(alias, (used, span))
            if first is not used:
                yield _two_files(alias, span, place)


def _two_files(alias: str, span: Span, first: Span) -> Diagnostic:
    return finding(
        "SL0208",
        f"`{alias}` stands for two files",
        span,
        "the second",
        related=[(first, "the first")],
        help="give one of them another alias",
    )


def _same_names(scope: _Scope, reported: set[tuple[_Scope, str]]) -> Iterator[Diagnostic]:
    """What two of the files define that a file sees without an alias."""
    first: dict[str, _Scope] = {}
    for other in scope.reach:
        for name, span in other.defined.items():
            old = first.setdefault(name, other)
            declares = name in old.declared or name in other.declared
            if old is other or (declares and old.prefix == other.prefix):
                continue  # a name of its own, or one that is declared twice or a rule for an input
            if (other, name) in reported or (old, name) in reported:
                continue
            reported.add((other, name))
            is_data = name not in old.ruled and name not in other.ruled
            yield finding(
                "SL0208",
                f"`{name}` is defined by two files",
                span,
                f"in `{other.file.source.path}`",
                related=[(old.defined[name], f"and in `{old.file.source.path}`")],
                help=(
                    *([f"if it is an input, declare it, as in `table {name}(…)`"] * is_data),
                    f"if they mean the same and one adds to the other, write `extend {name}.` in"
                    " that one",
                    f"if not, rename one of them, or use its file under an alias: {other.aliased}",
                ),
            )


def _like_predicates(scope: _Scope, taken: dict[str, Span]) -> Iterator[Diagnostic]:
    for alias, use in scope.written.items():
        if (place := taken.get(scope.name_of(alias))) is not None:
            yield finding(
                "SL0208",
                f"`{alias}` is both an alias and a predicate",
                use.span,
                "the alias",
                related=[(place, "the predicate")],
                help="choose another alias",
            )


def _nothing_to_extend(scope: _Scope, defined: Iterable[str]) -> Iterator[Diagnostic]:
    for name, span in scope.extended.items():
        if "." not in name and scope.name_of(name) not in defined:
            yield finding(
                "SL0204",
                f"no other file defines `{name}`, so there is nothing to extend",
                span,
                help="drop the `extend`, or `use` the file that defines it",
            )
