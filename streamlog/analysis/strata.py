"""Potentials, tight edges and strata: the order in which facts can be decided.

A potential `h(p) >= h(q) + ahead` for every edge makes `t + h(p)` a clock on which no fact
depends on a later one. Edges that attain the bound are *tight*: they stay on one instant of the
clock, and there ordinary stratification must hold. So facts are decided in the order (component,
`t + h(p)`, stratum in the tight graph), whatever the data.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TypeVar

from attrs import frozen

from streamlog.analysis.dependency import Edge, Graph, Mark, strong_components

Cycle = tuple[Edge, ...]
N = TypeVar("N", int, Fraction)


@frozen
class Strata:
    """How an accepted program is ordered, or the cycles that forbid an order.

    Potentials are missing for components that look ahead without bound; over stored data those
    are evaluated as a whole, which is sound as long as nothing in them is marked.
    """

    potential: Mapping[str, int]
    stratum: Mapping[str, int]
    knot: Mapping[str, frozenset[str]]  # with whom a predicate recurses within one instant
    stride: Mapping[int, int | None]  # by component: None is unlimited
    at_one_instant: tuple[Cycle, ...]  # a marked edge on a tight cycle: no meaning
    extrema: tuple[Cycle, ...]  # the same through min or max: fine if premappable
    growing: tuple[Cycle, ...]  # positive look-ahead round a cycle, nothing marked
    on_future: tuple[Cycle, ...]  # the same with a marked edge in the component: no meaning


def stratify(graph: Graph) -> Strata:
    potential: dict[str, int] = {}
    stratum: dict[str, int] = {}
    knot: dict[str, frozenset[str]] = {}
    stride: dict[int, int | None] = {}
    at_one_instant: list[Cycle] = []
    extrema: list[Cycle] = []
    growing: list[Cycle] = []
    on_future: list[Cycle] = []
    for number, nodes in enumerate(graph.components):
        edges = [e for n in sorted(nodes) for e in graph.out[n]]
        internal = [e for e in edges if e.goal in nodes]
        cycle = _relax(nodes, edges, potential) or _unbounded_cycle(internal)
        if cycle:
            mark = next((e for e in internal if e.mark), None)
            if mark is None:
                growing.append(cycle)
            elif any(e.mark for e in cycle):
                on_future.append(cycle)
            else:
                on_future.append((*cycle, *_cycle_through(mark, internal)))
            stratum.update(dict.fromkeys(nodes, 0))
            knot.update(dict.fromkeys(nodes, nodes))
            stride[number] = None
            continue
        tight = [
            e
            for e in internal
            if e.ahead is not None and potential[e.goal] + e.ahead == potential[e.head]
        ]
        forbidden = _levels(nodes, tight, stratum, knot)
        at_one_instant += (c for c in forbidden if not _only_extrema(c))
        extrema += (c for c in forbidden if _only_extrema(c))
        improving = {e for c in forbidden for e in c if e.mark is Mark.EXTREMUM}
        marked = {e for e in internal if e.mark} - improving
        stride[number] = _stride(nodes, internal, marked)
    return Strata(
        potential,
        stratum,
        knot,
        stride,
        tuple(at_one_instant),
        tuple(extrema),
        tuple(growing),
        tuple(on_future),
    )


def _only_extrema(cycle: Cycle) -> bool:
    return all(e.mark in (None, Mark.EXTREMUM) for e in cycle)


def _relax(nodes: frozenset[str], edges: Iterable[Edge], potential: dict[str, int]) -> Cycle:
    """Least potentials of a component; the cycle on which they diverge, if any."""
    potential.update(dict.fromkeys(nodes, 0))
    finite = [(e, e.ahead) for e in edges if e.ahead is not None]
    cycle = _diverging(finite, potential, len(nodes))
    if cycle:
        potential.update(dict.fromkeys(nodes, 0))
    return cycle


def _diverging(edges: list[tuple[Edge, N]], value: dict[str, N], nodes: int) -> Cycle:
    """Bellman-Ford for largest values, in place; a cycle on which they grow, if there is one."""
    because: dict[str, Edge] = {}
    grown: str | None = None
    for _ in range(nodes + 1):
        grown = None
        for edge, weight in edges:
            least = value[edge.goal] + weight
            if least > value[edge.head]:
                value[edge.head] = least
                because[edge.head] = edge
                grown = edge.head
        if grown is None:
            return ()
    # Still growing after as many rounds as there are nodes: going back leads into the cycle.
    assert grown is not None
    node = grown
    for _ in range(nodes):
        node = because[node].goal
    cycle = [because[node]]
    while cycle[-1].goal != node:
        cycle.append(because[cycle[-1].goal])
    return tuple(cycle)


def _unbounded_cycle(internal: Iterable[Edge]) -> Cycle:
    """A cycle through an edge that looks ahead without bound."""
    internal = tuple(internal)
    for edge in internal:
        if edge.ahead is None:
            return _cycle_through(edge, internal)
    return ()


def _cycle_through(edge: Edge, edges: Iterable[Edge]) -> Cycle:
    """The shortest cycle that starts with `edge`."""
    out: dict[str, list[Edge]] = {}
    for other in edges:
        out.setdefault(other.head, []).append(other)
    reached: dict[str, Edge | None] = {edge.goal: None}
    queue = deque([edge.goal])
    while queue and edge.head not in reached:
        node = queue.popleft()
        for step in out.get(node, ()):
            if step.goal not in reached:
                reached[step.goal] = step
                queue.append(step.goal)
    if edge.head not in reached:
        return ()
    path: list[Edge] = []
    node = edge.head
    while (step_back := reached[node]) is not None:
        path.append(step_back)
        node = step_back.head
    return (edge, *reversed(path))


def _levels(
    nodes: frozenset[str],
    tight: list[Edge],
    stratum: dict[str, int],
    knot: dict[str, frozenset[str]],
) -> list[Cycle]:
    """Strata and knots of the tight graph; a cycle for every knot with a marked edge."""
    out: dict[str, list[Edge]] = {n: [] for n in sorted(nodes)}
    for edge in tight:
        out[edge.head].append(edge)
    forbidden = []
    for members in strong_components(out, lambda n: (e.goal for e in out[n])):
        inside = [e for n in sorted(members) for e in out[n] if e.goal in members]
        marked = [e for e in inside if e.mark]
        if marked:
            worst = next((e for e in marked if e.mark is not Mark.EXTREMUM), marked[0])
            forbidden.append(_cycle_through(worst, inside))
        if inside:
            knot.update(dict.fromkeys(members, members))
        level = max(
            (
                stratum[e.goal] + (1 if e.mark else 0)
                for n in members
                for e in out[n]
                if e.goal not in members
            ),
            default=0,
        )
        stratum.update(dict.fromkeys(members, level))
    return forbidden


def _stride(nodes: frozenset[str], internal: list[Edge], marked: set[Edge]) -> int | None:
    """The widest batch in which marked edges look at earlier batches only.

    It is the least `-ahead / marks` over all cycles with a marked edge: start with any cycle,
    and as long as another does worse, take that one. One instant is always a batch.
    """
    cycle = next((c for e in internal if e in marked and (c := _cycle_through(e, internal))), ())
    if not cycle:
        return None
    while cycle:
        marks = sum(1 for e in cycle if e in marked)
        best = Fraction(-sum(e.ahead or 0 for e in cycle), marks)
        edges = [(e, (e.ahead or 0) + (best if e in marked else Fraction(0))) for e in internal]
        cycle = _diverging(edges, dict.fromkeys(nodes, Fraction(0)), len(nodes))
    return max(1, int(best))
