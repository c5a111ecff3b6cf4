"""Who depends on whom, how far away in time, and through negation or an aggregate or not."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from functools import cached_property

from attrs import field, frozen

from streamlog.analysis.builtins import FILTERS, TICK
from streamlog.analysis.schema import Schema
from streamlog.analysis.time.reach import BranchTime, Goal
from streamlog.syntax.ast import Agg, Atom, Not, Rule, branches
from streamlog.syntax.walk import atoms


class Mark(enum.Enum):
    """Why an edge is not monotone."""

    NEGATION = "negation"
    AGGREGATE = "aggregate"
    EXTREMUM = "min/max"  # may recurse when it is premappable


@frozen
class Edge:
    """`head` depends on `goal`; `ahead` and `back` as in `time.reach.Goal`."""

    head: str
    goal: str
    ahead: int | None
    back: int | None
    mark: Mark | None
    # On other timelines: a row is known as soon as one of them has passed it.
    instead: tuple[tuple[str, int], ...] = ()
    rule: Rule | None = field(default=None, eq=False, repr=False)  # None: a built-in
    atom: Atom | None = field(default=None, eq=False, repr=False)


@frozen(slots=False)
class Graph:
    nodes: tuple[str, ...]
    edges: tuple[Edge, ...]

    @cached_property
    def out(self) -> dict[str, tuple[Edge, ...]]:
        result: dict[str, list[Edge]] = {n: [] for n in self.nodes}
        for edge in self.edges:
            result[edge.head].append(edge)
        return {n: tuple(edges) for n, edges in result.items()}

    @cached_property
    def components(self) -> tuple[frozenset[str], ...]:
        """Strongly connected components, each after those it depends on."""
        return strong_components(self.nodes, lambda n: (e.goal for e in self.out[n]))

    @cached_property
    def component_of(self) -> dict[str, int]:
        return {n: i for i, nodes in enumerate(self.components) for n in nodes}

    def is_internal(self, edge: Edge) -> bool:
        return self.component_of[edge.head] == self.component_of[edge.goal]


def mark_of(rule: Rule) -> Mark | None:
    """How an aggregate in the head, or a limit, marks every edge of its rule."""
    if rule.limit is not None:
        return Mark.AGGREGATE
    kinds = [arg.kind for arg in rule.head.args if isinstance(arg, Agg)]
    if not kinds:
        return None
    return Mark.EXTREMUM if all(kind.best for kind in kinds) else Mark.AGGREGATE


def instead_of(goal: Goal) -> tuple[tuple[str, int], ...]:
    """The other timelines by which a goal may be known, and how far they must have come. Without
    a bound on its own there is none: it would have been put on another."""
    if goal.ahead is None:
        return ()
    return tuple((e.stream, e.ahead) for e in goal.elsewhere if e.ahead is not None)


def dependencies(schema: Schema, times: Iterable[BranchTime]) -> Graph:
    edges: dict[Edge, None] = {}
    for time in times:
        for goal in time.goals:
            mark = Mark.NEGATION if goal.negated else mark_of(time.rule)
            head = time.rule.head.pred
            new = Edge(
                head,
                goal.atom.pred,
                goal.ahead,
                goal.back,
                mark,
                instead_of(goal),
                time.rule,
                goal.atom,
            )
            edges.setdefault(new)
    for rule in schema.rules:
        for body in branches(rule.body):
            for literal in body:
                mark = Mark.NEGATION if isinstance(literal, Not) else mark_of(rule)
                for atom in atoms(literal):
                    if not schema.is_temporal(atom.pred) and atom.pred not in FILTERS:
                        head = rule.head.pred
                        edges.setdefault(Edge(head, atom.pred, 0, 0, mark, (), rule, atom))
    nodes = set(schema.predicates)
    if any(e.goal == TICK for e in edges):
        nodes.add(TICK)
        for stream in schema.streams:
            edges.setdefault(Edge(TICK, stream, 0, 0, None))
    return Graph(tuple(sorted(nodes)), tuple(edges))


def strong_components(
    nodes: Iterable[str], successors: Callable[[str], Iterable[str]]
) -> tuple[frozenset[str], ...]:
    """Tarjan's algorithm without recursion: programs may be longer than the stack is deep."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    result: list[frozenset[str]] = []
    for root in nodes:
        if root in index:
            continue
        work = [(root, iter(tuple(successors(root))))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for successor in rest:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(tuple(successors(successor)))))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    component = [stack.pop()]
                    while component[-1] != node:
                        component.append(stack.pop())
                    on_stack.difference_update(component)
                    result.append(frozenset(component))
    return tuple(result)
