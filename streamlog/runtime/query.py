"""One-time queries, and whatever else is asked about the rows at hand.

A conjunction becomes generated Python: the planner orders its steps and `plan.python` writes them,
as for rules. An index is made when it is first asked for; that of an open predicate finds its rows
by the predicate's own rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from attrs import evolve, frozen

from streamlog.analysis.builtins import GOALS
from streamlog.analysis.optional import guarded
from streamlog.analysis.safety import check_safety
from streamlog.analysis.schema import resolve
from streamlog.analysis.types import TypeTable, infer
from streamlog.compiler import Program
from streamlog.diagnostics import Diagnostic, Source, did_you_mean
from streamlog.plan.order import exists
from streamlog.plan.python.generated import Generated
from streamlog.plan.python.inserts import as_tuple
from streamlog.plan.python.nest import Nest
from streamlog.plan.python.terms import name, python
from streamlog.plan.steps import Index
from streamlog.rewrite.desugar import desugar
from streamlog.runtime.executor import Row
from streamlog.runtime.functions import ERRORS, FUNCTIONS, reason, whole
from streamlog.runtime.indexes import fill
from streamlog.runtime.python_functions import callables
from streamlog.syntax.ast import (
    EVERY,
    Body,
    Comparison,
    Module,
    Not,
    Query,
    Rule,
    Term,
    Type,
    Value,
    Var,
    branches,
)
from streamlog.syntax.parse import parse
from streamlog.syntax.walk import atoms, variables

Binding: TypeAlias = dict[str, Value]
Relation: TypeAlias = Callable[[str], Sequence[Row]]
Solutions: TypeAlias = Callable[..., Iterator[Row]]  # takes the values of what is given

MOST_DEPTH = 100
_SOURCE = "<streamlog query>"


class QueryError(Exception):
    """A query that cannot be answered; `diagnostics` say where, if a place is to blame."""

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics


@frozen
class Question:
    """A query in simple form whose names, types and bindings are in order."""

    query: Query
    types: TypeTable


def prepared(program: Program, text: str) -> Question:
    text = text.strip()
    text = text if text.startswith("?") else f"?{text}"
    text = text if text.endswith(".") else f"{text}."
    module, wrong = parse(Source("<query>", text))
    raise_errors(wrong)
    match module.statements:
        case (Query() as query,):
            pass
        case _:
            raise QueryError("one query at a time, as in `?p(T, X).`")
    schema = program.schema
    module = program.written or program.parsed
    written = module.statements if module is not None else ()
    refuse_clocks(query.body)
    desugared, wrong = desugar(Module((query,), span=query.span), written)
    raise_errors(wrong)
    states = [a.pred for a in atoms(query.body) if a.when is not None]
    (query,) = (s for s in desugared.statements if isinstance(s, Query))
    for atom in atoms(query.body):
        if atom.pred not in schema.predicates and atom.pred not in GOALS:
            if of := next((name for name in states if atom.pred.startswith(name)), None):
                raise QueryError(
                    f"no rule of this program reads from when until when `{of}` holds; ask with "
                    f"a head, as in `?held(S, E, …) <- {of}(…) from S to E.`"
                )
            near = did_you_mean(atom.pred, schema.predicates)
            hint = f"; did you mean `{near}`?" if near else ""
            raise QueryError(f"there is no predicate `{atom.pred}` in this program{hint}")
    program_module = program.module
    asked, wrong = resolve(evolve(program_module, statements=(*program_module.statements, query)))
    raise_errors(wrong)
    types, wrong = infer(asked)
    for found_wrong in (wrong, check_safety(asked)[1]):
        raise_errors(d for d in found_wrong if d.span.source is query.span.source)
    return Question(query, types)


def refuse_clocks(body: Body) -> None:
    if any(a.pred == EVERY for a in atoms(body)):
        raise QueryError("`every` is a clock, and goes on for ever; ask about what there is")


def raise_errors(diagnostics: Iterable[Diagnostic]) -> None:
    errors = tuple(d for d in diagnostics if d.is_error)
    if errors:
        raise QueryError(errors[0].message, errors)


def answer(program: Program, question: Question, relation: Relation) -> list[Binding]:
    """The distinct bindings of the query's named variables, sorted."""
    query, solver = question.query, Solver(program, question.types, relation)
    outside = [
        {v.name: v for x in body if not isinstance(x, Not) for v in variables(x)}
        for body in branches(query.body)
    ]
    named = {n: v for names in outside for n, v in names.items() if not v.is_anonymous}
    found: dict[tuple[str, ...], dict[Row, None]] = {}
    for body, names in zip(branches(query.body), outside, strict=True):
        shown = {n: v for n, v in named.items() if n in names}
        with computing():
            rows = solver.solutions(query, body, (), shown.values())()
            found.setdefault(tuple(shown), {}).update(dict.fromkeys(rows))
    return [
        dict(zip(names, row, strict=True))
        for names, rows in found.items()
        for row in in_order(rows)
    ]


def in_order(rows: Any) -> list[Any]:
    """Sorted; where a column mixes numbers and texts, numbers come first."""
    rows = list(rows)
    try:
        return sorted(rows)
    except TypeError:
        return sorted(rows, key=lambda row: [(isinstance(v, str), v) for v in row])


# ---------------------------------------------------------------------------- conjunctions


class Solver:
    """Finds the solutions of conjunctions, given the rows of each predicate."""

    def __init__(self, program: Program, types: TypeTable, relation: Relation) -> None:
        self.types, self.relation = types, relation
        self.open = program.safety.open
        self.python = callables(program.closed)
        schema = program.schema
        unlisted = {p: evolve(schema[p], temporal=False) for p, at in self.open.items() if at}
        self.schema = evolve(schema, predicates={**schema.predicates, **unlisted})
        self.indexes: dict[Index, Any] = {}
        self.depth = 0

    def solutions(
        self, statement: Rule | Query, body: Body, given: Iterable[Var], shown: Iterable[Term]
    ) -> Solutions:
        """A function from the values of some variables to those of some terms, in a row for each
        solution of the conjunction. `ValueError`: a variable is bound nowhere."""
        given, shown = tuple(given), tuple(shown)
        known = frozenset(v.name for v in given)
        steps = exists(guarded(body, self.schema), known, self.schema, True, self.open).steps
        out = Generated()
        with out.function("solve", ", ".join(map(name, given))):
            read = [v for term in shown for v in variables(term)]
            found = f"yield {as_tuple(map(python, shown))}"
            nest = Nest(out, self.types, statement, self._index)
            nest.chain(steps, given, read, lambda: out(found))
        solve: Solutions = out.run(_SOURCE, {**FUNCTIONS, **self.python})["solve"]
        return solve

    def by_head(
        self, rule: Rule, body: Body, positions: Iterable[int], shown: Iterable[Term]
    ) -> Solutions:
        """The same of a rule, given the values of some positions of its head."""
        given: list[Var] = []
        for position in positions:
            term = rule.head.args[position]
            if not isinstance(term, Var) or term in given:
                value = Var(f"head_{position}", span=term.span)
                # What is added to a float cannot be taken from the sum again.
                is_float = self.types.column(rule.head.pred, position) is Type.FLOAT
                ops = ("<=", ">=") if is_float else ("=",)
                body = (*body, *(Comparison(op, value, term, span=term.span) for op in ops))
                term = value
            given.append(term)
        return self.solutions(rule, body, given, shown)

    def _index(self, index: Index) -> Any:
        if index not in self.indexes:
            is_open = bool(self.open.get(index.pred))
            self.indexes[index] = _Called(self, index) if is_open else {}
            if not is_open:
                fill(index, self.indexes[index], self.relation(index.pred))
        return self.indexes[index]

    @contextmanager
    def deeper(self, pred: str) -> Iterator[None]:
        if self.depth > MOST_DEPTH:
            raise QueryError(f"`{pred}` calls itself more than {MOST_DEPTH} times here")
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1


class _Called:
    """An open predicate as an index."""

    def __init__(self, solver: Solver, index: Index) -> None:
        self.solver, self.index = solver, index
        self._rules: list[Solutions] | None = None

    def get(self, key: Any, nothing: object) -> Iterable[Row]:
        with self.solver.deeper(self.index.pred):
            return dict.fromkeys(self._rows(key))

    def __contains__(self, key: Any) -> bool:
        with self.solver.deeper(self.index.pred):
            return any(True for _ in self._rows(key))

    def _rows(self, key: Any) -> Iterator[Row]:
        schema, pred, positions = self.solver.schema, self.index.pred, self.index.key
        values = (key,) if len(positions) == 1 else key
        if self._rules is None:  # they may ask for this index themselves
            self._rules = [
                self.solver.by_head(rule, body, positions, rule.head.args)
                for rule in schema.rules_of.get(pred, ())
                for body in branches(rule.body)
            ]
        for solutions in self._rules:
            yield from solutions(*values)
        for fact in schema.facts_of.get(pred, ()):
            if tuple(fact.row[p] for p in positions) == values:
                yield fact.row


def evaluate(term: Term, binding: Binding) -> Value:
    """A term's value, once its variables have theirs."""
    value: Value = eval(
        python(term), dict(FUNCTIONS), {name(v): binding[v.name] for v in variables(term)}
    )
    return whole(value) if type(value) is int else value


@contextmanager
def computing() -> Iterator[None]:
    """What cannot be computed cannot be answered."""
    try:
        yield
    except ERRORS as error:
        raise QueryError(reason(error)) from None
