"""Look-ahead and look-back: how far each goal of a rule may lie from its head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property

from attrs import evolve, field, frozen

from streamlog.analysis.builtins import WHOLE
from streamlog.analysis.schema import Kind, Schema
from streamlog.analysis.time.constraints import (
    NO_RELATIONS,
    Conjunction,
    Interval,
    OffsetError,
    Relations,
    Terms,
    TooManyCasesError,
    matrices,
)
from streamlog.analysis.time.dbm import Dbm
from streamlog.analysis.types import TypeTable
from streamlog.diagnostics import Diagnostic, Span, finding
from streamlog.syntax.ast import (
    Agg,
    Atom,
    BinOp,
    Body,
    Call,
    Choice,
    Comparison,
    Const,
    Neg,
    Not,
    Rule,
    Term,
    Type,
    Var,
    branches,
)
from streamlog.syntax.nothing import NONE
from streamlog.syntax.walk import atoms, variables

HEAD = "head"  # no variable starts with a lower-case letter


@frozen
class Elsewhere:
    """A goal on another timeline of its stream."""

    stream: str
    column: int  # of the goal's
    ahead: int | None
    back: int | None


@frozen
class Goal:
    """A timestamped goal of a rule and the span of time, relative to the head, it can lie in.

    `ahead` is the largest difference to the head's timestamp (look-ahead), `back` the smallest
    (look-back); None stands for no bound. `clock` names its timestamp in the matrices.
    """

    atom: Atom
    clock: str
    ahead: int | None
    back: int | None
    negated: bool
    depth: int  # how many negations it stands in
    elsewhere: tuple[Elsewhere, ...] = ()

    @property
    def is_blocking(self) -> bool:
        return self.ahead is None


@frozen
class Assumption:
    """What the facts of a table say of a column, where a rule's time rests on it. Rows of the
    table that come from elsewhere must keep to it."""

    pred: str
    column: int
    where: tuple[tuple[int, Const], ...]  # for rows with these values
    low: int
    high: int
    rule: Rule = field(eq=False, repr=False)

    def is_broken_by(self, row: Sequence[object]) -> bool:
        """By a row whose values have the types of their columns."""
        value = row[self.column]
        if value is NONE:  # nothing is computed with it
            return False
        assert isinstance(value, int)
        concerns = all(row[position] == const.value for position, const in self.where)
        return concerns and not self.low <= value <= self.high


@frozen(slots=False)
class BranchTime:
    """One conjunction of a rule: what its comparisons leave possible."""

    rule: Rule
    place: tuple[int, int]  # the rule's number, and which of its conjunctions this is
    body: Body
    terms: Terms
    matrices: tuple[Dbm, ...]  # over HEAD and the rule's variables; empty: it never fires
    goals: tuple[Goal, ...]
    assumes: tuple[Assumption, ...] = ()
    related: tuple[str, ...] = ()  # the predicates whose columns' relations it makes use of

    @property
    def can_fire(self) -> bool:
        return bool(self.matrices)

    @cached_property
    def uses(self) -> Counter[str]:
        return Counter(v.name for v in variables((self.rule.head, *self.body)))


def clock_of(atom: Atom, column: int = 0) -> str:
    """The name of a goal's timestamp: its variable, or the constant in words."""
    match atom.args[column]:
        case Var(name):
            return name
        case Const(value):
            return f"at {value}"
        case Neg() | BinOp() | Call() | Agg():
            raise ValueError("goals are desugared")


def reaches(
    schema: Schema, types: TypeTable, relations: Relations = NO_RELATIONS
) -> tuple[tuple[BranchTime, ...], tuple[Diagnostic, ...]]:
    """The time of every conjunction of every rule with a timestamp."""
    result: list[BranchTime] = []
    diagnostics: list[Diagnostic] = []
    for rule in schema.rules:
        if not schema.is_temporal(rule.head.pred):
            continue
        found: list[BranchTime] = []
        try:
            found = list(branches_of(rule, schema, types, relations))
        except TooManyCasesError:
            diagnostics.append(too_many_cases(rule))
        except OffsetError as overflow:
            diagnostics.append(
                finding(
                    "SL0405",
                    "this offset does not fit into 64 bits",
                    overflow.term.span,
                    help="timestamps are 64-bit integers; in microseconds that is about 292,000 "
                    "years either way",
                )
            )
        result += found
        diagnostics += _never(rule, found, schema)
    return tuple(result), tuple(diagnostics)


def branches_of(
    rule: Rule, schema: Schema, types: TypeTable, relations: Relations, *, sparing: bool = True
) -> Iterator[BranchTime]:
    """The time of each conjunction of a rule. If `sparing`, relations between columns are left out
    where they make no difference to the times of its goals."""
    for which, body in enumerate(branches(rule.body)):
        yield _branch(rule, (rule.number, which), body, schema, types, relations, sparing)


def too_many_cases(rule: Rule) -> Diagnostic:
    return finding(
        "SL0406",
        f"the comparisons of this rule for `{rule.head.pred}` fall into too many cases",
        rule.span,
        help="split the rule, or give a part of its body a predicate of its own",
    )


def _never(rule: Rule, found: list[BranchTime], schema: Schema) -> Iterator[Diagnostic]:
    for branch in found:
        if not branch.can_fire:
            first, *others = _contradiction(branch, schema) or [rule.head.span]
            yield finding(
                "SL0503",
                f"this rule for `{rule.head.pred}` can never fire: its comparisons "
                "contradict each other",
                first,
                "these cannot all be true" if others else "this cannot be true",
                related=[(span, "") for span in others],
                help="one of them may be the wrong way round; else drop the rule",
            )


def _contradiction(branch: BranchTime, schema: Schema) -> list[Span]:
    """A smallest set of comparisons that cannot hold together."""
    body = branch.body
    for literal in body:
        rest = tuple(other for other in body if other is not literal)
        try:
            if not matrices(_formulas(rest, schema, branch.terms)):
                body = rest
        except TooManyCasesError:
            continue  # with this literal there were fewer
    return [literal.span for literal in body if isinstance(literal, Comparison)]


def _branch(
    rule: Rule,
    place: tuple[int, int],
    body: Body,
    schema: Schema,
    types: TypeTable,
    relations: Relations,
    sparing: bool,
) -> BranchTime:
    """What the facts of a table say is assumed only where it makes a difference, and so are the
    relations between columns."""
    related = tuple(sorted({a.pred for a in atoms(body)} & relations.keys()))

    def time(by_facts: bool) -> BranchTime:
        plain = _with_ranges(rule, place, body, schema, types, NO_RELATIONS, by_facts)
        if not related:
            return plain
        better = _with_ranges(rule, place, body, schema, types, relations, by_facts)
        if sparing and _same_times(better, plain):
            return plain
        return evolve(better, related=related)

    assumes = tuple(dict.fromkeys(_assumptions(rule, body, schema)))
    assuming = time(by_facts=True)
    if not assumes:
        return assuming
    plain = time(by_facts=False)
    return plain if _same_times(assuming, plain) else evolve(assuming, assumes=assumes)


def _same_times(one: BranchTime, other: BranchTime) -> bool:
    others = (clock_of(g.atom, e.column) for g in one.goals for e in g.elsewhere)
    names = (HEAD, *(g.clock for g in one.goals), *others)

    def differences(time: BranchTime) -> set[tuple[int | None, ...]]:
        return {tuple(m.most(a, b) for a in names for b in names) for m in time.matrices}

    return one.goals == other.goals and differences(one) == differences(other)


def _with_ranges(
    rule: Rule,
    place: tuple[int, int],
    body: Body,
    schema: Schema,
    types: TypeTable,
    relations: Relations,
    by_facts: bool,
) -> BranchTime:
    clocks = {
        clock_of(a, column)
        for a in atoms(body)
        if schema.is_temporal(a.pred)
        for column in _timestamps(a, schema)
    }
    head = rule.head.args[0]
    if isinstance(head, Var):
        clocks.add(head.name)
    terms = Terms(
        whole=lambda name: name in clocks or types.variable(rule, name) <= WHOLE,
        ranges=dict(_ranges(body, schema, by_facts)),
        definitions=dict(_definitions(body, clocks)),
        by_facts=by_facts,
        is_time=lambda name: name in clocks or types.variable(rule, name) == {Type.TIME},
        relations=relations,
    )
    at_head = Comparison("=", Var(HEAD, span=head.span), head, span=head.span)
    clocks.add(HEAD)
    known = [terms.comparison(at_head), *terms.bounds(terms.ranges)]
    possible = matrices([*known, *_formulas(body, schema, terms)])
    goals = tuple(_goals(body, schema, terms, possible, clocks, 0))
    return BranchTime(rule, place, body, terms, possible, goals)


def _formulas(body: Body, schema: Schema, terms: Terms) -> Iterator[tuple[Conjunction, ...]]:
    for literal in body:
        match literal:
            case Comparison():
                yield terms.comparison(literal)
            case Atom(pred, args):
                for column in _timestamps(literal, schema) if schema.is_temporal(pred) else ():
                    if isinstance(time := args[column], Const):
                        clock = Var(clock_of(literal, column), span=time.span)
                        yield terms.comparison(Comparison("=", clock, time, span=time.span))
                yield from terms.related(literal)
            case Not() | Choice():
                pass


def _timestamps(atom: Atom, schema: Schema) -> tuple[int, ...]:
    """The columns of a timestamped goal that make progress."""
    return (0, *(column for _, column in schema.elsewhere.get(atom.pred, ()))) if atom.args else ()


def _goals(
    body: Body,
    schema: Schema,
    terms: Terms,
    possible: tuple[Dbm, ...],
    clocks: set[str],
    depth: int,
) -> Iterator[Goal]:
    around = names_around_negations(body)
    for literal in body:
        match literal:
            case Atom(pred) if schema.is_temporal(pred) and possible:
                clock = clock_of(literal)
                elsewhere = (
                    Elsewhere(stream, column, *_span(clock_of(literal, column), possible))
                    for stream, column in schema.elsewhere.get(pred, ())
                )
                yield Goal(
                    literal,
                    clock,
                    *_span(clock, possible),
                    depth > 0,
                    depth,
                    tuple(elsewhere),
                )
            case Not(inner):
                local, within = inside(literal, around, schema, terms, clocks, possible)
                yield from _goals(inner, schema, local, within, clocks, depth + 1)
            case Atom() | Comparison() | Choice():
                pass


def _span(clock: str, possible: tuple[Dbm, ...]) -> tuple[int | None, int | None]:
    """Look-ahead and look-back."""
    return (
        _largest(m.most(clock, HEAD) for m in possible),
        _smallest(m.least(clock, HEAD) for m in possible),
    )


def _largest(values: Iterable[int | None]) -> int | None:
    values = tuple(values)
    return None if None in values else max(v for v in values if v is not None)


def _smallest(values: Iterable[int | None]) -> int | None:
    values = tuple(values)
    return None if None in values else min(v for v in values if v is not None)


def names_around_negations(body: Body) -> set[str]:
    """The variables of a conjunction that a negation in it shares."""
    return {v.name for x in body if not isinstance(x, Not) for v in variables(x)}


def inside(
    negation: Not,
    around: Set[str],
    schema: Schema,
    terms: Terms,
    clocks: set[str],
    possible: tuple[Dbm, ...],
) -> tuple[Terms, tuple[Dbm, ...]]:
    """What variables stand for inside a negation, and what is left possible there. `around` are
    the names around the negations of its conjunction."""
    local = _inner_terms(negation, around, schema, terms, clocks)
    bounds = local.bounds(local.ranges.keys() - terms.ranges.keys())
    return local, matrices([*bounds, *_formulas(negation.body, schema, local)], possible)


def _inner_terms(
    negation: Not, around: Set[str], schema: Schema, terms: Terms, clocks: set[str]
) -> Terms:
    """What is known inside a negation: the same, and more about its local variables."""
    definitions = {
        name: term
        for name, term in _definitions(negation.body, clocks)
        if name not in around and name not in terms.definitions
    }
    found = _ranges(negation.body, schema, terms.by_facts)
    ranges = {n: r for n, r in found if n not in around}
    return evolve(
        terms,
        ranges={**ranges, **terms.ranges},
        definitions={**definitions, **terms.definitions},
    )


def _definitions(body: Body, clocks: set[str]) -> Iterator[tuple[str, Term]]:
    """The variables that an equation of the body defines; timestamps speak for themselves."""
    seen = set(clocks)
    for literal in body:
        match literal:
            case Comparison("=", Var(name), term) | Comparison("=", term, Var(name)):
                if name not in seen and not (isinstance(term, Var) and term.name in seen - clocks):
                    seen.add(name)
                    yield name, term
            case Atom() | Comparison() | Not() | Choice():
                pass


def _ranges(body: Body, schema: Schema, by_facts: bool) -> Iterator[tuple[str, Interval]]:
    """The variables whose value is bounded by a declared range or by static facts."""
    for atom in body:
        predicate = schema.predicates.get(atom.pred) if isinstance(atom, Atom) else None
        if predicate is None or not isinstance(atom, Atom):
            continue
        for position, arg in enumerate(atom.args):
            if not isinstance(arg, Var):
                continue
            if position < len(predicate.columns):
                column = predicate.columns[position]
                if column.low and column.high and column.type in WHOLE:
                    yield arg.name, (int(column.low.value), int(column.high.value))
                    continue
            if by_facts and (interval := _by_facts(atom, position, schema)) is not None:
                yield arg.name, interval


def _by_facts(atom: Atom, position: int, schema: Schema) -> Interval | None:
    """From where to where the values go that the facts of a table have there."""
    predicate = schema[atom.pred]
    if predicate.kind is not Kind.TABLE or predicate.option("from"):
        return None
    facts = schema.facts_of.get(atom.pred, ())
    values = [f.atom.args[position] for f in facts if _matches(f.atom, atom)]
    whole = [int(v.value) for v in values if isinstance(v, Const) and v.type in WHOLE]
    return (min(whole), max(whole)) if whole and len(whole) == len(values) else None


def _assumptions(rule: Rule, body: Body, schema: Schema) -> Iterator[Assumption]:
    for atom in atoms(body):
        if atom.pred not in schema.predicates:
            continue
        columns = schema[atom.pred].columns
        where = tuple((i, a) for i, a in enumerate(atom.args) if isinstance(a, Const))
        for position, arg in enumerate(atom.args):
            is_declared = position < len(columns) and columns[position].low is not None
            if isinstance(arg, Var) and not is_declared:
                interval = _by_facts(atom, position, schema)
                if interval is not None:
                    yield Assumption(atom.pred, position, where, *interval, rule)


def _matches(fact: Atom, goal: Atom) -> bool:
    pairs = zip(fact.args, goal.args, strict=True)
    return all(f == g for f, g in pairs if isinstance(g, Const))
