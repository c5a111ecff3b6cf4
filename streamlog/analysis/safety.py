"""Which variables are bound, and which head positions are open.

A variable is bound by a positive goal or by an equation with bound variables. A head variable
that only comparisons speak about, as `T` in `previous(T, X) <- msg(T0, X), T0 < T`, is *open*: it
stands for every value that satisfies them. A goal with open positions is a test, so its caller
must bind them, and answers may have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from streamlog.analysis.builtins import FILTERS
from streamlog.analysis.equations import solve
from streamlog.analysis.schema import Kind, Schema
from streamlog.diagnostics import Diagnostic, Span, finding
from streamlog.syntax.ast import (
    Atom,
    Body,
    Choice,
    Comparison,
    Const,
    Literal,
    Not,
    Rule,
    Term,
    Var,
    branches,
)
from streamlog.syntax.pretty import is_bare, pretty
from streamlog.syntax.walk import variables, walk

OpenPositions = Mapping[str, frozenset[int]]


@frozen
class Safety:
    open: OpenPositions

    def is_open(self, pred: str) -> bool:
        return bool(self.open.get(pred))


def check_safety(schema: Schema) -> tuple[Safety, tuple[Diagnostic, ...]]:
    opened = open_positions(schema)
    diagnostics: list[Diagnostic] = []
    unsafe: set[str] = set()  # open by mistake, which is reported already
    for rule in schema.rules:
        for body in branches(rule.body):
            if found := list(_check_rule(rule, body, opened)):
                unsafe.add(rule.head.pred)
                diagnostics += found
    for rule in schema.rules:
        if rule.groups and rule.head.pred in opened and rule.head.pred not in unsafe:
            unsafe.add(rule.head.pred)
            diagnostics.append(_grouping_among_open(rule, schema, opened))
    for query in schema.queries:
        for body in branches(query.body):
            diagnostics += _check_body(body, frozenset(), frozenset(), opened, "SL0303")
    diagnostics += _check_outputs(schema, opened, unsafe)
    return Safety(opened), tuple(diagnostics)


def _grouping_among_open(rule: Rule, schema: Schema, opened: OpenPositions) -> Diagnostic:
    """An open predicate is tested, not computed; so nothing of it can be counted or ranked."""
    name = rule.head.pred
    position = min(opened[name])
    others = [
        (r.head.args[position], r)
        for r in schema.rules_of[name]
        if not r.groups and isinstance(r.head.args[position], Var)
    ]
    leaves = [(term.span, "this one leaves it open") for term, _ in others][:1]
    what = "ranks" if rule.limit is not None else "aggregates"
    return finding(
        "SL0302",
        f"this rule for `{name}` {what}, but another leaves an argument open",
        rule.head.span,
        related=leaves,
        help=f"bind the variable there, or {what.removesuffix('s')} in a predicate of its own",
    )


def open_positions(schema: Schema) -> OpenPositions:
    """The least fixpoint: a call's open positions bind nothing, so they may open the caller."""
    result: dict[str, frozenset[int]] = {}
    changed = True
    while changed:
        changed = False
        for rule in schema.rules:
            for body in branches(rule.body):
                bound = bound_variables(body, frozenset(), result)
                found = frozenset(
                    position
                    for position, arg in enumerate(rule.head.args)
                    if isinstance(arg, Var) and arg.name not in bound
                )
                known = result.get(rule.head.pred, frozenset())
                if not found <= known:
                    result[rule.head.pred] = known | found
                    changed = True
    return result


def bound_variables(
    body: Body, given: frozenset[str], open_positions: OpenPositions
) -> frozenset[str]:
    """The variables that a conjunction binds, when those in `given` are bound already."""
    bound = set(given)
    for literal in body:
        if isinstance(literal, Atom) and literal.pred not in FILTERS:
            closed = open_positions.get(literal.pred, frozenset())
            bound |= {
                arg.name
                for position, arg in enumerate(literal.args)
                if isinstance(arg, Var) and position not in closed
            }
    equations = [c for c in body if isinstance(c, Comparison) and c.op == "="]
    changed = True
    while changed:
        changed = False
        for equation in equations:
            unknown = _names(equation) - bound
            if len(unknown) == 1 and solve(equation, *unknown) is not None:
                bound |= unknown
                changed = True
    return frozenset(bound)


def _names(*nodes: Term | Literal) -> set[str]:
    return {v.name for node in nodes for v in variables(node)}


def _check_rule(rule: Rule, body: Body, open_positions: OpenPositions) -> Iterator[Diagnostic]:
    bound = bound_variables(body, frozenset(), open_positions)
    compared = {n for c in body if isinstance(c, Comparison) for n in _names(c)}
    aggregates = rule.groups
    negated = {n for literal in body if isinstance(literal, Not) for n in _names(literal)}
    words = _words(body)
    may_be_open: set[str] = set()
    for arg in rule.head.args:
        for var in variables(arg):
            if var.name in bound:
                continue
            if var.name in negated:
                pass  # reported where the negation needs it
            elif var.name not in compared:
                yield finding(
                    "SL0302",
                    f"nothing binds `{_shown(var)}` in the rule for `{rule.head.pred}`",
                    var.span,
                    "it stands in the head only",
                    help=_slip(var, bound, words)
                    or "let a goal of the body bind it, or compare it with a bound variable",
                )
            elif not isinstance(arg, Var) or aggregates:
                where = "a rule with an aggregate" if aggregates else "an expression"
                yield finding(
                    "SL0302",
                    f"nothing binds `{_shown(var)}` in the rule for `{rule.head.pred}`",
                    var.span,
                    f"it is only compared, and {where} needs its value",
                    help=_bind(var, arg is rule.head.args[0]),
                )
            may_be_open.add(var.name)
    outer = frozenset(_names(*rule.head.args))
    yield from _check_body(body, outer, frozenset(may_be_open), open_positions, "SL0304")


def _check_body(
    body: Body,
    outer: frozenset[str],
    may_be_open: frozenset[str],
    open_positions: OpenPositions,
    code: str,
    given: frozenset[str] = frozenset(),
) -> Iterator[Diagnostic]:
    """`outer` are the names known around the body, `given` those of them that are bound there,
    `may_be_open` the head variables which comparisons may leave open."""
    bound, words = bound_variables(body, given, open_positions), _words(body)
    reported = {n for literal in body if isinstance(literal, Atom) for n in _names(literal)}
    # Another negation has its own local variables, even by the same names.
    around = outer | _names(*(x for x in body if not isinstance(x, Not)))
    for literal in sorted(body, key=lambda x: isinstance(x, Not)):
        match literal:
            case Comparison():
                for var in variables(literal):
                    if var.name not in bound | may_be_open | reported:
                        reported.add(var.name)
                        yield _outside(var, body) or _unbound(var, bound, words)
            case Atom(pred, args) if pred in FILTERS:
                for var in (v for arg in args for v in variables(arg)):
                    if var.name not in bound:
                        yield _unbound(var, bound, words)
            case Atom():
                yield from _check_call(literal, bound, open_positions, code)
            case Not(inner):
                clocks = {a.args[0] for a in inner if isinstance(a, Atom) and a.args}
                for var in _firsts(inner):
                    if var.name in around - reported and var.name not in bound:
                        yield _unbound_in_negation(var, var in clocks)
                shared = bound & around | (around & _names(literal))
                yield from _check_body(
                    inner, around, frozenset(), open_positions, "SL0304", frozenset(shared)
                )
            case Choice():
                raise ValueError("bodies are desugared")


def _firsts(body: Body) -> Iterator[Var]:
    """Each variable of a body once, where it first occurs."""
    seen: set[str] = set()
    for literal in body:
        for var in variables(literal):
            if var.name not in seen:
                seen.add(var.name)
                yield var


def _check_call(
    atom: Atom, bound: frozenset[str], open_positions: OpenPositions, code: str
) -> Iterator[Diagnostic]:
    for position in sorted(open_positions.get(atom.pred, frozenset())):
        arg = atom.args[position]
        if isinstance(arg, Var) and arg.name not in bound:
            yield finding(
                code,
                f"`{atom.pred}` can only test a value of its "
                f"{_ordinal(position)} argument, and nothing binds `{_shown(arg)}`",
                arg.span,
                f"`{atom.pred}` has infinitely many answers here",
                help=_bind(arg, position == 0),
            )


def _check_outputs(
    schema: Schema, open_positions: OpenPositions, unsafe: set[str]
) -> Iterator[Diagnostic]:
    for output in schema.outputs:
        predicate = schema.predicates.get(output.name)
        if predicate is None or predicate.kind is not Kind.DERIVED or output.name in unsafe:
            continue
        for position in sorted(open_positions.get(output.name, frozenset())):
            places = _opened_at(schema, output.name, position, open_positions)
            help_ = "let a positive goal of that rule bind it"
            if position == 0:
                help_ = "add `tick(T)` to ask at every timestamp at which something arrives"
            yield finding(
                "SL0303",
                f"the output `{output.name}` has infinitely many values in its "
                f"{_ordinal(position)} argument",
                output.span,
                "declared as an output here",
                related=places,
                help=help_,
            )
            break


def _opened_at(
    schema: Schema, name: str, position: int, open_positions: OpenPositions
) -> list[tuple[Span, str]]:
    places = []
    for rule in schema.rules_of.get(name, ()):
        arg = rule.head.args[position]
        for body in branches(rule.body):
            bound = bound_variables(body, frozenset(), open_positions)
            if isinstance(arg, Var) and arg.name not in bound:
                places.append((arg.span, f"nothing binds `{_shown(arg)}` here"))
    return places[:1]


def _outside(var: Var, body: Body) -> Diagnostic | None:
    """`not report(T1, A), T <= T1`: a comparison that belongs into the negation beside it."""
    negations = (x for x in body if isinstance(x, Not) and var in set(variables(x)))
    negation = next(negations, None)
    if negation is None:
        return None
    outside = [c for c in body if isinstance(c, Comparison) and var.name in _names(c)]
    inside = pretty((*negation.body, *outside))
    what = "the comparison" if len(outside) == 1 else "these comparisons"
    return finding(
        "SL0302",
        f"`{_shown(var)}` has no value outside the negation",
        var.span,
        "its value is needed here",
        related=[(negation.span, f"`{_shown(var)}` is a local variable of this negation")],
        help=f"put {what} into the negation: `not ({inside})`",
    )


def _unbound(var: Var, bound: frozenset[str], words: frozenset[str]) -> Diagnostic:
    return finding(
        "SL0302",
        f"nothing binds `{_shown(var)}`",
        var.span,
        "its value is needed here",
        help=_slip(var, bound, words) or "let a positive goal of this body bind it",
    )


def _unbound_in_negation(var: Var, is_time: bool) -> Diagnostic:
    return finding(
        "SL0302",
        f"nothing outside the negation binds `{_shown(var)}`",
        var.span,
        "a negated goal tests values, it finds none",
        help=_bind(var, is_time) + ("" if is_time else ", or write `_` if any value will do"),
    )


def _bind(var: Var, is_time: bool) -> str:
    by_goal = f"let a positive goal bind `{_shown(var)}`"
    if not is_time:
        return by_goal
    return (
        f"{by_goal}; `tick({_shown(var)})` binds it to every timestamp at which something arrives"
    )


def _words(body: Body) -> frozenset[str]:
    """The texts without quotes."""
    return frozenset(
        c.span.text for c in walk(body) if isinstance(c, Const) and is_bare(c.span.text)
    )


def _slip(var: Var, bound: frozenset[str], words: frozenset[str]) -> str | None:
    """Variables are short, so only a difference in case or one digit counts as a slip."""
    if (word := var.name.lower()) in words:
        return f"`{word}` is a text; variables begin with a capital: `{var.name}`"
    for name in sorted(bound):
        if name != var.name and (
            name.lower() == var.name.lower() or name.rstrip("0123456789") == var.name
        ):
            return f"did you mean `{name}`?"
    return None


def _shown(var: Var) -> str:
    return "_" if var.is_anonymous else var.name


def _ordinal(position: int) -> str:
    names = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
    return names[position] if position < len(names) else f"{position + 1}th"
