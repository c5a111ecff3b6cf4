"""Where a value may be missing: which columns may hold `none`, and that nothing computes with it.

An input's column may if its declaration says so, or a fact; a derived column if some rule can put
`none` there. A variable cannot be `none` where a goal of its conjunction has it in a column that
cannot, or a comparison says `X != none`. So rules compute with values alone, and `none` itself is
one more constant, equal to itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from streamlog.analysis.builtins import FILTERS, GOALS
from streamlog.analysis.safety import OpenPositions, open_positions
from streamlog.analysis.schema import Schema
from streamlog.diagnostics import Diagnostic, Span, finding
from streamlog.syntax.ast import (
    Agg,
    Arrive,
    Atom,
    BinOp,
    Body,
    Call,
    Comparison,
    Const,
    Expect,
    Literal,
    Neg,
    Not,
    Rule,
    Term,
    Var,
    branches,
)
from streamlog.syntax.nothing import NONE
from streamlog.syntax.walk import variables

Columns = frozenset[tuple[str, int]]

_EQUALITY = ("=", "!=")
_COUNTS = ("count", "count_distinct")
_WAY_OUT = "test it before, as in `{0} != none`, or give another value, as in `default({0}, …)`"
_IN_QUOTES = 'if the text is meant, write it in quotes: `"none"`'


def optional_columns(schema: Schema) -> tuple[Columns, tuple[Diagnostic, ...]]:
    analysis = _Analysis(schema)
    analysis.run()
    return frozenset(analysis.columns), tuple(analysis.diagnostics())


def is_none(term: Term) -> bool:
    return isinstance(term, Const) and term.value is NONE


def guarded(body: Body, schema: Schema) -> Body:
    """The conjunction with the tests before all others that keep `none` away from them. A goal
    that does so may be asked late; a test never is."""
    if not schema.optional:
        return body
    analysis = _Analysis(schema)
    analysis.columns = set(schema.optional)
    return analysis.guarded(body, set(), set())


class _Analysis:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.open: OpenPositions = open_positions(schema)
        self.columns: set[tuple[str, int]] = set()

    def run(self) -> None:
        for name, predicate in self.schema.predicates.items():
            for position, column in enumerate(predicate.columns):
                if column.optional:
                    self.columns.add((name, position))
        for atom in self._given():
            if not self._is_settled(atom.pred):
                self.columns |= {(atom.pred, i) for i, a in enumerate(atom.args) if is_none(a)}
        size = -1
        while size < len(self.columns):
            size = len(self.columns)
            for rule in self.schema.rules:
                for body in branches(rule.body):
                    maybe = self._maybe(body)
                    for position, arg in enumerate(rule.head.args):
                        if is_none(arg) or (isinstance(arg, Var) and arg.name in maybe):
                            self.columns.add((rule.head.pred, position))

    def _given(self) -> Iterator[Atom]:
        """The facts, and the rows that tests let arrive."""
        yield from (fact.atom for fact in self.schema.facts)
        for test in self.schema.tests:
            for step in test.steps:
                if isinstance(step, Arrive) and step.fate != "rejected":
                    yield step.atom

    def _is_settled(self, pred: str) -> bool:
        """Whether a declaration says which columns may be missing."""
        return pred in self.schema.predicates and self.schema[pred].declaration is not None

    # ------------------------------------------------------------------------- conjunctions

    def _maybe(self, body: Body) -> set[str]:
        """The variables that may be `none` in a conjunction."""
        certain, maybe = self._of_goals(body)
        return self._with_comparisons(body, certain, maybe)

    def _within(self, negation: Not, outside: frozenset[str], maybe: set[str]) -> set[str]:
        """The same of a negation, given the variables around it."""
        certain, own = self._of_goals(negation.body)
        return self._with_comparisons(negation.body, certain | (outside - maybe), own | maybe)

    def _with_comparisons(self, body: Body, certain: set[str], maybe: set[str]) -> set[str]:
        certain |= {name for name, _ in _with_none(body, "!=")}
        maybe |= {name for name, _ in _with_none(body, "=")}
        equal = [
            (c.left, c.right)
            for c in body
            if isinstance(c, Comparison)
            and c.op == "="
            and not (is_none(c.left) or is_none(c.right))
        ]
        size = -1
        while size < len(certain) + len(maybe):
            size = len(certain) + len(maybe)
            for one, other in (*equal, *((b, a) for a, b in equal)):
                if not isinstance(one, Var):
                    continue
                if not isinstance(other, Var) or other.name in certain:
                    certain.add(one.name)
                elif other.name in maybe:
                    maybe.add(one.name)
        return maybe - certain

    def _of_goals(self, body: Body) -> tuple[set[str], set[str]]:
        """The variables in columns that hold values alone, and those in others. Open positions
        bind nothing."""
        certain: set[str] = set()
        maybe: set[str] = set()
        for atom in body:
            if isinstance(atom, Atom) and atom.pred not in FILTERS:
                asked = self.open.get(atom.pred, frozenset())
                for position, arg in enumerate(atom.args):
                    if isinstance(arg, Var) and position not in asked:
                        is_optional = (atom.pred, position) in self.columns
                        (maybe if is_optional else certain).add(arg.name)
        return certain, maybe

    def guarded(self, body: Body, certain: set[str], maybe: set[str]) -> Body:
        """`certain` and `maybe` are variables around a negation."""
        found, own = self._of_goals(body)
        may_be = self._with_comparisons(body, found | certain, own | maybe)
        tests = [x for x in body if _is_test_of_none(x)]
        tested = {v.name for x in tests for v in variables(x)}
        computing = [
            x
            for x in body
            if isinstance(x, Comparison) or (isinstance(x, Atom) and x.pred in FILTERS)
        ]
        read = {v.name: v for x in computing for v in variables(x)}
        for name in sorted((own & read.keys()) - may_be - tested):
            var = read[name]
            none = Const(NONE, None, span=var.span)
            tests.append(Comparison("!=", var, none, span=var.span))
        outside = certain | (_outside_negations(body) - may_be)
        rest = [
            evolve(x, body=self.guarded(x.body, outside, may_be)) if isinstance(x, Not) else x
            for x in body
            if not _is_test_of_none(x)
        ]
        return (*tests, *rest)

    # -------------------------------------------------------------------------- diagnostics

    def diagnostics(self) -> Iterator[Diagnostic]:
        for rule in self.schema.rules:
            for body in branches(rule.body):
                maybe = self._maybe(body)
                yield from self._body(body, maybe)
                yield from self._head(rule, maybe)
        for query in self.schema.queries:
            for body in branches(query.body):
                yield from self._body(body, self._maybe(body))
        for fact in self.schema.facts:
            yield from self._constants(fact.atom)
        for test in self.schema.tests:
            for step in test.steps:
                if isinstance(step, Expect):
                    for atom in step.atoms:
                        yield from self._constants(atom)
                elif isinstance(step, Arrive) and step.fate != "rejected":
                    yield from self._constants(step.atom)

    def _constants(self, atom: Atom) -> Iterator[Diagnostic]:
        """That `none` stands only where it can be."""
        if atom.pred not in self.schema.predicates:
            return
        for position, arg in enumerate(atom.args):
            if not is_none(arg):
                continue
            predicate = self.schema[atom.pred]
            if position == 0 and predicate.temporal:
                yield _wrong("a timestamp cannot be missing", arg.span)
            elif (atom.pred, position) not in self.columns:
                column = self.schema.column_names[atom.pred][position]
                message = f"column `{column}` of `{atom.pred}` cannot be `none`"
                yield _wrong(message, arg.span, _IN_QUOTES)

    def _head(self, rule: Rule, maybe: set[str]) -> Iterator[Diagnostic]:
        for position, arg in enumerate(rule.head.args):
            if position == 0 and self.schema.is_temporal(rule.head.pred):
                yield from _value(arg, maybe, "a timestamp")
            elif isinstance(arg, Agg):
                if arg.func not in _COUNTS:
                    for term in arg.args:
                        yield from _value(term, maybe, f"`{arg.func}`")
                else:
                    yield from _term(arg.args[0], maybe) if arg.args else ()
            else:
                yield from _term(arg, maybe)

    def _body(
        self, body: Body, maybe: set[str], around: frozenset[str] = frozenset()
    ) -> Iterator[Diagnostic]:
        """`around` are the variables around a negation."""
        certain, _ = self._of_goals(body)
        outside = around | _outside_negations(body)
        for literal in body:
            match literal:
                case Atom(pred, args) if pred in GOALS:
                    for arg in args:
                        yield from _value(arg, maybe, f"`{pred}`")
                case Atom(pred, args):
                    yield from self._constants(literal)
                    for position in sorted(self.open.get(pred, ())):
                        yield from _value(args[position], maybe, f"`{pred}`")
                case Comparison(op, left, right) if op in _EQUALITY:
                    for side, other in ((left, right), (right, left)):
                        if is_none(side) and isinstance(other, Var) and other.name in certain:
                            message = f"`{other.name}` cannot be `none` here"
                            yield _wrong(message, literal.span, _IN_QUOTES)
                        elif not is_none(side):
                            yield from _term(side, maybe)
                case Comparison(op, left, right):
                    yield from _value(left, maybe, f"`{op}`")
                    yield from _value(right, maybe, f"`{op}`")
                case Not(inner):
                    yield from self._body(inner, self._within(literal, outside, maybe), outside)
                case _:
                    raise AssertionError("choices are alternatives by now")


def _outside_negations(body: Body) -> frozenset[str]:
    """The variables that a conjunction shares with its negations; others are local to one."""
    literals = (x for x in body if not isinstance(x, Not))
    return frozenset(v.name for x in literals for v in variables(x))


def _is_test_of_none(literal: Literal) -> bool:
    return isinstance(literal, Comparison) and (is_none(literal.left) or is_none(literal.right))


def _with_none(body: Body, op: str) -> Iterator[tuple[str, Span]]:
    for literal in body:
        if isinstance(literal, Comparison) and literal.op == op:
            for side, other in (
                (literal.left, literal.right),
                (literal.right, literal.left),
            ):
                if isinstance(side, Var) and is_none(other):
                    yield side.name, literal.span


def _term(term: Term, maybe: set[str]) -> Iterator[Diagnostic]:
    """Of a term that may itself be `none`."""
    match term:
        case Var() | Const() | Agg():
            return
        case Neg(operand):
            yield from _value(operand, maybe, "`-`")
        case BinOp(op, left, right) if op in _EQUALITY:
            yield from _term(left, maybe)
            yield from _term(right, maybe)
        case BinOp(op, left, right):
            yield from _value(left, maybe, f"`{op}`")
            yield from _value(right, maybe, f"`{op}`")
        case Call("in", args):
            for arg in args:
                yield from _term(arg, maybe)
        case Call("default", (value, *others)):
            yield from _term(value, maybe)
            for other in others:
                yield from _value(other, maybe, "`default`")
        case Call(name, args):
            for arg in args:
                yield from _value(arg, maybe, f"`{name}`")


def _value(term: Term, maybe: set[str], what: str) -> Iterator[Diagnostic]:
    """Of a term with which something is done that needs a value."""
    if is_none(term):
        yield _wrong(f"{what} does not take `none`", term.span, _IN_QUOTES)
    elif isinstance(term, Var) and term.name in maybe:
        message = f"{what} does not take `{term.name}`, which may be `none`"
        way_out = _WAY_OUT.format(term.name)
        yield _wrong(message, term.span, way_out)
    elif isinstance(term, Agg):
        for arg in term.args:
            yield from _value(arg, maybe, f"`{term.func}`")
    else:
        yield from _term(term, maybe)


def _wrong(message: str, span: Span, help: str = "") -> Diagnostic:
    return finding("SL0310", message, span, help=(help,) if help else ())
