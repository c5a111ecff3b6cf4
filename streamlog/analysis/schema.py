"""Names: what each predicate is, with its arity, its columns and whether it has timestamps."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from attrs import field, frozen

from streamlog.analysis.builtins import GOALS, TICK, TIMESTAMPS
from streamlog.analysis.calls import check_calls, declared_functions, functions_as_goals
from streamlog.analysis.column_names import column_names
from streamlog.analysis.column_relations import ColumnRelation, broken_by, relations_of, unfit
from streamlog.analysis.facts import beyond_time, not_of_constants, outside
from streamlog.analysis.mentions import arguments, check_names, wrong_arity
from streamlog.analysis.temporal import temporal_predicates
from streamlog.analysis.timelines import View, add_views
from streamlog.diagnostics import Diagnostic, Span, did_you_mean, finding
from streamlog.syntax.ast import (
    ARRIVES_WITHIN,
    Atom,
    Column,
    Export,
    Fact,
    Function,
    Module,
    Option,
    Output,
    PredName,
    Query,
    Rule,
    Stream,
    Table,
    Term,
    Test,
    Type,
    Value,
)
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import atoms


class Kind(enum.Enum):
    STREAM = "stream"  # timestamped facts from outside
    TABLE = "table"  # facts without timestamps
    DERIVED = "derived"  # what rules define


@frozen
class Predicate:
    name: str
    arity: int
    kind: Kind
    temporal: bool
    span: Span = field(repr=False, eq=False)  # where it is declared, else first mentioned
    declaration: Stream | Table | None = field(default=None, repr=False, eq=False)
    view: View | None = None  # of a stream, on another of its timelines

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.declaration.columns if self.declaration else ()

    @property
    def relations(self) -> tuple[ColumnRelation, ...]:
        """What the declaration says of columns together."""
        return relations_of(self.declaration)

    @property
    def arrival(self) -> int | None:
        """Which column has the time at which a row arrived."""
        return next((i for i, column in enumerate(self.columns) if column.is_arrival), None)

    @property
    def arrives_within(self) -> int | None:
        """How long after its time a row arrives at most, if that is known."""
        if self.arrival == 0:
            return 0
        found = self.option(ARRIVES_WITHIN)
        return None if found is None else int(found.value.value)

    def option(self, name: str) -> Option | None:
        options = self.declaration.options if self.declaration else ()
        if isinstance(self.declaration, Stream):
            own = (t for t in self.declaration.progress if t.column == self.columns[0].name)
            options = (*options, *(o for timeline in own for o in timeline.options))
        return next((o for o in options if o.name == name), None)


@frozen(slots=False)
class Schema:
    """The statements of a program by sort, and its predicates by name."""

    predicates: dict[str, Predicate]
    rules: tuple[Rule, ...]
    facts: tuple[Fact, ...]
    queries: tuple[Query, ...]
    outputs: tuple[PredName, ...]
    tests: tuple[Test, ...]
    functions: dict[str, Function] = field(factory=dict)  # of Python
    exports: tuple[PredName, ...] = ()

    def __getitem__(self, name: str) -> Predicate:
        return self.predicates[name]

    def is_temporal(self, name: str) -> bool:
        return name == TICK or (name in self.predicates and self.predicates[name].temporal)

    @cached_property
    def timelines(self) -> tuple[str, ...]:
        """All that makes progress: the streams, and their views."""
        return tuple(sorted(n for n, p in self.predicates.items() if p.kind is Kind.STREAM))

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """What comes from outside in the course of time."""
        return tuple(n for n in self.timelines if self.predicates[n].view is None)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Streams and tables."""
        kinds = self.predicates.items()
        return tuple(n for n, p in kinds if p.kind is not Kind.DERIVED and p.view is None)

    @cached_property
    def views(self) -> Mapping[str, Mapping[str, View]]:
        """Of each stream with several timelines, its views on the others."""
        found: dict[str, dict[str, View]] = {}
        for name in self.timelines:
            if (view := self.predicates[name].view) is not None:
                found.setdefault(view.of, {})[name] = view
        return found

    def stream_of(self, name: str) -> str:
        """The predicate, or the stream that it is a view of."""
        view = self.predicates[name].view if name in self.predicates else None
        return name if view is None else view.of

    def timeline(self, name: str) -> str | None:
        """The stream or view that a name stands for: `report`, `report.sys`, and `report.app` for
        the first column."""
        stream, _, column = name.rpartition(".")
        columns = self.predicates[stream].columns if stream in self.views else ()
        if columns and columns[0].name == column:
            return stream
        return name if name in self.timelines else None

    def timestamps(self, atom: Atom) -> tuple[Term, ...]:
        """The times of a timestamped goal, the one first that comes first where it is written."""
        columns = (0, *(column for _, column in self.elsewhere.get(atom.pred, ())))
        first = 0
        if len(columns) > 1 and (view := self.predicates[atom.pred].view) is not None:
            first = view.back[0]
        return tuple(atom.args[c] for c in sorted(columns, key=lambda c: c != first) if atom.args)

    @cached_property
    def elsewhere(self) -> Mapping[str, tuple[tuple[str, int], ...]]:
        """Of a stream or view with other timelines: their names, and in which of its columns
        their timestamps are."""
        found: dict[str, tuple[tuple[str, int], ...]] = {}
        for stream, views in self.views.items():
            named = tuple((name, view.column) for name, view in views.items())
            found[stream] = named
            for name, view in views.items():
                others = ((stream, 0), *(o for o in named if o[0] != name))
                found[name] = tuple((other, view.back[column]) for other, column in others)
        return found

    @cached_property
    def rules_of(self) -> dict[str, tuple[Rule, ...]]:
        result: dict[str, tuple[Rule, ...]] = {}
        for rule in self.rules:
            result[rule.head.pred] = (*result.get(rule.head.pred, ()), rule)
        return result

    @cached_property
    def parts(self) -> dict[str, Rule]:
        """Of a rule that was taken apart (`rewrite.ranked`, `rewrite.computed`): what the rest of
        it reads, and nobody else."""
        rests = [r.body[0] for r in self.rules if len(r.body) == 1 and isinstance(r.body[0], Atom)]
        read = {goal.pred for goal in rests}
        return {
            name: rules[0]
            for name, rules in self.rules_of.items()
            if name in read and len(rules) == 1 and rules[0].is_auxiliary
        }

    @cached_property
    def optional(self) -> frozenset[tuple[str, int]]:
        """The columns in which values may be missing."""
        from streamlog.analysis.optional import optional_columns

        return optional_columns(self)[0]

    @cached_property
    def column_names(self) -> dict[str, tuple[str, ...]]:
        return column_names(self)

    @cached_property
    def facts_of(self) -> dict[str, list[Fact]]:
        result: dict[str, list[Fact]] = {}
        for fact in self.facts:
            result.setdefault(fact.atom.pred, []).append(fact)
        return result

    def rows_of(self, name: str) -> list[tuple[Value, ...]]:
        """Of the program's own facts."""
        return [fact.row for fact in self.facts_of.get(name, ())]


def resolve(module: Module) -> tuple[Schema, tuple[Diagnostic, ...]]:
    """Name resolution: every name has one meaning, one arity and one declaration."""
    statements = module.statements
    diagnostics: list[Diagnostic] = []
    declared: dict[str, Stream | Table] = {}
    for statement in statements:
        if isinstance(statement, Stream | Table):
            diagnostics += _declare(statement, declared)
    views = add_views(declared)
    rules = tuple(s for s in statements if isinstance(s, Rule))
    facts = tuple(s for s in statements if isinstance(s, Fact))
    queries = tuple(s for s in statements if isinstance(s, Query))
    outputs = tuple(p for s in statements if isinstance(s, Output) for p in s.preds)
    tests = tuple(s for s in statements if isinstance(s, Test))
    exports = tuple(p for s in statements if isinstance(s, Export) for p in s.preds)

    mentions: list[Atom] = [r.head for r in rules] + [f.atom for f in facts]
    asking: tuple[Rule | Query, ...] = (*rules, *queries)
    mentions += (a for s in asking for a in atoms(s.body))
    defined = {r.head.pred for r in rules} | {f.atom.pred for f in facts} | declared.keys()
    arities, wrong = _arities(declared, mentions)
    diagnostics += wrong
    diagnostics += _heads(rules, facts, declared)
    diagnostics += outside(facts, declared)
    for name, declaration in declared.items():
        diagnostics += broken_by([f for f in facts if f.atom.pred == name], declaration)
    functions, wrong = declared_functions(s for s in statements if isinstance(s, Function))
    diagnostics += wrong
    diagnostics += check_calls(asking, functions)
    diagnostics += check_names((*outputs, *exports), tests, arities)
    diagnostics += _named_columns(outputs, declared, arities)

    temporal = temporal_predicates(
        streams={n for n, d in declared.items() if isinstance(d, Stream)},
        tables={n for n, d in declared.items() if isinstance(d, Table)},
        rules=rules,
        facts=facts,
        mentioned={a.pred for a in mentions if a.args} - GOALS.keys(),
    )
    with_rules = {r.head.pred for r in rules}
    predicates = {}
    for name, (arity, span) in sorted(arities.items()):
        if name in with_rules:
            kind = Kind.DERIVED
        else:
            kind = Kind.STREAM if name in temporal else Kind.TABLE
        predicates[name] = Predicate(
            name, arity, kind, name in temporal, span, declared.get(name), views.get(name)
        )
    diagnostics += _slips(predicates, defined | functions.keys())
    asked = {n: p.span for n, p in predicates.items() if n not in defined}
    diagnostics += functions_as_goals(asked, functions)
    diagnostics += beyond_time(facts, temporal)
    schema = Schema(predicates, rules, facts, queries, outputs, tests, functions, exports)
    return schema, tuple(diagnostics)


def _declare(new: Stream | Table, declared: dict[str, Stream | Table]) -> Iterator[Diagnostic]:
    if new.name in GOALS:
        yield _builtin(new.name, new.span)
    elif old := declared.get(new.name):
        yield finding(
            "SL0202",
            f"`{new.name}` is declared twice",
            new.span,
            "declared again here",
            related=[(old.span, "first declared here")],
            help="keep one of the two declarations, or rename one of the predicates",
        )
    else:
        declared[new.name] = new
    if isinstance(new, Stream) and not new.columns:
        yield finding(
            "SL0105",
            f"the stream `{new.name}` has no timestamp",
            new.span,
            "a stream's first column is its timestamp",
            help=f"write `stream {new.name}(T: time, …)`, or `table {new.name}` without time",
        )
    if isinstance(new, Stream) and new.columns and new.columns[0].type not in (*TIMESTAMPS, None):
        yield _no_timestamp(new)
    yield from unfit(new)


def _no_timestamp(stream: Stream) -> Diagnostic:
    first = stream.columns[0]
    message = f"the timestamp of `{stream.name}` is declared {first.type}"
    label = "a stream's first column is its timestamp"
    time = next((c for c in stream.columns if c.type is Type.TIME), None)
    if time is None:
        help = (
            "a timestamp is a `time`, or an `int` for logical time; without timestamps, declare a"
        )
        return finding("SL0308", message, first.span, label, help=f"{help} `table`")
    columns = ", ".join(map(pretty, (time, *(c for c in stream.columns if c is not time))))
    help = f"put it first: `stream {stream.name}({columns})`; data are read by the names of columns"
    return finding("SL0308", message, first.span, label, related=[(time.span, "")], help=help)


def _builtin(name: str, span: Span) -> Diagnostic:
    return finding(
        "SL0206",
        f"`{name}` is built in and cannot be defined",
        span,
        help=f"use another name, such as `my_{name}`",
    )


def _arities(
    declared: dict[str, Stream | Table], mentions: Iterable[Atom]
) -> tuple[dict[str, tuple[int, Span]], list[Diagnostic]]:
    """Each predicate's arity and the place that settles it."""
    arities = {n: (len(d.columns), d.span) for n, d in declared.items()}
    wrong = []
    for atom in mentions:
        if atom.pred in GOALS:
            if atom.arity != GOALS[atom.pred]:
                wrong.append(
                    finding(
                        "SL0201",
                        f"the built-in `{atom.pred}` takes {arguments(GOALS[atom.pred])}, "
                        f"not {atom.arity}",
                        atom.span,
                    )
                )
            continue
        arity, span = arities.setdefault(atom.pred, (atom.arity, atom.span))
        if atom.arity != arity:
            wrong.append(wrong_arity(atom, arity, span))
    return arities, wrong


def _heads(
    rules: Iterable[Rule], facts: Iterable[Fact], declared: dict[str, Stream | Table]
) -> Iterator[Diagnostic]:
    for rule in rules:
        name = rule.head.pred
        if name in GOALS:
            yield _builtin(name, rule.head.span)
        elif declaration := declared.get(name):
            sort = "stream" if isinstance(declaration, Stream) else "table"
            yield finding(
                "SL0203",
                f"`{name}` is declared as an input {sort}, so no rule may define it",
                rule.head.span,
                "defined by a rule here",
                related=[(declaration.span, "declared as an input here")],
                help=f"rename the head, or drop the declaration of `{name}`",
            )
    for fact in facts:
        if fact.atom.pred in GOALS:
            yield _builtin(fact.atom.pred, fact.atom.span)
        yield from not_of_constants(fact.atom)


def _named_columns(
    outputs: Iterable[PredName],
    declared: dict[str, Stream | Table],
    arities: dict[str, tuple[int, Span]],
) -> Iterator[Diagnostic]:
    named: dict[str, PredName] = {}
    for output in outputs:
        if not output.columns or output.name not in arities:
            continue
        arity, settled = arities[output.name]
        if len(output.columns) != arity:
            yield finding(
                "SL0201",
                f"`{output.name}` has {arguments(arity)}, here {len(output.columns)} are named",
                output.span,
                related=[(settled, f"{arguments(arity)} here")],
                help="name each of its columns, or none",
            )
        elif declaration := declared.get(output.name):
            yield finding(
                "SL0105",
                f"the columns of `{output.name}` are named where it is declared",
                output.span,
                "named again here",
                related=[(declaration.span, "declared here")],
                help=f"write `output {output.name}.`",
            )
        elif (old := named.setdefault(output.name, output)).columns != output.columns:
            yield finding(
                "SL0105",
                f"the columns of `{output.name}` have two sets of names",
                output.span,
                "named again here",
                related=[(old.span, "first named here")],
            )


def _slips(predicates: dict[str, Predicate], defined: set[str]) -> Iterator[Diagnostic]:
    """An undeclared input is legal, and is also what a misspelt name turns into."""
    for name, predicate in predicates.items():
        if name not in defined and (near := did_you_mean(name, defined)):
            yield finding(
                "SL0207",
                f"nothing defines `{name}`, so it is read as an input stream",
                predicate.span,
                help=(
                    f"did you mean `{near}`?",
                    f"if `{name}` is meant, declare it: `stream {name}(…)` or `table {name}(…)`",
                ),
            )
