"""The pivot of a part of a plan: an argument that all of its rules carry unchanged.

In `path(T, X, Z) <- path(T1, X, Y), arc(T2, Y, Z)` it is X: paths from one X are made of paths
from the same X. So several kernels can do the part, each for the values of X that are its own,
and none ever needs a row that another has found.

A pivot is a column for each predicate of the part, such that in each conjunction one term stands
in the head's column and in that of every goal over the part, be it positive, negated or folded.
The rows of one group have one pivot, so aggregates are whole; a candidate waits for progress,
which all kernels get, and then looks at rows with its own pivot.

What the part reads from elsewhere is partitioned by that term too where it stands in all goals over
it, and is given to every kernel where it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from zlib import crc32

from attrs import evolve, frozen

from streamlog.analysis.builtins import INTERNAL
from streamlog.plan.steps import Filter, Join, Pipeline, Plan, RulePlan, Step
from streamlog.plan.walk import joins_of, reads
from streamlog.syntax.ast import Atom, Call, Comparison, Const, Term, Type, Var
from streamlog.syntax.walk import variables

# So many rows are a quarter of a second's work, which is worth another task.
ROWS_A_KERNEL = 10_000
# What is not partitioned is sent to every kernel, and kept by every one.
MOST_KERNELS = 32
_TRIED = 200  # choices of a column; then the best so far is taken

TypeOf = Callable[[str, int], Type | None]
Columns = dict[str, int]
_Domains = dict[str, set[int]]


@frozen
class Pivot:
    """By predicate, the column that says which kernel a row is for.

    Of a predicate that is not here, each kernel has all rows.
    """

    columns: Mapping[str, int]

    def of(self, rule: RulePlan) -> Term:
        return rule.head[self.columns[rule.rule.head.pred]]


@frozen
class Seat:
    """Which of several kernels one is."""

    number: int
    kernels: int

    def has(self, value: object) -> bool:
        return seat(value, self.kernels) == self.number


def seat(value: object, kernels: int) -> int:
    """The kernel for a value: the same as Spark's `crc32`, of texts that are the same there."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return crc32(text.encode()) % kernels


def how_many(rows: float | None, cores: int) -> int:
    """The cost rule: a kernel for each core, unless the rows are known to be few. An idle one
    costs milliseconds."""
    most = min(cores, MOST_KERNELS)
    return most if rows is None else int(max(1, min(most, rows // ROWS_A_KERNEL)))


# ------------------------------------------------------------------------------- finding it


def find(part: Plan, is_temporal: Callable[[str], bool], type_of: TypeOf) -> Pivot | None:
    """The pivot with which most of what the part reads is partitioned, if there is one."""
    own = sorted({r.rule.head.pred for r in part.rules})
    start: _Domains = {
        pred: {c for c in range(part.arity[pred]) if c > 0 or not is_temporal(pred)} for pred in own
    }
    for rule in part.rules:
        start[rule.rule.head.pred] &= {
            c for c, term in enumerate(rule.head) if _is_carried(rule, term, type_of)
        }
    given = sorted({a.pred for r in part.rules for a in _goals(r)} - set(own))

    def whole(columns: Columns) -> Columns:
        return columns | _partitioned(part, Pivot(columns), given, is_temporal)

    best = max(map(whole, _choices(start, part.rules)), key=len, default=None)
    return Pivot(best) if best else None


def _is_carried(rule: RulePlan, term: Term, type_of: TypeOf) -> bool:
    """Whether a head's term is one that pipelines bind, and nowhere a float: the texts of those
    differ between engines, and 1.0 is 1."""
    if not isinstance(term, Var | Const):
        return False
    limit = rule.rule.limit
    if limit is not None and term not in limit.per:
        return False  # rows that are ranked together are in one kernel
    if isinstance(term, Var) and not all(_position(p, term) is not None for p in rule.pipelines):
        return False
    head = evolve(rule.rule.head, args=rule.head)
    columns = [
        (a.pred, c) for a in (head, *_goals(rule)) for c, t in enumerate(a.args) if t == term
    ]
    return all(type_of(*column) is not Type.FLOAT for column in columns)


def _choices(domains: _Domains, rules: tuple[RulePlan, ...]) -> Iterator[Columns]:
    """Ways to choose a column for each predicate."""
    waiting = [domains]
    for _ in range(_TRIED):
        if not waiting:
            return
        domains = waiting.pop()
        if not _narrowed(domains, rules):
            continue
        pred = next((p for p, columns in domains.items() if len(columns) > 1), None)
        if pred is None:
            yield {p: column for p, (column,) in domains.items()}
            continue
        for column in sorted(domains[pred], reverse=True):
            others = {p: set(columns) for p, columns in domains.items()}
            waiting.append({**others, pred: {column}})


def _narrowed(domains: _Domains, rules: tuple[RulePlan, ...]) -> bool:
    """Leave out columns that no choice for another predicate agrees with; whether some are left."""
    before = -1
    while (size := sum(map(len, domains.values()))) != before:
        before = size
        for rule in rules:
            head, pred = rule.head, rule.rule.head.pred
            for atom in _goals(rule):
                if atom.pred not in domains:
                    continue
                mine, other = domains[pred], domains[atom.pred]
                mine &= {c for c in mine if any(head[c] == atom.args[d] for d in other)}
                other &= {d for d in other if any(head[c] == atom.args[d] for c in mine)}
    return all(domains.values())


def _partitioned(
    part: Plan, pivot: Pivot, given: list[str], is_temporal: Callable[[str], bool]
) -> Columns:
    """What is read from elsewhere and has the pivot in one column, wherever it is read."""
    result: Columns = {}
    for pred in given:
        uses = [(pivot.of(r), a) for r in part.rules for a in _goals(r) if a.pred == pred]
        first = 1 if is_temporal(pred) else 0
        for column in range(first, part.arity[pred]):
            if all(atom.args[column] == term for term, atom in uses):
                result[pred] = column
                break
    return result


def _goals(rule: RulePlan) -> Iterator[Atom]:
    """The goals of a conjunction, at any depth."""
    yield from (p.start for p in rule.pipelines if p.start is not None)
    yield from (j.atom for j in joins_of(rule))


# -------------------------------------------------------------------------- the kernels' plans


def plan_of(part: Plan, pivot: Pivot, own: Seat) -> Plan:
    """The plan of one of several kernels.

    Where all goals of a conjunction are given to all, only solutions with a pivot of its own:

        path(T, X, Y) <- arc(T, X, Y).     path(T, X, Y) <- arc(T, X, Y), seat(X, 2) = 0.

    Such a base is not all that a closure is made of.
    """
    rules = tuple(_own(rule, pivot, own) for rule in part.rules)
    return evolve(part, rules=rules, closures={})


def _own(rule: RulePlan, pivot: Pivot, own: Seat) -> RulePlan:
    first = rule.pipelines[0]
    goals = [first.start] if first.start is not None else []
    goals += (s.atom for s in first.steps if isinstance(s, Join))
    if any(goal.pred in pivot.columns for goal in goals):
        return rule
    term = pivot.of(rule)
    span = term.span
    kernels, number = (Const(n, Type.INT, span=span) for n in (own.kernels, own.number))
    test = Filter(
        Comparison("=", Call(f"{INTERNAL}seat", (term, kernels), span=span), number, span=span)
    )
    return evolve(rule, pipelines=tuple(_filtered(p, term, test) for p in rule.pipelines))


def _filtered(pipeline: Pipeline, term: Term, test: Step) -> Pipeline:
    at = (_position(pipeline, term) if isinstance(term, Var) else None) or 0
    return evolve(pipeline, steps=(*pipeline.steps[:at], test, *pipeline.steps[at:]))


def _position(pipeline: Pipeline, var: Var) -> int | None:
    """Before which step of a pipeline a variable has its value, if it gets one."""
    if pipeline.start is not None and var in variables(pipeline.start):
        return 0
    return next((n for n, step in enumerate(pipeline.steps, 1) if var in reads(step)), None)
