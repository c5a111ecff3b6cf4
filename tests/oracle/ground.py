"""Ground dependencies by brute force: every fact `p(t)` over a small range of whole numbers.

This knows nothing of difference bounds, potentials or strata. A desugared rule is taken at its
word: whole numbers are put in for its time variables, its comparisons are worked out on them, and
each combination that satisfies them says that the head's fact depends on the goals' facts. Data
arguments are ignored; only static facts and declared ranges give other variables their values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from attrs import field, frozen

from streamlog.syntax.ast import (
    Agg,
    Atom,
    BinOp,
    Body,
    Call,
    Comparison,
    Const,
    Module,
    Neg,
    Not,
    Rule,
    Table,
    Term,
    Var,
    branches,
)
from streamlog.syntax.walk import variables

HEAD = "the head"
Node = tuple[str, int]


# --------------------------------------------------------------------- expressions in Python


def _name(variable: str) -> str:
    return "v_" + re.sub(r"\W", "_", variable)


def _python(term: Term) -> str:
    match term:
        case Var(name):
            return _name(name)
        case Const(value):
            return repr(value)
        case Neg(operand):
            return f"(-{_python(operand)})"
        case BinOp(op, left, right):
            return f"({_python(left)} {'==' if op == '=' else op} {_python(right)})"
        case Call("if", (condition, then, other)):
            return f"({_python(then)} if {_python(condition)} else {_python(other)})"
        case Call("in", (value, *items)):
            return f"({_python(value)} in ({', '.join(map(_python, items))},))"
        case Call("floor", (value, step)):
            return f"({_python(value)} // {_python(step)} * {_python(step)})"
        case Call("ceil", (value, step)):
            return f"(-(-{_python(value)} // {_python(step)}) * {_python(step)})"
        case Call("max" | "min" | "abs" as name, args):
            return f"{name}({', '.join(map(_python, args))})"
        case _:
            raise ValueError(f"the oracle does not know {term}")


def _test(comparison: Comparison) -> str:
    op = "==" if comparison.op == "=" else comparison.op
    return f"{_python(comparison.left)} {op} {_python(comparison.right)}"


def _names(*nodes: Any) -> set[str]:
    return {v.name for node in nodes for v in variables(node)}


# --------------------------------------------------------------------------------- searching

Values = tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]  # names, and their static facts


class _Search:
    """The clauses of a comprehension that runs through all values the comparisons allow.

    A comparison is tested as soon as its variables have values; an equation gives a value where
    it can; static facts give theirs; every other timestamp runs through the range. A comparison
    about data that nothing gives a value plays no part.
    """

    def __init__(
        self,
        comparisons: Iterable[Comparison],
        times: Iterable[str],
        values: Iterable[Values],
        given: Iterable[str] = (),
    ) -> None:
        self.times, self.rows, self.bound = set(times), list(values), set(given)
        self.clauses: list[str] = []
        known = self.times | self.bound | {n for names, _ in self.rows for n in names}
        comparisons = list(comparisons)
        grown = True
        while grown:
            grown = False
            for var, side in (d for c in comparisons for d in _definitions(c)):
                if var not in known and _names(side) <= known:
                    known.add(var)
                    grown = True
        self.waiting = [c for c in comparisons if _names(c) <= known]
        self._flush()

    def _flush(self) -> None:
        progress = True
        while progress:
            progress = False
            for c in tuple(self.waiting):
                if _names(c) <= self.bound:
                    self.clauses.append(f"if {_test(c)}")
                elif solved := next(
                    (
                        (var, side)
                        for var, side in _definitions(c)
                        if var not in self.bound and _names(side) <= self.bound
                    ),
                    None,
                ):
                    var, side = solved
                    self.bound.add(var)
                    self.clauses.append(f"for {_name(var)} in ({_python(side)},)")
                    if var in self.times:
                        self.clauses.append(f"if {_name(var)} in span")
                else:
                    continue
                self.waiting.remove(c)
                progress = True

    def bind(self, name: str, source: str) -> None:
        if name in self.bound:  # an equation with a constant has said it already
            self.clauses.append(f"if {_name(name)} in {source}")
        else:
            self.bound.add(name)
            self.clauses.append(f"for {_name(name)} in {source}")
            self._flush()

    def finish(self) -> None:
        """Bind whatever the comparisons still wait for."""
        while missing := {n for c in self.waiting for n in _names(c)} - self.bound:
            row = next((r for r in self.rows if set(r[0]) & missing), None)
            if row is not None and not set(row[0]) & self.bound:
                self.rows.remove(row)
                names = [_name(n) for n in row[0]]
                self.bound |= set(row[0])
                self.clauses.append(f"for ({', '.join(names)},) in {row[1]!r}")
                self._flush()
                continue
            candidates = sorted(missing & self.times) or sorted(missing)
            self.bind(max(candidates, key=self._nearness), "times")

    def _nearness(self, name: str) -> int:
        found = [_names(c) for c in self.waiting]
        return sum(
            2 * (names <= self.bound | {name}) + bool(names & self.bound)
            for names in found
            if name in names
        )


def _definitions(comparison: Comparison) -> Iterator[tuple[str, Term]]:
    if comparison.op == "=":
        for var, side in (
            (comparison.left, comparison.right),
            (comparison.right, comparison.left),
        ):
            if isinstance(var, Var) and var.name not in _names(side):
                yield var.name, side


def _evaluated(text: str) -> Any:
    return eval(compile(text, "<ground>", "eval"), {"max": max, "min": min, "abs": abs})


Assigner = Callable[[dict[str, int], range, Iterable[int]], Iterator[dict[str, int]]]


def assigner(
    comparisons: Iterable[Comparison],
    times: Iterable[str],
    values: Iterable[Values],
    given: Iterable[str],
) -> Assigner:
    """Every way to satisfy the comparisons on top of what is given.

    The result takes the given values, the range of timestamps and the order in which to try them.
    """
    search = _Search(comparisons, times, values, given)
    search.finish()
    for name in sorted(search.times):
        search.bind(name, "times")
    made = ", ".join(f"{n!r}: {_name(n)}" for n in sorted(search.bound))
    start = " ".join(f"for {_name(n)} in (given[{n!r}],)" for n in sorted(given))
    clauses = [start or "for _ in (0,)", *search.clauses]
    return _evaluated(f"lambda given, span, times: ({{{made}}} {' '.join(clauses)})")


# ------------------------------------------------------------------------------------ sites


@frozen(eq=False, slots=False)
class Site:
    """A timestamped goal of one conjunction, at whatever depth of negation.

    `comparisons` are those that hold there: of the conjunction and of the negations around it.
    """

    rule: Rule
    branch: Body
    atom: Atom
    depth: int
    comparisons: tuple[Comparison, ...]
    times: frozenset[str]  # the variables that are timestamps of goals
    values: tuple[Values, ...]

    @property
    def head(self) -> str:
        return self.rule.head.pred

    @property
    def goal(self) -> str:
        return self.atom.pred

    @property
    def mark(self) -> str | None:
        """Why the dependency is not monotone."""
        functions = {a.func for a in self.rule.head.args if isinstance(a, Agg)}
        if self.depth:
            return "negation"
        if functions or self.rule.limit:
            return "extremum" if functions and functions <= {"min", "max"} else "aggregate"
        return None

    @cached_property
    def _pairs(self) -> Callable[[Iterable[int], range, range], set[tuple[int, int]]]:
        return self._pairs_of(0)

    def _pairs_of(
        self, column: int
    ) -> Callable[[Iterable[int], range, range], set[tuple[int, int]]]:
        """One set comprehension: head, goal, then whether the rest can be satisfied."""
        head, goal = self.rule.head.args[0], self.atom.args[column]
        stamp = Comparison("=", Var(HEAD, span=head.span), head, span=head.span)
        times = self.times | {HEAD} | ({head.name} if isinstance(head, Var) else set())
        search = _Search((*self.comparisons, stamp), times, self.values)
        search.bind(HEAD, "heads")
        if isinstance(goal, Var):
            search.bind(goal.name, "times")
        first = len(search.clauses)
        search.finish()
        clauses, rest = search.clauses[:first], search.clauses[first:]
        if not isinstance(goal, Var):
            clauses.append(f"if {_python(goal)} in span")
        if rest:
            clauses.append(f"if any(True {_begun(rest)})")
        clauses = [_begun(clauses)]
        pair = f"({_name(HEAD)}, {_python(goal)})"
        return _evaluated(f"lambda heads, times, span: {{{pair} {' '.join(clauses)}}}")

    def pairs(self, times: range, heads: Iterable[int] | None = None) -> set[tuple[int, int]]:
        """All (head's time, goal's time) that the comparisons allow within `times`."""
        return self._pairs(times if heads is None else heads, times, times)

    def offsets(self, window: int, column: int = 0) -> set[int]:
        """Goal minus head, for a head in the middle of a range of twice the window; of several
        times of the goal that in a column."""
        times = range(2 * window + 1)
        pairs = self._pairs if column == 0 else self._pairs_of(column)
        return {g - h for h, g in pairs((window,), times, times)}


def _begun(clauses: list[str]) -> str:
    """A comprehension starts with a `for`."""
    return " ".join(clauses if clauses[0].startswith("for") else ["for _ in (0,)", *clauses])


# ---------------------------------------------------------------------------------- programs


@frozen(slots=False)
class GroundProgram:
    """A desugared program, and which of its predicates have timestamps."""

    module: Module
    is_temporal: Callable[[str], bool] = field(eq=False)
    streams: tuple[str, ...]
    # What else is known of a goal: its other timestamps, and how they are related.
    known: Callable[[Atom], tuple[Iterable[Term], Iterable[Comparison]]] = field(
        default=lambda _: ((), ()), eq=False
    )

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        rules = [s for s in self.module.statements if isinstance(s, Rule)]
        return tuple(
            site
            for rule in rules
            if self.is_temporal(rule.head.pred)
            for body in branches(rule.body)
            for site in self._sites(rule, body, body, (), frozenset(), (), 0)
        )

    def _sites(
        self,
        rule: Rule,
        branch: Body,
        body: Body,
        comparisons: tuple[Comparison, ...],
        times: frozenset[str],
        values: tuple[Values, ...],
        depth: int,
    ) -> Iterator[Site]:
        comparisons += tuple(c for c in body if isinstance(c, Comparison))
        goals = [a for a in body if isinstance(a, Atom)]
        timed = [a for a in goals if self.is_temporal(a.pred)]
        times |= {a.args[0].name for a in timed if isinstance(a.args[0], Var)}
        for further, relations in map(self.known, timed):
            times |= {term.name for term in further if isinstance(term, Var)}
            comparisons += tuple(relations)
        values += tuple(v for a in goals if a not in timed for v in self.values(a))
        for atom in timed:
            yield Site(rule, branch, atom, depth, comparisons, times, values)
        for literal in body:
            if isinstance(literal, Not):
                yield from self._sites(
                    rule, branch, literal.body, comparisons, times, values, depth + 1
                )

    def values(self, atom: Atom) -> Iterator[Values]:
        """The whole numbers a static goal may give to its variables."""
        for statement in self.module.statements:
            if isinstance(statement, Table) and statement.name == atom.pred:
                for arg, column in zip(atom.args, statement.columns, strict=True):
                    if isinstance(arg, Var) and column.low and column.high:
                        span = range(int(column.low.value), int(column.high.value) + 1)
                        yield (arg.name,), tuple((n,) for n in span)
        facts = [
            s.atom.args
            for s in self.module.statements
            if getattr(s, "atom", None) is not None and s.atom.pred == atom.pred
        ]
        places = [i for i, arg in enumerate(atom.args) if isinstance(arg, Var)]
        if facts and places:
            names = tuple(atom.args[i].name for i in places)
            yield names, tuple(tuple(args[i].value for i in places) for args in facts)

    def edges(self, times: range) -> dict[Node, list[tuple[Node, str | None]]]:
        """Who depends on whom, ground: p(t) → q(t'), each with its mark."""
        found: dict[Node, set[tuple[Node, str | None]]] = {}
        for site in self.sites:
            for h, g in site.pairs(times):
                found.setdefault((site.head, h), set()).add(((site.goal, g), site.mark))
        if any(site.goal == "tick" for site in self.sites):
            for t in times:
                found.setdefault(("tick", t), set()).update(
                    (((stream, t), None)) for stream in self.streams
                )
        return {node: sorted(goals, key=repr) for node, goals in found.items()}


def marked_cycle(
    edges: dict[Node, list[tuple[Node, str | None]]], exempt: frozenset[str] = frozenset()
) -> list[Node] | None:
    """A cycle of ground facts through a marked edge, if there is one.

    `exempt` are the predicates between which `min` and `max` may recurse.
    """

    def is_exempt(node: Node, goal: Node, mark: str) -> bool:
        return mark == "extremum" and node[0] in exempt and goal[0] in exempt

    reach = _reach(edges)
    for node, goals in edges.items():
        for goal, mark in goals:
            if mark and not is_exempt(node, goal, mark) and node in reach(goal):
                return [node, *(_path(edges, goal, node) or ())]
    return None


def _reach(edges: dict[Node, list[tuple[Node, str | None]]]) -> Callable[[Node], set[Node]]:
    """What each fact depends on, itself included: Warshall's closure, a row being a bit set."""
    nodes = sorted({*edges, *(goal for goals in edges.values() for goal, _ in goals)})
    index = {node: i for i, node in enumerate(nodes)}
    rows = [1 << i for i in range(len(nodes))]
    for node, goals in edges.items():
        for goal, _ in goals:
            rows[index[node]] |= 1 << index[goal]
    for k in range(len(nodes)):
        row = rows[k]
        for i in range(len(nodes)):
            if rows[i] >> k & 1:
                rows[i] |= row
    return lambda node: {n for n, i in index.items() if rows[index[node]] >> i & 1}


def _path(
    edges: dict[Node, list[tuple[Node, str | None]]], start: Node, end: Node
) -> list[Node] | None:
    reached: dict[Node, Node | None] = {start: None}
    queue = [start]
    for node in queue:
        if node == end:
            path = [node]
            while (node := reached[node]) is not None:
                path.append(node)
            return path[::-1]
        for goal, _ in edges.get(node, ()):
            if goal not in reached:
                reached[goal] = node
                queue.append(goal)
    return None
