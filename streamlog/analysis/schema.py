"""Names: what each predicate is, with its arity, its columns and whether it has timestamps."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

from attrs import field, frozen

from streamlog.analysis.builtins import GOALS, TICK, TIMESTAMPS
from streamlog.analysis.calls import check_calls, declared_functions, functions_as_goals
from streamlog.analysis.column_names import column_names
from streamlog.analysis.column_relations import ColumnRelation, broken_by, relations_of, unfit
from streamlog.analysis.temporal import temporal_predicates
from streamlog.codes import SEVERITIES
from streamlog.diagnostics import Diagnostic, Span, did_you_mean, finding
from streamlog.syntax.ast import (
    FIRST_INSTANT,
    LAST_INSTANT,
    LOGICAL_TIME,
    Advance,
    Arrive,
    Atom,
    Column,
    Const,
    Expect,
    ExpectFrom,
    ExpectNone,
    Fact,
    Function,
    Given,
    Module,
    Option,
    Output,
    PredName,
    Query,
    Rejected,
    Rule,
    Stream,
    Table,
    Term,
    Test,
    Type,
    Var,
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

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.declaration.columns if self.declaration else ()

    @property
    def relations(self) -> tuple[ColumnRelation, ...]:
        """What the declaration says of columns together."""
        return relations_of(self.declaration)

    def option(self, name: str) -> Option | None:
        options = self.declaration.options if self.declaration else ()
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

    def __getitem__(self, name: str) -> Predicate:
        return self.predicates[name]

    def is_temporal(self, name: str) -> bool:
        return name == TICK or (name in self.predicates and self.predicates[name].temporal)

    @cached_property
    def streams(self) -> tuple[str, ...]:
        return tuple(sorted(n for n, p in self.predicates.items() if p.kind is Kind.STREAM))

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Streams and tables."""
        return tuple(n for n, p in self.predicates.items() if p.kind is not Kind.DERIVED)

    @cached_property
    def rules_of(self) -> dict[str, tuple[Rule, ...]]:
        result: dict[str, tuple[Rule, ...]] = {}
        for rule in self.rules:
            result[rule.head.pred] = (*result.get(rule.head.pred, ()), rule)
        return result

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


def resolve(module: Module) -> tuple[Schema, tuple[Diagnostic, ...]]:
    """Name resolution: every name has one meaning, one arity and one declaration."""
    statements = module.statements
    diagnostics: list[Diagnostic] = []
    declared: dict[str, Stream | Table] = {}
    for statement in statements:
        if isinstance(statement, Stream | Table):
            diagnostics += _declare(statement, declared)
    rules = tuple(s for s in statements if isinstance(s, Rule))
    facts = tuple(s for s in statements if isinstance(s, Fact))
    queries = tuple(s for s in statements if isinstance(s, Query))
    outputs = tuple(p for s in statements if isinstance(s, Output) for p in s.preds)
    tests = tuple(s for s in statements if isinstance(s, Test))

    mentions: list[Atom] = [r.head for r in rules] + [f.atom for f in facts]
    asking: tuple[Rule | Query, ...] = (*rules, *queries)
    mentions += (a for s in asking for a in atoms(s.body))
    defined = {r.head.pred for r in rules} | {f.atom.pred for f in facts} | declared.keys()
    arities, wrong = _arities(declared, mentions)
    diagnostics += wrong
    diagnostics += _heads(rules, facts, declared)
    diagnostics += _outside(facts, declared)
    for name, declaration in declared.items():
        diagnostics += broken_by([f for f in facts if f.atom.pred == name], declaration)
    functions, wrong = declared_functions(s for s in statements if isinstance(s, Function))
    diagnostics += wrong
    diagnostics += check_calls(asking, functions)
    diagnostics += _unknown(outputs, tests, arities)
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
        predicates[name] = Predicate(name, arity, kind, name in temporal, span, declared.get(name))
    diagnostics += _slips(predicates, defined | functions.keys())
    asked = {n: p.span for n, p in predicates.items() if n not in defined}
    diagnostics += functions_as_goals(asked, functions)
    diagnostics += _beyond_time(facts, temporal)
    schema = Schema(predicates, rules, facts, queries, outputs, tests, functions)
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
    yield from unfit(new)


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
                        f"the built-in `{atom.pred}` takes {_arguments(GOALS[atom.pred])}, "
                        f"not {atom.arity}",
                        atom.span,
                    )
                )
            continue
        arity, span = arities.setdefault(atom.pred, (atom.arity, atom.span))
        if atom.arity != arity:
            wrong.append(_wrong_arity(atom, arity, span))
    return arities, wrong


def _wrong_arity(atom: Atom, arity: int, settled: Span) -> Diagnostic:
    return finding(
        "SL0201",
        f"`{atom.pred}` has {_arguments(arity)}, here it has {atom.arity}",
        atom.span,
        f"{_arguments(atom.arity)} here",
        related=[(settled, f"{_arguments(arity)} here")],
        help="give it the same number of arguments everywhere; in a rule, `_` stands for one "
        "that does not matter",
    )


def _arguments(count: int) -> str:
    return f"{count} argument" if count == 1 else f"{count} arguments"


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
        for arg in fact.atom.args:
            if not isinstance(arg, Const):
                yield finding(
                    "SL0305",
                    f"the fact `{fact.atom.pred}` is not made of constants alone",
                    arg.span,
                    "not a constant",
                    help=_constant_for(arg),
                )


def _constant_for(arg: Term) -> str:
    if isinstance(arg, Var) and arg.name.strip("_"):
        return (
            "a word that starts with a capital or `_` is a variable; if it is a text, write "
            f'`"{arg.name}"`'
        )
    return "write the value itself; only a rule with a body can compute one"


def _outside(facts: Iterable[Fact], declared: dict[str, Stream | Table]) -> Iterator[Diagnostic]:
    """Facts that lie outside the range of their column, on which the contract relies."""
    for fact in facts:
        declaration = declared.get(fact.atom.pred)
        for arg, column in zip(
            fact.atom.args, declaration.columns if declaration else (), strict=False
        ):
            if not isinstance(arg, Const) or column.low is None or column.high is None:
                continue
            low, value, high = column.low.value, arg.value, column.high.value
            if isinstance(value, str) or isinstance(low, str) or isinstance(high, str):
                continue
            if not low <= value <= high:
                yield finding(
                    "SL0301",
                    f"{pretty(arg)} lies outside the declared range of `{column.name}`",
                    arg.span,
                    related=[(column.span, "declared here")],
                    help="widen the range, or correct the fact",
                )


def _beyond_time(facts: Iterable[Fact], temporal: Collection[str]) -> Iterator[Diagnostic]:
    for fact in facts:
        match fact.atom:
            case Atom(pred, (Const(int(time), Type.INT) as arg, *_)) if pred in temporal:
                if not FIRST_INSTANT <= time <= LAST_INSTANT:
                    yield finding(
                        "SL0301",
                        f"{time} is not a valid timestamp: {LOGICAL_TIME}",
                        arg.span,
                        help="correct the fact, or count in larger steps",
                    )


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
                f"`{output.name}` has {_arguments(arity)}, here {len(output.columns)} are named",
                output.span,
                related=[(settled, f"{_arguments(arity)} here")],
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


def _unknown(
    outputs: Iterable[PredName], tests: Iterable[Test], arities: dict[str, tuple[int, Span]]
) -> Iterator[Diagnostic]:
    def check(name: str, span: Span) -> Iterator[Diagnostic]:
        if name not in arities:
            near = did_you_mean(name, arities)
            yield finding(
                "SL0204",
                f"there is no predicate `{name}` in this program",
                span,
                help=f"did you mean `{near}`?" if near else (),
            )

    for output in outputs:
        yield from check(output.name, output.span)
    for test in tests:
        for step in test.steps:
            match step:
                case Given(pred) | ExpectNone(pred) | ExpectFrom(pred):
                    yield from check(pred.name, pred.span)
                case Expect(atoms):
                    for atom in atoms:
                        yield from check(atom.pred, atom.span)
                        yield from _arity_in_test(atom, arities)
                case Arrive(atom, fate):
                    yield from check(atom.pred, atom.span)
                    if fate != "rejected":
                        yield from _arity_in_test(atom, arities)
                case Advance(time) if not isinstance(time, Const) or time.type not in TIMESTAMPS:
                    yield finding(
                        "SL0601",
                        "`advance` needs a timestamp",
                        time.span,
                        help="write the time itself, as in `advance @2026-11-15T08:00:00Z` or, "
                        "on logical time, `advance 5`",
                    )
                case Rejected(code) if code not in SEVERITIES:
                    near = did_you_mean(code, SEVERITIES)
                    yield finding(
                        "SL0601",
                        f"there is no code `{code}`",
                        step.span,
                        "no program can be refused with it",
                        help=f"did you mean `{near}`?" if near else (),
                    )
                case _:
                    pass


def _arity_in_test(atom: Atom, arities: dict[str, tuple[int, Span]]) -> Iterator[Diagnostic]:
    arity, span = arities.get(atom.pred, (atom.arity, atom.span))
    if atom.arity != arity:
        yield _wrong_arity(atom, arity, span)
    for arg in atom.args:
        if not isinstance(arg, Const):
            yield finding(
                "SL0601",
                "a test speaks of constants only",
                arg.span,
                "not a constant",
                help=_constant_for(arg),
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
