"""Types, declared or inferred.

Every column and every variable of a rule is a *cell* holding the types it may still have.
Variables and the columns they stand in share a cell; arithmetic, comparisons and functions
narrow the cells they touch to the signatures that remain possible, until nothing changes. A cell
that runs empty is a mismatch, and its message names the place that asks for one type and the
place that has settled on another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen, mutable

from streamlog.analysis.builtins import (
    AGGREGATE_SIGNATURES,
    CONDITIONS,
    EQUALITY,
    FAILURE,
    FILTER_TYPES,
    FILTERS,
    FUNCTIONS,
    NEGATION,
    OPERATORS,
    ORDER,
    TICK,
    TIMESTAMPS,
    VALUES,
    Signature,
)
from streamlog.analysis.calls import signature
from streamlog.analysis.optional import Columns, optional_columns
from streamlog.analysis.patterns import PatternError, compiled
from streamlog.analysis.schema import Kind, Schema
from streamlog.analysis.slips import slips
from streamlog.diagnostics import Diagnostic, Span, finding
from streamlog.syntax.ast import (
    Agg,
    Arrive,
    Atom,
    BinOp,
    Body,
    Call,
    Choice,
    Comparison,
    Const,
    Expect,
    Neg,
    Not,
    Query,
    Rule,
    Term,
    Type,
    Var,
)

ANY = frozenset(Type)
Types = frozenset[Type]


@frozen
class TypeTable:
    """The possible types of each column, and of each variable by rule or query."""

    columns: Mapping[tuple[str, int], Types]
    variables: Mapping[tuple[Span, str], Types]  # by the place of the rule or query
    optional: Columns = frozenset()  # those in which values may be missing

    def column(self, pred: str, position: int) -> Type | None:
        return settled(self.columns.get((pred, position), ANY))

    def variable(self, statement: Rule | Query, name: str) -> Types:
        return self.variables.get((statement.span, name), ANY)


def settled(types: Types) -> Type | None:
    """The one type left, if there is one. A number that may be either is an int."""
    if len(types) == 1:
        return next(iter(types))
    return Type.INT if types == {Type.INT, Type.FLOAT} else None


Given = Mapping[tuple[str, int], Type]


def infer(schema: Schema, given: Given | None = None) -> tuple[TypeTable, tuple[Diagnostic, ...]]:
    """`given` are types of columns that are known from elsewhere, also of other predicates."""
    known = {key: t for key, t in (given or {}).items() if key[0] in schema.predicates}
    inference = _Inference(schema, known)
    inference.run()
    columns = {key: cell.root().types for key, cell in inference.columns.items()}
    variables = {key: cell.root().types for key, cell in inference.variables.items()}
    optional, wrong = optional_columns(schema)
    return TypeTable(columns, variables, optional), (*inference.diagnostics, *wrong)


@mutable(eq=False)
class _Cell:
    """What one column or variable may be, the place that said so, and in which words."""

    types: Types
    span: Span
    why: str = ""
    undeclared: str = ""  # the input whose timestamp this is, when nothing declares it
    parent: _Cell | None = None
    broken: bool = False  # already reported; says nothing more

    def root(self) -> _Cell:
        cell = self
        while cell.parent is not None:
            cell = cell.parent
        return cell

    @property
    def label(self) -> str:
        return _choice(self.types) + self.why


@frozen
class _Constraint:
    """The cells' types together must match one of the signatures."""

    cells: tuple[_Cell, ...]
    signatures: tuple[Signature, ...]
    what: str
    span: Span
    operands: int  # how many of the cells stand in the text; one more is the result


class _Inference:
    def __init__(self, schema: Schema, given: Given) -> None:
        self.schema = schema
        self.given = given
        self.columns: dict[tuple[str, int], _Cell] = {}
        self.variables: dict[tuple[Span, str], _Cell] = {}
        self.constraints: list[_Constraint] = []
        self.diagnostics: list[Diagnostic] = []
        self.where: Span  # the rule or query whose variables are meant

    # ---------------------------------------------------------------- gathering

    def run(self) -> None:
        for (name, position), type_ in self.given.items():
            why = f", as in the data of `{name}`"
            self.columns[name, position] = _Cell(frozenset({type_}), self.schema[name].span, why)
        for name, predicate in self.schema.predicates.items():
            for position, column in enumerate(predicate.columns):
                if column.type is not None:
                    self.columns[name, position] = _Cell(
                        frozenset({column.type}), column.span, ", as declared"
                    )
            if predicate.temporal and predicate.arity:
                self._timestamp(name)
                for option in predicate.declaration.options if predicate.declaration else ():
                    if option.name != "from":
                        clock = Type.TIME if option.value.type is Type.DURATION else Type.INT
                        wanted = frozenset({clock})
                        self._narrow(
                            self.columns[name, 0], wanted, option.value.span, f"`{option.name}`"
                        )
        for rule in self.schema.rules:
            self.where = rule.span
            for position, arg in enumerate(rule.head.args):
                self._join(self._column(rule.head, position), self._term(arg), arg.span)
            self._body(rule.body)
        for query in self.schema.queries:
            self.where = query.span
            self._body(query.body)
        for fact in self.schema.facts:
            self._fact(fact.atom)
        for test in self.schema.tests:
            for step in test.steps:
                match step:
                    case Expect(atoms):
                        for atom in atoms:
                            self._fact(atom)
                    case Arrive(atom, fate) if fate != "rejected":
                        self._fact(atom)
                    case _:
                        pass
        self._settle()

    def _timestamp(self, name: str) -> None:
        predicate = self.schema[name]
        cell = self.columns.setdefault(
            (name, 0), _Cell(ANY, predicate.span, f", as the timestamp of `{name}`")
        )
        if predicate.kind is Kind.STREAM and not predicate.declaration:
            cell.undeclared = name
        if not cell.types & TIMESTAMPS:
            self.diagnostics.append(
                finding(
                    "SL0308",
                    f"the timestamp of `{name}` is declared {settled(cell.types)}",
                    cell.span,
                    help="a timestamp is a `time`, or an `int` for logical time; without "
                    "timestamps, declare a `table`",
                )
            )
            cell.broken = True
        cell.types &= TIMESTAMPS

    def _column(self, atom: Atom, position: int) -> _Cell:
        key = (atom.pred, position)
        if key not in self.columns:
            span = atom.args[position].span
            self.columns[key] = _Cell(ANY, span, f", as a column of `{atom.pred}`")
        return self.columns[key]

    def _variable(self, var: Var) -> _Cell:
        key = (self.where, var.name)
        if key not in self.variables:
            self.variables[key] = _Cell(ANY, var.span)
        return self.variables[key]

    def _fact(self, atom: Atom) -> None:
        for position, arg in enumerate(atom.args):
            if isinstance(arg, Const):
                self._join(self._column(atom, position), self._term(arg), arg.span)

    def _body(self, body: Body) -> None:
        for literal in body:
            match literal:
                case Atom(pred, args) if pred in FILTERS:
                    for arg, type_ in zip(args, FILTER_TYPES, strict=False):
                        self._narrow(self._term(arg), frozenset({type_}), arg.span, f"`{pred}`")
                    if pred == "matches":
                        self._patterns(args[1:])
                case Atom(pred, args) if pred == TICK:
                    for arg in args[:1]:
                        self._narrow(self._term(arg), TIMESTAMPS, arg.span, "`tick`")
                case Atom(_, args):
                    for position, arg in enumerate(args):
                        self._join(self._column(literal, position), self._term(arg), arg.span)
                case Comparison(op, left, right):
                    signatures = EQUALITY if op in ("=", "!=") else ORDER
                    cells = (self._term(left), self._term(right))
                    self._relate(cells, signatures, f"`{op}`", literal.span)
                case Not(inner):
                    self._body(inner)
                case Choice(alternatives):
                    for branch in alternatives:
                        self._body(branch)

    def _patterns(self, args: Iterable[Term]) -> None:
        """Those that the program's text says; others are looked at when rules run."""
        for arg in args:
            if not (isinstance(arg, Const) and isinstance(arg.value, str)):
                continue
            try:
                compiled(arg.value)
            except PatternError as error:
                self.diagnostics.append(
                    finding(
                        "SL0309",
                        f"`{arg.value}` is not a regular expression: {error}",
                        arg.span,
                        help="patterns are those of RE2, which have no backreferences and no "
                        "lookaround",
                    )
                )

    def _term(self, term: Term) -> _Cell:
        match term:
            case Var():
                return self._variable(term)
            case Const(_, type_):
                # A whole number may stand where a float is wanted.
                if type_ is None:  # `none`
                    return _Cell(ANY, term.span)
                types = {type_, Type.FLOAT} if type_ is Type.INT else {type_}
                return _Cell(frozenset(types), term.span)
            case Neg(operand):
                return self._apply((operand,), NEGATION, "`-`", term.span)
            case BinOp(op, left, right):
                signatures = CONDITIONS[op] if op in CONDITIONS else OPERATORS[op]
                return self._apply((left, right), signatures, f"`{op}`", term.span)
            case Call(name) if name in (FAILURE, VALUES):
                return _Cell(frozenset({Type.STRING}), term.span)
            case Call(name, args):
                if name == "regex_extract":
                    self._patterns(args[1:2])
                own = self.schema.functions.get(name)
                function = signature(own) if own else FUNCTIONS.get(name)
                signatures = function.for_arity(len(args)) if function else ()
                return self._apply(args, signatures, f"`{name}`", term.span)
            case Agg(func, _):
                signatures = AGGREGATE_SIGNATURES[func] if term.args else ((Type.INT,),)
                return self._apply(term.args, signatures, f"`{func}`", term.span)

    def _apply(
        self, args: tuple[Term, ...], signatures: tuple[Signature, ...], what: str, span: Span
    ) -> _Cell:
        result = _Cell(ANY, span, f", as the result of {what}")
        if signatures:
            cells = (*map(self._term, args), result)
            self.constraints.append(_Constraint(cells, signatures, what, span, len(args)))
        return result

    def _relate(
        self, cells: tuple[_Cell, ...], signatures: tuple[Signature, ...], what: str, span: Span
    ) -> None:
        self.constraints.append(_Constraint(cells, signatures, what, span, len(cells)))

    # ------------------------------------------------------------------ solving

    def _settle(self) -> None:
        """Narrow until nothing changes; each round drops at least one type of one cell."""
        changed = True
        while changed:
            changed = False
            for constraint in self.constraints:
                changed |= self._propagate(constraint)

    def _propagate(self, constraint: _Constraint) -> bool:
        roots = [cell.root() for cell in constraint.cells]
        if any(root.broken for root in roots):
            return False
        possible = [
            s
            for s in constraint.signatures
            if all(t in root.types for t, root in zip(s, roots, strict=True))
        ]
        if not possible:
            self._clash(constraint, roots)
            return False
        changed = False
        for index, root in enumerate(roots):
            types = root.types & {s[index] for s in possible}
            if types != root.types:
                root.types, root.span = types, constraint.span
                root.why = f", because of {constraint.what}"
                changed = True
        return changed

    def _narrow(self, cell: _Cell, types: Types, span: Span, what: str) -> None:
        self._relate((cell,), tuple((t,) for t in sorted(types, key=str)), what, span)

    def _join(self, left: _Cell, right: _Cell, span: Span) -> None:
        """The two are the same value, seen from two places."""
        left, right = left.root(), right.root()
        if left is right:
            return
        common = left.types & right.types
        if left.broken or right.broken:
            common = ANY
        elif not common:
            self._mismatch(left, right, span)
            return
        elif common != left.types:
            left.span, left.why = right.span, right.why
        left.types, right.parent = common, left
        left.undeclared = left.undeclared or right.undeclared

    def _mismatch(self, one: _Cell, other: _Cell, span: Span) -> None:
        one.broken = other.broken = True
        self.diagnostics.append(
            finding(
                "SL0301",
                f"{_choice(other.types)} where {_choice(one.types)} is wanted",
                span,
                _choice(other.types),
                related=[(one.span, one.label)]
                + ([(other.span, other.label)] if other.span != span else []),
                help=_undeclared(one, other)
                or slips((one.span, other.span, span), words=False)
                or _help({*one.types, *other.types}),
            )
        )

    def _clash(self, constraint: _Constraint, roots: list[_Cell]) -> None:
        operands = roots[: constraint.operands] or roots
        for root in roots:
            root.broken = True
        kinds = " and ".join(_choice(r.types) for r in operands)
        related = {r.span: r.label for r in operands}
        related.pop(constraint.span, None)
        self.diagnostics.append(
            finding(
                "SL0301",
                f"{constraint.what} does not take {kinds}",
                constraint.span,
                related=related.items(),
                help=slips(r.span for r in operands if constraint.span.encloses(r.span))
                or _help({t for r in operands for t in r.types}),
            )
        )


def _article(type_: Type) -> str:
    return f"an {type_}" if type_ is Type.INT else f"a {type_}"


def _choice(types: Iterable[Type]) -> str:
    ordered = sorted(types, key=lambda t: list(Type).index(t))
    if set(ordered) == {Type.INT, Type.FLOAT}:
        return "a number"
    if len(ordered) == len(Type):
        return "anything"
    return " or ".join(_article(t) for t in ordered)


def _undeclared(*cells: _Cell) -> tuple[str, ...]:
    """What to do when a table was taken for a stream."""
    name = next((c.undeclared for c in cells if c.undeclared), "")
    if not name or all(c.types & TIMESTAMPS for c in cells):
        return ()
    return (
        f"nothing declares `{name}`, so it is a stream and its first argument a timestamp; if it "
        f"has no timestamps, declare it: `table {name}(…)`",
    )


def _help(types: set[Type]) -> tuple[str, ...]:
    if Type.TIME in types and types & {Type.INT, Type.FLOAT}:
        return (
            "with times, write a duration such as `5s`, or a timestamp such as "
            "`@2026-11-15T08:00:00Z`",
        )
    if Type.INT in types and Type.DURATION in types:
        return (
            "logical time counts in plain integers: write `5`, or declare the stream's "
            "first column as `time`",
        )
    return ()
