"""Which predicates have timestamps.

Streams have them, tables have not, an undeclared predicate without facts is a stream, and a
derived predicate has them when some goal of its rules has. What is left are undeclared
predicates with facts in the program, where `msg(1, red)` is an event and `wsize(3)` is a
setting: the facts are events when their first arguments can be timestamps and some rule uses
them as such, comparing them with the head's timestamp or another goal's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streamlog.analysis.builtins import TICK, TIMESTAMPS
from streamlog.analysis.equations import definitions
from streamlog.analysis.slips import slips
from streamlog.diagnostics import Diagnostic, finding
from streamlog.syntax.ast import (
    Agg,
    Atom,
    BinOp,
    Body,
    Call,
    Choice,
    Comparison,
    Const,
    Fact,
    Neg,
    Not,
    Rule,
    Term,
    Var,
    branches,
)
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import atoms, variables


def temporal_predicates(
    *,
    streams: set[str],
    tables: set[str],
    rules: Iterable[Rule],
    facts: Iterable[Fact],
    mentioned: set[str],
) -> set[str]:
    rules = tuple(rules)
    derived = {r.head.pred for r in rules}
    firsts: dict[str, list[Term | None]] = {}
    for fact in facts:
        firsts.setdefault(fact.atom.pred, []).append(next(iter(fact.atom.args), None))
    undecided = firsts.keys() - derived - streams - tables
    temporal = streams | {TICK} | (mentioned - derived - tables - firsts.keys())
    candidates = {
        name
        for name in undecided
        if all(isinstance(a, Const) and a.type in TIMESTAMPS for a in firsts[name])
    }
    used = {a.pred for r in rules for a in atoms(r.body)}
    temporal |= candidates - used
    temporal |= {
        name for rule in rules for name in _used_in_time(rule, candidates & used, temporal)
    }
    heads: dict[str, set[str]] = {}  # by predicate, those whose rules ask it
    for rule in rules:
        for atom in atoms(rule.body):
            heads.setdefault(atom.pred, set()).add(rule.head.pred)
    waiting = list(temporal)
    while waiting:
        more = heads.get(waiting.pop(), set()) - temporal - tables
        temporal |= more
        waiting += more
    return temporal - {TICK}


def _used_in_time(rule: Rule, candidates: set[str], temporal: set[str]) -> Iterator[str]:
    """The candidates whose first argument this rule relates to a timestamp."""
    groups = _Groups()
    for left, right in _differences(rule.body):
        groups.join(left, right)
    clocks = {groups.of(v) for v in _first_variable(rule.head)}
    goals = tuple(atoms(rule.body))
    for atom in goals:
        if atom.pred in temporal:
            clocks |= {groups.of(v) for v in _first_variable(atom)}
    for atom in goals:
        in_time = any(groups.of(v) in clocks for v in _first_variable(atom))
        if in_time and atom.pred in candidates:
            yield atom.pred


class _Groups:
    """Union-find over names."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def of(self, name: str) -> str:
        while (parent := self._parent.get(name, name)) != name:
            name = parent
        return name

    def join(self, left: str, right: str) -> None:
        self._parent[self.of(left)] = self.of(right)


def _first_variable(atom: Atom) -> tuple[str, ...]:
    return _clocks_of(atom.args[0]) if atom.args else ()


def _clocks_of(time: Term) -> tuple[str, ...]:
    match time:
        case Var(name):
            return (name,)
        case BinOp("+" | "-", Var(name), Const()):
            return (name,)
        case Call("max" | "min" | "floor" | "ceil" | "date_trunc", args):
            return tuple(a.name for a in args if isinstance(a, Var))
        case _:
            return ()


def _differences(body: Body) -> Iterator[tuple[str, str]]:
    """Pairs of variables that a comparison relates up to a constant."""
    for literal in body:
        match literal:
            case Comparison(_, left, right):
                signs = [*_signed(left, 1), *_signed(right, -1)]
                if len(signs) == 2 and signs[0][1] != signs[1][1]:
                    yield signs[0][0], signs[1][0]
                elif any(isinstance(t, Call) for t in (left, right)):
                    yield from ((signs[0][0], name) for name, _ in signs[1:])
            case Not(inner):
                yield from _differences(inner)
            case Choice(alternatives):
                for branch in alternatives:
                    yield from _differences(branch)
            case Atom():
                pass


def _signed(term: Term, sign: int) -> Iterator[tuple[str, int]]:
    match term:
        case Var(name):
            yield name, sign
        case Neg(operand):
            yield from _signed(operand, -sign)
        case BinOp("+" | "-" as op, left, right):
            yield from _signed(left, sign)
            yield from _signed(right, sign if op == "+" else -sign)
        case Call("max" | "min" | "floor" | "ceil" | "date_trunc", args):
            for arg in args:
                yield from _signed(arg, sign)
        case _:
            pass


def check_heads(
    rules: Iterable[Rule],
    is_temporal: Callable[[str], bool],
    timestamps: Callable[[Atom], tuple[Term, ...]],
) -> Iterator[Diagnostic]:
    """A rule with timestamps in its body has one in its head, and not an aggregated one. A goal
    may have several `timestamps`."""
    for rule in rules:
        if not is_temporal(rule.head.pred):
            continue
        first = next(iter(rule.head.args), None)
        goals = [a for a in atoms(rule.body) if is_temporal(a.pred)]
        goals.sort(key=lambda a: a.pred == rule.head.pred)  # it may only have one from another
        if isinstance(first, Agg):
            yield finding(
                "SL0307",
                f"the timestamp of `{rule.head.pred}` is an aggregate, which is only known when "
                "all data have come",
                first.span,
                help="let the answer carry the timestamp of one of its goals, and aggregate "
                "another argument",
            )
            continue
        if not goals:
            if not (isinstance(first, Const) and first.type in TIMESTAMPS):
                yield _without_time(rule)
            continue
        clocks = [v for g in goals for time in timestamps(g) for v in _clocks_of(time)]
        if first is None or not _is_timestamp(first, rule, clocks):
            example = next((v for v in clocks if not v.startswith("_")), "T")
            rest = "".join(f", {pretty(a)}" for a in rule.head.args)
            wrong = slips([first.span] if first else [])
            yield finding(
                "SL0306",
                f"`{rule.head.pred}` needs a timestamp, because `{goals[0].pred}` has one",
                first.span if first else rule.head.span,
                "not a timestamp of the body",
                related=[(goals[0].span, f"`{goals[0].pred}` is timestamped")],
                help=(
                    *(wrong or [f"give the head a timestamp: `{rule.head.pred}({example}{rest})`"]),
                    f"or, if `{goals[0].pred}` should have none, declare it: "
                    f"`table {goals[0].pred}(…)`",
                ),
            )


def _without_time(rule: Rule) -> Diagnostic:
    """Other rules give the predicate timestamps; this one has to say when it holds."""
    return finding(
        "SL0306",
        f"this rule for `{rule.head.pred}` has no timestamped goal, but others have",
        rule.head.span,
        "when does it hold?",
        help="add `tick(T)` to say that it holds at every timestamp at which something arrives",
    )


def _is_timestamp(term: Term, rule: Rule, stamps: list[str]) -> bool:
    """Whether a head's first term has to do with the timestamps of the body."""
    if isinstance(term, Const):
        return term.type in TIMESTAMPS
    groups = _Groups()
    for left, right in _differences(rule.body):
        groups.join(left, right)
    clocks = {groups.of(v) for v in stamps}
    # A time from a data column may be a timestamp too, once a comparison ties it to one; and what
    # an equation defines is what it would be in the head itself.
    names = {v.name for v in variables(term)}
    literals = [x for body in branches(rule.body) for x in body]
    made_of = [(v.name, {w.name for w in variables(term)}) for v, term, _ in definitions(literals)]
    while more := {n for name, others in made_of if name in names for n in others - names}:
        names |= more
    return any(groups.of(name) in clocks for name in names)
